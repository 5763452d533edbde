"""`Idempotency-Key`: done once, answered the same, whatever dies in between."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import Response

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Conflict, KeyReused
from foliot.domain.ids import JobId, PrincipalId
from foliot.services.identity import idempotency
from foliot.services.identity.idempotency import IdempotentRequest
from foliot.services.jobs import job_status
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.web.app import create_app
from foliot.web.auth import Viewer
from foliot.web.health import Readiness
from foliot.web.openapi import describe_api
from foliot.web.routes import api_router
from tests.web.conftest import ApiHarness, job
from tests.web.test_access import app_of

pytestmark = pytest.mark.anyio
KEY = {"Idempotency-Key": "order-7"}
COUNT = "SELECT count(*) FROM foliot.jobs"


async def test_a_repeat_gets_the_first_answer_and_does_nothing(api: ApiHarness, owner: Any) -> None:
    first = await api.request("POST", "/jobs", json=job(), headers=KEY)
    again = await api.request("POST", "/jobs", json=job(), headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    for name in ("location", "etag", "content-type"):
        assert again.headers[name] == first.headers[name]
    assert owner.execute(COUNT).fetchone() == (1,)


async def test_the_first_answer_comes_back_though_the_job_has_changed_since(api: ApiHarness) -> None:
    made = await api.create_job()
    path = f"/jobs/{made['id']}"
    paused = await api.request("POST", f"{path}/pause", headers=KEY)
    await api.request("POST", f"{path}/resume")
    again = await api.request("POST", f"{path}/pause", headers=KEY)
    assert again.json() == paused.json()
    assert (await api.request("GET", path)).json()["status"] == "active"


async def test_the_same_key_with_another_request_is_refused(api: ApiHarness) -> None:
    made = (await api.request("POST", "/jobs", json=job(), headers=KEY)).json()
    for path, body in (
        ("/jobs", job(name="other")),
        ("/jobs?dry_run=true", job()),
        (f"/jobs/{made['id']}/run", {}),
    ):
        answer = await api.request("POST", path, json=body, headers=KEY)
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused"), path


async def test_a_refusal_leaves_the_key_free(api: ApiHarness) -> None:
    made = await api.create_job()
    path = f"/jobs/{made['id']}/resume"
    assert (await api.request("POST", path, headers=KEY)).status_code == 409
    assert (await api.request("POST", "/jobs", json=job(name=""), headers=KEY)).status_code == 422
    await api.request("POST", f"/jobs/{made['id']}/pause")
    assert (await api.request("POST", path, headers=KEY)).status_code == 200


async def test_keys_of_others_are_others(api: ApiHarness, owner: Any) -> None:
    for who, role in (("acme", "editor"), ("acme", "admin"), ("globex", "editor")):
        answer = await api.request("POST", "/jobs", who=who, role=role, json=job(), headers=KEY)
        assert (answer.status_code, answer.headers.get("idempotent-replayed")) == (201, None)
    assert owner.execute(COUNT).fetchone() == (3,)


async def test_two_members_with_one_key_each_get_their_own_answer(api: ApiHarness) -> None:
    first = {}
    for role in ("editor", "admin"):
        answer = await api.request("POST", "/jobs", role=role, json=job(name=role), headers=KEY)
        assert answer.status_code == 201
        first[role] = answer.json()
    for role in ("editor", "admin"):
        again = await api.request("POST", "/jobs", role=role, json=job(name=role), headers=KEY)
        assert (again.headers["idempotent-replayed"], again.json()) == ("true", first[role])


async def test_after_a_day_a_key_is_new_again(api: ApiHarness, owner: Any, clock: ManualClock) -> None:
    await api.request("POST", "/jobs", json=job(), headers=KEY)
    clock.advance(timedelta(hours=24))
    answer = await api.request("POST", "/jobs", json=job(name="other"), headers=KEY)
    assert (answer.status_code, owner.execute(COUNT).fetchone()) == (201, (2,))
    clock.advance(timedelta(hours=24, seconds=1))
    assert await idempotency.forget_old(api.database) == 1
    assert owner.execute("SELECT count(*) FROM foliot.idempotency_keys").fetchone() == (0,)


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\u00e9", "a\tb"])
async def test_what_is_no_key_is_refused(api: ApiHarness, key: str) -> None:
    headers = {
        b"Idempotency-Key": key.encode("latin-1"),
        b"Authorization": f"Bearer {api.keys['acme', 'editor']}".encode(),
    }
    answer = await api.http.post("/api/v1/jobs", json=job(), headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/Idempotency-Key")


async def test_on_other_methods_a_key_does_no_harm(api: ApiHarness) -> None:
    made = await api.create_job()
    for name in ("one", "two"):
        answer = await api.request("PATCH", f"/jobs/{made['id']}", json={"name": name}, headers=KEY)
        assert (answer.status_code, answer.json()["name"]) == (200, name)
    assert (await api.request("GET", "/jobs", headers=KEY)).status_code == 200


async def test_a_repeat_of_a_conditional_request_is_not_refused_as_stale(api: ApiHarness) -> None:
    made = await api.create_job()
    await api.request("PATCH", f"/jobs/{made['id']}", json={"name": "other"})
    headers = {**KEY, "If-Match": '"2"'}
    first = await api.request("POST", f"/jobs/{made['id']}/revert", json={"revision": 1}, headers=headers)
    again = await api.request("POST", f"/jobs/{made['id']}/revert", json={"revision": 1}, headers=headers)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["revision"] == 3


@pytest.mark.parametrize(("path", "noun"), [("", "job"), ("/run", "run"), ("/pause", "job")])
async def test_a_death_between_commit_and_answer_does_not_do_it_twice(
    api: ApiHarness, owner: Any, clock: ManualClock, path: str, noun: str
) -> None:
    made = await api.create_job()
    url, body = (f"/jobs/{made['id']}{path}", {}) if path else ("/jobs", job(name="new"))
    first = await api.request("POST", url, json=body, headers=KEY)
    _forget_answer(owner)
    early = await api.request("POST", url, json=body, headers=KEY)
    assert (early.status_code, early.json()["code"]) == (409, "idempotency_in_flight")
    assert early.headers["retry-after"] == "1"
    clock.advance(timedelta(seconds=5))
    again = await api.request("POST", url, json=body, headers=KEY)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers["location"].endswith(f"/{noun}s/{first.json()['id']}")
    assert owner.execute("SELECT count(*) FROM foliot.idempotency_keys").fetchone() == (1,)
    counts = owner.execute("SELECT (SELECT count(*) FROM foliot.jobs), (SELECT count(*) FROM foliot.runs)")
    assert counts.fetchone() == (1 + (path == ""), int(path == "/run"))


async def test_where_the_answer_cannot_be_made_again_it_is_said_that_it_was_done(
    api: ApiHarness, owner: Any, clock: ManualClock
) -> None:
    made = await api.create_job()
    await api.request("POST", f"/jobs/{made['id']}/pause", headers=KEY)
    _forget_answer(owner)
    owner.execute("UPDATE foliot.idempotency_keys SET object_kind = 'batch'")
    clock.advance(timedelta(seconds=5))
    again = await api.request("POST", f"/jobs/{made['id']}/pause", headers=KEY)
    assert (again.status_code, again.json()["code"]) == (409, "idempotency_answer_lost")
    assert made["id"] in again.json()["detail"]


async def test_a_request_that_died_before_it_did_anything_is_done_by_its_repeat(
    api: ApiHarness, clock: ManualClock
) -> None:
    principal = PrincipalId(uuid4())
    asked = IdempotentRequest(principal, "order-7", b"same")
    dead = await idempotency.begin(api.database, api.ids["acme"], asked)
    with pytest.raises(Conflict, match="under way"):
        await idempotency.begin(api.database, api.ids["acme"], asked)
    clock.advance(timedelta(minutes=1))
    heir = await idempotency.begin(api.database, api.ids["acme"], asked)
    made = await api.create_job()
    late, now = (Actor("somebody", claim=claim) for claim in (dead, heir))  # type: ignore[arg-type]
    with pytest.raises(Conflict, match="taken over"):
        await job_status.pause(api.database, Scope(api.ids["acme"], late), _id(made))
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["status"] == "active"
    await job_status.pause(api.database, Scope(api.ids["acme"], now), _id(made))


async def test_an_abandoned_key_is_taken_over_by_the_same_request_alone(
    api: ApiHarness, clock: ManualClock
) -> None:
    principal, workspace = PrincipalId(uuid4()), api.ids["acme"]
    asked = IdempotentRequest(principal, "order-7", b"same")
    await idempotency.begin(api.database, workspace, asked)
    clock.advance(timedelta(minutes=1))
    with pytest.raises(KeyReused):
        await idempotency.begin(api.database, workspace, IdempotentRequest(principal, "order-7", b"other"))
    assert isinstance(await idempotency.begin(api.database, workspace, asked), UUID)
    clock.advance(timedelta(seconds=59))
    with pytest.raises(Conflict, match="under way"):
        await idempotency.begin(api.database, workspace, asked)


async def test_what_must_not_be_stored_is_not_kept(api: ApiHarness, owner: Any) -> None:
    routes = api_router("secrets")

    @routes.post("/shown-once")
    async def reported_once(caller: Viewer, response: Response) -> dict[str, str]:
        response.headers["Cache-Control"] = "no-store"
        return {"secret": "canary"}

    app_of(api).include_router(routes)
    first = await api.request("POST", "/shown-once", headers=KEY)
    assert first.json() == {"secret": "canary"}
    kept = owner.execute("SELECT status, headers, body FROM foliot.idempotency_keys").fetchone()
    assert kept == (200, None, None)


async def test_a_refusal_that_is_answered_and_not_raised_leaves_the_key_free(api: ApiHarness) -> None:
    routes, asked = api_router("secrets"), []

    @routes.post("/refused-once")
    async def refused_once(caller: Viewer) -> Response:
        asked.append(caller)
        return Response(status_code=409 if len(asked) == 1 else 204)

    app_of(api).include_router(routes)
    answers = [(await api.request("POST", "/refused-once", headers=KEY)).status_code for _ in range(3)]
    assert (answers, len(asked)) == ([409, 204, 204], 2)


async def test_a_key_is_made_once_and_a_repeat_is_refused_at_once(api: ApiHarness, owner: Any) -> None:
    first = await api.request("POST", "/keys", json={"name": "laptop"}, headers=KEY)
    assert first.status_code == 201, first.text
    again = await api.request("POST", "/keys", json={"name": "laptop"}, headers=KEY)
    assert (again.status_code, again.json()["code"]) == (409, "idempotency_answer_lost")
    assert first.json()["id"] in again.json()["detail"]
    assert "Retry-After" not in again.headers
    assert "revoke the key and make another" in again.json()["errors"][0]["hint"]
    assert owner.execute("SELECT body FROM foliot.idempotency_keys").fetchone() == (None,)
    assert owner.execute("SELECT count(*) FROM foliot.api_keys WHERE name = 'laptop'").fetchone() == (1,)


async def test_what_belongs_to_no_workspace_is_done_once_too(
    api: ApiHarness, owner: Any, clock: ManualClock
) -> None:
    body = {"slug": "new", "name": "New"}
    first = await api.request("POST", "/workspaces", who="system", json=body, headers=KEY)
    again = await api.request("POST", "/workspaces", who="system", json=body, headers=KEY)
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json()), again.text
    assert owner.execute("SELECT done_at IS NOT NULL FROM foliot.idempotency_keys").fetchone() == (True,)


async def test_every_post_says_that_it_takes_a_key(database: Database) -> None:
    async def probe() -> Readiness:
        return Readiness()

    app = create_app(probe, asyncio.Event(), database, lambda _: None)
    for _ in range(2):
        schema = describe_api(app)
    posts = [item["post"] for item in schema["paths"].values() if "post" in item]
    assert posts
    for post in posts:
        named = [each["name"] for each in post["parameters"]]
        assert named.count("Idempotency-Key") == 1


def _forget_answer(owner: Any) -> None:
    """As if the process had died after the commit of what was asked for."""
    owner.execute("UPDATE foliot.idempotency_keys SET status = NULL, headers = NULL, body = NULL")


def _id(made: dict[str, Any]) -> JobId:
    return JobId(UUID(made["id"]))
