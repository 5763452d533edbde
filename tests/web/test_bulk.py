"""One thing done to many jobs by the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind, Scope
from foliot.domain.bulk import BulkOutcome, JobAction
from foliot.domain.errors import DatabaseUnavailable
from foliot.domain.ids import JobId, PrincipalId
from foliot.services.jobs import bulk as services_bulk
from foliot.services.jobs.bulk_steps import apply_to_batch
from foliot.storage.tx import Database, Role
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio


async def bulk(
    api: ApiHarness, action: str, *, role: str = "editor", who: str = "acme", **fields: Any
) -> Any:
    answer = await api.request("POST", "/jobs/bulk", role=role, who=who, json={"action": action, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def statuses(api: ApiHarness) -> dict[str, str]:
    found = (await api.request("GET", "/jobs", params={"q": "-status:completed"})).json()["items"]
    return {each["name"]: each["status"] for each in found}


@pytest.fixture
async def three(api: ApiHarness) -> list[str]:
    """Two with a tag, one without; the second is paused already."""
    made = [
        await api.create_job(name=name, tags=tags) for name, tags in (("a", ["x"]), ("b", ["x"]), ("c", []))
    ]
    await api.request("POST", f"/jobs/{made[1]['id']}/pause")
    return [each["id"] for each in made]


async def test_a_filter_pauses_what_it_finds_and_tells_what_was_so_already(
    api: ApiHarness, three: list[str]
) -> None:
    done = await bulk(api, "pause", q="tag:x", expected_count=2, args={"reason": "maintenance"})
    assert (done["found"], done["done"], done["already"], done["failed"]) == (2, 1, 1, 0)
    assert [(each["id"], each["outcome"]) for each in done["results"]] == [(three[1], "already")]
    assert await statuses(api) == {"a": "paused", "b": "paused", "c": "active"}
    assert (await api.request("GET", f"/jobs/{three[0]}")).json()["status_reason"] == "maintenance"


async def test_a_filter_that_finds_another_number_does_nothing(api: ApiHarness, three: list[str]) -> None:
    answer = await api.request(
        "POST", "/jobs/bulk", json={"action": "pause", "q": "tag:x", "expected_count": 3}
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "unexpected_count")
    assert "finds 2 jobs, not 3" in answer.json()["detail"]
    assert (await statuses(api))["a"] == "active"
    assert three


async def test_a_filter_needs_its_expected_count(api: ApiHarness, three: list[str]) -> None:
    answer = await api.request("POST", "/jobs/bulk", json={"action": "pause", "q": ""})
    assert (answer.status_code, list(problems(answer))) == (422, ["/expected_count"])
    assert "3 jobs" in answer.json()["errors"][0]["hint"]
    assert three


async def test_a_dry_run_says_what_would_become_of_them_and_does_nothing(
    api: ApiHarness, three: list[str], owner: Any
) -> None:
    before = owner.execute("SELECT count(*) FROM foliot.audit").fetchone()
    tried = await bulk(api, "resume", q="", dry_run=True)
    assert (tried["found"], tried["done"], tried["already"], tried["dry_run"]) == (3, 1, 2, True)
    assert await statuses(api) == {"a": "active", "b": "paused", "c": "active"}
    assert owner.execute("SELECT count(*) FROM foliot.audit").fetchone() == before
    assert three


async def test_ids_that_are_not_there_are_reported_and_stop_nothing(
    api: ApiHarness, three: list[str]
) -> None:
    foreign = (await api.create_job(who="globex"))["id"]
    random = str(uuid4())
    done = await bulk(api, "disable", ids=[three[0], foreign, random, three[0]])
    assert (done["found"], done["done"], done["failed"]) == (1, 1, 2)
    reported = {each["id"]: {**each, "id": None} for each in done["results"]}
    assert reported[foreign] == reported[random]
    assert reported[random]["outcome"] == "not_found"
    assert (await api.request("GET", f"/jobs/{foreign}", who="globex")).json()["status"] == "active"


async def test_a_job_that_cannot_is_reported_with_the_reason(
    api: ApiHarness, three: list[str], owner: Any
) -> None:
    owner.execute("UPDATE foliot.timers SET status = 'completed' WHERE job_id = %s", [three[0]])
    owner.execute("UPDATE foliot.jobs SET status = 'completed' WHERE id = %s", [three[0]])
    done = await bulk(api, "pause", ids=three)
    assert (done["done"], done["already"], done["failed"]) == (1, 1, 1)
    (failed,) = (each for each in done["results"] if each["outcome"] == "failed")
    assert (failed["id"], failed["code"]) == (three[0], "illegal_move")
    assert "completed" in failed["message"]


async def test_every_touched_job_has_its_entry_in_the_audit(
    api: ApiHarness, three: list[str], owner: Any
) -> None:
    await bulk(api, "disable", ids=three)
    await bulk(api, "enable", ids=three)
    found = owner.execute(
        "SELECT object_id, action FROM foliot.audit WHERE action IN ('job.disabled', 'job.resumed')"
    ).fetchall()
    assert sorted(found) == sorted(
        (each, action) for each in three for action in ("job.disabled", "job.resumed")
    )


async def test_running_many_makes_a_run_of_each(api: ApiHarness, three: list[str]) -> None:
    api.hints.clear()
    done = await bulk(api, "run", role="operator", ids=three)
    assert done["done"] == 3
    assert "ready" in api.hints
    runs = [(await api.request("GET", f"/jobs/{each}/runs")).json()["items"] for each in three]
    assert [[run["trigger"] for run in each] for each in runs] == [["manual"]] * 3


async def test_tags_are_put_on_and_taken_off_as_edits(api: ApiHarness, three: list[str]) -> None:
    done = await bulk(api, "tag", ids=three, args={"tags": ["x", "y"]})
    assert (done["done"], done["already"]) == (3, 0)
    done = await bulk(api, "tag", ids=three, args={"tags": ["y"]})
    assert (done["done"], done["already"]) == (0, 3)
    assert (await bulk(api, "untag", q="tag:y", expected_count=3, args={"tags": ["x"]}))["done"] == 3
    found = [(await api.request("GET", f"/jobs/{each}")).json() for each in three]
    assert [(each["tags"], each["revision"]) for each in found] == [(["y"], 3)] * 3


async def test_many_are_archived_or_removed_with_all_they_left(
    api: ApiHarness, three: list[str], owner: Any
) -> None:
    archived = await api.request("POST", "/jobs/batch-delete", json={"q": "tag:x", "expected_count": 2})
    assert (archived.status_code, archived.json()["done"]) == (200, 2)
    assert await statuses(api) == {"a": "archived", "b": "archived", "c": "active"}
    again = await api.request("POST", "/jobs/batch-delete", json={"ids": three})
    assert (again.json()["done"], again.json()["already"]) == (1, 2)
    purged = await api.request("POST", "/jobs/batch-delete", role="admin", json={"ids": three, "purge": True})
    assert purged.json()["done"] == 3
    refused = await api.request("POST", "/jobs/batch-delete", json={"ids": three, "purge": True})
    assert refused.status_code == 403
    assert owner.execute("SELECT count(*) FROM foliot.jobs").fetchone() == (0,)


async def test_a_failure_midway_undoes_its_own_job_alone(api: ApiHarness) -> None:
    first = await api.create_job(name="first")
    await api.create_job(
        name="second", schedule={"kind": "manual"}, depends_on=[{"job": first["id"], "on": "success"}]
    )
    third = await api.create_job(name="third")
    done = await api.request("POST", "/jobs/batch-delete", json={"ids": [first["id"], third["id"]]})
    assert (done.json()["done"], done.json()["failed"]) == (1, 1)
    assert "second" in done.json()["results"][0]["message"]
    found = await statuses(api)
    assert (found["first"], found["second"], found["third"]) == ("active", "active", "archived")


async def test_an_agent_acts_on_its_own_jobs_alone(api: ApiHarness, three: list[str]) -> None:
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    mine = (
        await api.request(
            "POST",
            "/jobs",
            role="agent",
            json=job(name="mine", schedule={"kind": "manual"}),
        )
    ).json()["id"]
    assert (await bulk(api, "pause", role="agent", q="", expected_count=1))["done"] == 1
    done = await bulk(api, "disable", role="agent", ids=[*three, mine])
    assert (done["found"], done["done"], done["failed"]) == (1, 1, 3)
    assert (await statuses(api))["a"] == "active"


@pytest.mark.parametrize(
    ("action", "role", "code"),
    [
        ("pause", "viewer", 403),
        ("tag", "operator", 403),
        ("archive", "operator", 403),
        ("pause", "operator", 200),
    ],
)
async def test_who_may_do_what_to_many(
    api: ApiHarness, three: list[str], action: str, role: str, code: int
) -> None:
    body = {"action": action, "ids": three, "args": {"tags": ["z"]}}
    assert (await api.request("POST", "/jobs/bulk", role=role, json=body)).status_code == code


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"action": "explode", "ids": []}, "/action"),
        ({"action": "pause"}, ""),
        ({"action": "pause", "q": "", "ids": [str(uuid4())]}, ""),
        ({"action": "pause", "q": "stauts:x", "expected_count": 1}, "/q"),
        ({"action": "tag", "ids": [str(uuid4())]}, "/args/tags"),
        ({"action": "pause", "ids": ["7"]}, "/ids/0"),
    ],
)
async def test_a_wrong_order_is_refused_where_it_is_wrong(
    shared_api: ApiHarness, body: Any, pointer: str
) -> None:
    answer = await shared_api.request("POST", "/jobs/bulk", json=body)
    assert answer.status_code == 422, answer.text
    assert pointer in problems(answer)


async def many(api: ApiHarness, count: int) -> list[str]:
    return [(await api.create_job(name=f"job {n}", schedule={"kind": "manual"}))["id"] for n in range(count)]


async def test_what_the_time_does_not_allow_remains_and_is_done_behind_the_last(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch, owner: Any
) -> None:
    monkeypatch.setattr(services_bulk, "PIECE", 2)
    monkeypatch.setattr(services_bulk.act, "__kwdefaults__", {"dry_run": False, "lasts": 0.0})
    ids, counted = await many(api, 5), 5
    after, dones = None, []
    while True:
        done = await bulk(api, "run", q="", expected_count=counted, after=after)
        dones.append((done["found"], done["done"], done["remaining"]))
        after, counted = done["next_after"], done["remaining"]
        if not counted:
            break
    assert dones == [(5, 2, 3), (3, 2, 1), (1, 1, 0)]
    assert after is None
    assert owner.execute("SELECT count(*), count(DISTINCT job_id) FROM foliot.runs").fetchone() == (5, 5)
    assert len(ids) == 5


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("action", ["run", "pause", "tag"])
async def test_a_repeat_after_a_death_midway_goes_on_behind_what_was_done(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch, owner: Any, action: str, named: bool
) -> None:
    monkeypatch.setattr(services_bulk, "PIECE", 2)
    monkeypatch.setattr(services_bulk, "LARGE_PIECE", 2)
    ids = await many(api, 5)
    target = {"ids": ids} if named else {"q": "status:active", "expected_count": 5}
    body = {"action": action, "args": {"tags": ["x"]}, **target}
    asked: dict[str, Any] = {"json": body, "headers": {"Idempotency-Key": "many"}}
    keep = services_bulk._keep

    async def die(tx: Any, by: Any, order: Any, tally: Any, *, is_over: bool) -> None:
        if tally.passed > 2:
            raise DatabaseUnavailable("The database went away.")
        await keep(tx, by, order, tally, is_over=is_over)

    monkeypatch.setattr(services_bulk, "_keep", die)
    assert (await api.request("POST", "/jobs/bulk", **asked)).status_code == 503
    monkeypatch.setattr(services_bulk, "_keep", keep)
    again = await api.request("POST", "/jobs/bulk", **asked)
    assert again.status_code == 200, again.text
    reported = again.json()
    assert (reported["found"], reported["done"] + reported["already"], reported["failed"]) == (5, 5, 0)
    assert (await api.request("POST", "/jobs/bulk", **asked)).json() == reported
    actions = owner.execute(
        "SELECT count(*), count(DISTINCT object_id) FROM foliot.audit WHERE action = ANY (%s)",
        [["run.requested", "job.paused", "job.edited"]],
    ).fetchone()
    assert actions == (5, 5), "each was done once"


async def test_where_only_the_answer_was_lost_the_repeat_tells_how_it_went(
    api: ApiHarness, owner: Any, clock: ManualClock
) -> None:
    asked: dict[str, Any] = {
        "json": {"action": "run", "ids": [*await many(api, 2), str(uuid4())]},
        "headers": {"Idempotency-Key": "many"},
    }
    await api.request("POST", "/jobs/bulk", **asked)
    owner.execute("UPDATE foliot.idempotency_keys SET status = NULL, headers = NULL, body = NULL")
    clock.advance(timedelta(seconds=5))
    again = await api.request("POST", "/jobs/bulk", **asked)
    assert (again.status_code, again.json()["code"]) == (409, "idempotency_answer_lost")
    assert "run of many jobs: 2 done, 0 so already, 1 failed" in again.json()["detail"]


async def test_a_pause_of_many_must_end_in_the_future(api: ApiHarness) -> None:
    body = {"action": "pause", "ids": await many(api, 1), "args": {"until": "2020-01-01T00:00:00Z"}}
    answer = await api.request("POST", "/jobs/bulk", json=body)
    assert (answer.status_code, list(problems(answer))) == (422, ["/args/until"])


async def test_a_job_given_away_since_it_was_found_is_not_stopped(
    api: ApiHarness, database: Database, owner: Any
) -> None:
    key = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    api.keys["acme", "agent"] = key
    made = (await api.request("POST", "/jobs", role="agent", json=job())).json()
    agent = PrincipalId(UUID(made["owner"]))
    owner.execute("UPDATE foliot.jobs SET owner_id = NULL WHERE id = %s", [made["id"]])
    async with database.tx(Role.APP, api.ids["acme"]) as tx:
        order = services_bulk.BulkOrder(JobAction.PAUSE)
        scope = Scope(api.ids["acme"], TEST, visible_owner=agent)
        [reported] = await apply_to_batch(tx, [JobId(UUID(made["id"]))], order, scope, dry_run=False)
    assert reported.outcome is BulkOutcome.NOT_FOUND


async def test_archived_jobs_come_back_together_and_others_need_no_change(
    api: ApiHarness, three: list[str]
) -> None:
    await bulk(api, "archive", ids=three[:2])
    refused = await api.request(
        "POST", "/jobs/bulk", role="operator", json={"action": "restore", "ids": three[:2]}
    )
    assert refused.status_code == 403
    done = await bulk(api, "restore", q="status:archived", expected_count=2)
    assert (done["done"], done["already"], done["failed"]) == (2, 0, 0)
    assert await statuses(api) == {"a": "disabled", "b": "disabled", "c": "active"}
    again = await bulk(api, "restore", ids=three)
    assert (again["done"], again["already"]) == (0, 3)


async def test_a_restore_of_many_stays_within_the_quota_of_jobs(api: ApiHarness, three: list[str]) -> None:
    await bulk(api, "archive", ids=three)
    await api.create_job(name="d")
    await api.request("PATCH", "/workspaces/acme", who="system", json={"quotas": {"jobs": 2}})
    answer = await api.request("POST", "/jobs/bulk", json={"action": "restore", "ids": three})
    assert (answer.status_code, answer.json()["code"]) == (422, "quota_exceeded")
    assert set((await statuses(api)).items()) > {("a", "archived"), ("b", "archived"), ("c", "archived")}
