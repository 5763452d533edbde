"""/secrets: written and never read; who may; and what jobs may name."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.services.secrets.vault import FixedKeys, MasterKey, Vault
from foliot.storage.tx import Database
from foliot.testing.fixtures import InMemoryKeys, a_vault
from tests.web.conftest import ApiHarness, job, open_api, problems

pytestmark = pytest.mark.anyio
VALUE = "plain-8c1e0f-value"


async def made(api: ApiHarness, name: str = "crm-token", **fields: Any) -> dict[str, Any]:
    answer = await api.request(
        "POST", "/secrets", role="admin", json={"name": name, "value": VALUE, **fields}
    )
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/api/v1/secrets/{found['id']}"
    return found


def naming(*names: str, **fields: Any) -> dict[str, Any]:
    headers = {f"x-{name}": {"secret": name} for name in names}
    return job(config={"url": "https://example.test", "headers": headers}, **fields)


async def test_a_secret_is_answered_without_its_value(api: ApiHarness) -> None:
    found = await made(api)
    assert set(found) == {
        "id", "name", "version", "agents", "job_count", "used_by", "readable", "created_at", "updated_at",
    }  # fmt: skip
    assert (found["version"], found["job_count"], found["readable"]) == (1, 0, True)
    shown = await api.request("GET", f"/secrets/{found['id']}", role="viewer")
    assert (shown.json(), shown.headers["etag"]) == (found, '"1"')
    listed = (await api.request("GET", "/secrets", role="viewer")).json()
    assert listed == {"items": [found], "next_cursor": None}
    assert (await api.request("GET", "/secrets?name=crm-token")).json()["items"] == [found]
    assert (await api.request("GET", "/secrets?name=crm")).json()["items"] == []


async def test_secrets_are_listed_by_name_a_page_at_a_time(api: ApiHarness) -> None:
    for name in ("c", "a", "b"):
        await made(api, name)
    first = (await api.request("GET", "/secrets", params={"limit": 2})).json()
    assert [each["name"] for each in first["items"]] == ["a", "b"]
    rest = (await api.request("GET", "/secrets", params={"cursor": first["next_cursor"]})).json()
    assert ([each["name"] for each in rest["items"]], rest["next_cursor"]) == (["c"], None)


async def test_a_new_value_is_a_new_version_for_whoever_has_seen_the_last(api: ApiHarness) -> None:
    found = await made(api)
    path = f"/secrets/{found['id']}"
    changed = await api.request("PUT", path, role="admin", json={"value": "two"}, headers={"If-Match": '"1"'})
    assert (changed.json()["version"], changed.headers["etag"]) == (2, '"2"')
    stale = await api.request("PUT", path, role="admin", json={"value": "three"}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412


async def test_administrators_write_and_everybody_else_only_looks(api: ApiHarness) -> None:
    found = await made(api)
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/secrets", {"json": {"name": "x", "value": "y"}}),
        ("PUT", f"/secrets/{found['id']}", {"json": {"value": "y"}}),
        ("PATCH", f"/secrets/{found['id']}", {"json": {"agents": []}}),
        ("DELETE", f"/secrets/{found['id']}", {}),
    ]
    for role in ("viewer", "operator", "editor"):
        answers = [
            (await api.request(method, path, role=role, **more)).status_code for method, path, more in asked
        ]
        assert answers == [403] * 4
    assert (await api.request("POST", "/master-key/rotate", role="admin", json={})).status_code == 403
    assert (await api.request("GET", "/master-key", role="admin")).status_code == 403


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"name": "with blank", "value": VALUE}, "/name"),
        ({"name": "-x", "value": VALUE}, "/name"),
        ({"name": "x" * 101, "value": VALUE}, "/name"),
        ({"name": "x", "value": ""}, "/value"),
        ({"name": "x", "value": VALUE * 10_000}, "/value"),
        ({"name": "x", "value": [VALUE]}, "/value"),
        ({"name": "x", "vaule": VALUE}, "/vaule"),
        ({"name": "x", "value": VALUE, "agents": [str(uuid4())]}, "/agents/0"),
    ],
)
async def test_what_is_wrong_is_reported_without_the_value(
    api: ApiHarness, body: dict[str, Any], where: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = await api.request("POST", "/secrets", role="admin", json=body)
    assert answer.status_code == 422, answer.text
    assert where in problems(answer)
    assert VALUE not in answer.text
    assert VALUE not in caplog.text


async def test_an_editor_names_a_secret_in_a_job_and_a_slip_is_pointed_at(api: ApiHarness) -> None:
    found = await made(api)
    answer = await api.request("POST", "/jobs", json=naming("crm-token"))
    assert answer.status_code == 201
    assert answer.json()["config"]["headers"] == {"x-crm-token": {"secret": "crm-token"}}
    wrong = await api.request("POST", "/jobs", json=naming("crm-tokn"))
    assert wrong.status_code == 422
    [problem] = wrong.json()["errors"]
    assert problem["pointer"] == "/config/headers/x-crm-tokn"
    assert problem["hint"] == 'Did you mean "crm-token"?'
    tried = await api.request("POST", "/jobs?dry_run=true", json=naming("crm-tokn"))
    assert tried.status_code == 422
    users = (await api.request("GET", f"/secrets/{found['id']}/jobs")).json()
    assert users["items"] == [{"id": answer.json()["id"], "name": "beat"}]


async def test_a_secret_in_use_goes_only_by_force(api: ApiHarness) -> None:
    found = await made(api)
    await api.request("POST", "/jobs", json=naming("crm-token", name="nightly"))
    path = f"/secrets/{found['id']}"
    refused = await api.request("DELETE", path, role="admin")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert '"nightly"' in refused.json()["detail"]
    assert (await api.request("DELETE", f"{path}?force=true", role="admin")).status_code == 204
    assert (await api.request("GET", path)).status_code == 404


async def test_a_secret_names_the_channels_webhooks_and_rooms_that_use_it(api: ApiHarness) -> None:
    value = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    secret = (
        await api.request("POST", "/secrets", role="admin", json={"name": "hook", "value": value})
    ).json()
    assert secret["used_by"] == []
    job_id = (await api.request("POST", "/jobs", role="admin", json=job())).json()["id"]
    use = {"secret": "hook"}
    webhook = {"name": "deploy", "kind": "trigger", "job_id": job_id, "secret": use}
    config = {"kind": "webhook", "url": "https://example.test/", "secret": use}
    for path, body in (
        ("/webhooks", webhook),
        ("/channels", {"name": "ops", "config": config}),
    ):
        made = await api.request("POST", path, role="admin", json=body)
        assert made.status_code == 201, made.text
    used_by = ['channel "ops"', 'webhook "deploy"']
    assert (await api.request("GET", f"/secrets/{secret['id']}", role="admin")).json()["used_by"] == used_by
    listed = (await api.request("GET", "/secrets", role="viewer")).json()["items"]
    assert [(each["used_by"], each["job_count"]) for each in listed] == [(used_by, 0)]
    refused = await api.request("DELETE", f"/secrets/{secret['id']}", role="admin")
    assert refused.status_code == 409
    assert 'is used by channel "ops", webhook "deploy".' in refused.json()["detail"]


async def test_an_agent_names_and_sees_what_it_was_given(api: ApiHarness) -> None:
    key = api.keys["acme", "agent"] = await api.create_key(
        "acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT
    )
    assert key
    mine = (await api.request("GET", "/me", role="agent")).json()["principal"]["id"]
    found = await made(api)
    assert (await api.request("GET", "/secrets", role="agent")).json()["items"] == []
    assert (await api.request("GET", f"/secrets/{found['id']}", role="agent")).status_code == 404
    assert (await api.request("POST", "/jobs", role="agent", json=naming("crm-token"))).status_code == 422
    path = f"/secrets/{found['id']}"
    given = await api.request("PATCH", path, role="admin", json={"agents": [mine]})
    assert (given.json()["agents"], given.json()["version"]) == ([mine], 1)
    assert (await api.request("POST", "/jobs", role="agent", json=naming("crm-token"))).status_code == 201
    assert [
        each["name"] for each in (await api.request("GET", "/secrets", role="agent")).json()["items"]
    ] == ["crm-token"]


async def test_an_agent_sees_no_other_agent_among_those_a_secret_was_given_to(api: ApiHarness) -> None:
    for name in ("ada", "ben"):
        api.keys["acme", name] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    ids = [(await api.request("GET", "/me", role=name)).json()["principal"]["id"] for name in ("ada", "ben")]
    found = await made(api, agents=ids)
    assert found["agents"] == ids
    [listed] = (await api.request("GET", "/secrets", role="ada")).json()["items"]
    one = (await api.request("GET", f"/secrets/{found['id']}", role="ada")).json()
    assert listed["agents"] == one["agents"] == ids[:1]


@pytest.mark.parametrize("keys", [1, 0], ids=["with a key", "before the first key"])
async def test_a_repeat_is_done_once_and_the_value_cannot_be_guessed_from_what_is_kept_of_it(
    api: ApiHarness, owner: Any, keys: int
) -> None:
    api.http._transport.app.state.vault = Vault(InMemoryKeys(*(MasterKey.new() for _ in range(keys))))  # type: ignore[attr-defined]
    body = json.dumps({"name": "pin", "value": "123456"}).encode()
    headers = {"Idempotency-Key": "once", "Content-Type": "application/json"}
    first = await api.request("POST", "/secrets", role="admin", content=body, headers=headers)
    again = await api.request("POST", "/secrets", role="admin", content=body, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["idempotent-replayed"] == "true"
    other = body.replace(b"123456", b"654321")
    assert (
        await api.request("POST", "/secrets", role="admin", content=other, headers=headers)
    ).status_code == 422
    digest = hashlib.sha256()
    for part in (b"POST", b"/api/v1/secrets", b"", body):
        digest.update(len(part).to_bytes(8, "big") + part)
    [(kept,)] = owner.execute("SELECT fingerprint FROM foliot.idempotency_keys").fetchall()
    assert bytes(kept) != digest.digest()


async def test_the_master_key_is_rotated_by_whoever_runs_the_installation(database: Database) -> None:
    vault = a_vault()
    async with open_api(database, vault=vault) as api:
        await made(api)
        before = (await api.request("GET", "/master-key", who="system")).json()
        assert before == {
            "present": vault.present, "known": [vault.present], "is_right": True, "secrets": 1, "under_other_keys": 0, "unreadable": 0,
        }  # fmt: skip
        done = (await api.request("POST", "/master-key/rotate", who="system", json={"new_key": True})).json()
        assert (done["rotated"], done["left"], done["unreadable"]) == (1, 0, 0)
        assert done["present"] != before["present"]
        after = (await api.request("GET", "/master-key", who="system")).json()
        assert after["known"] == [done["present"], before["present"]]


async def test_a_node_without_a_key_or_with_a_wrong_one_takes_no_secrets_and_says_what_to_do(
    database: Database,
) -> None:
    async with open_api(database) as api:
        found = await made(api)
        for vault in (Vault(FixedKeys()), a_vault(MasterKey.new())):
            api.http._transport.app.state.vault = vault  # type: ignore[attr-defined]
            answer = await api.request("POST", "/secrets", role="admin", json={"name": "x", "value": VALUE})
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            assert "master.key" in answer.text
            assert (await api.request("GET", f"/secrets/{found['id']}")).json()["readable"] is False


async def test_a_function_names_its_secrets_and_is_given_no_plain_text_for_one(api: ApiHarness) -> None:
    await made(api)
    named = {"call": "shop.jobs:sync", "secrets": {"token": {"secret": "crm-token"}}}
    assert (await api.request("POST", "/jobs", json=job(type="python", config=named))).status_code == 201
    plain = {**named, "secrets": {"token": VALUE}}
    refused = await api.request("POST", "/jobs", json=job(type="python", config=plain))
    assert problems(refused) == {"/config/secrets/token": "This must name a secret."}
    assert VALUE not in refused.text
