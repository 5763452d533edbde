"""`dry_run=true` on everything but a job's definition: it refuses what would be refused, tells what would be, keeps nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import MemberRole, PrincipalKind, parse_key
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.services.remote_hosts import register_host, worker_principal
from tests.web.conftest import ApiHarness, job

pytestmark = pytest.mark.anyio
DRY = {"dry_run": "true"}
DAILY = {"kind": "cron", "expr": "0 6 * * *"}
BLACKOUT = {
    "name": "holidays",
    "kind": "blackout",
    "otherwise": "defer",
    "rules": [{"kind": "absolute", "start": "2027-01-16T00:00:00Z", "end": "2027-01-17T00:00:00Z"}],
}
LATER = [{"kind": "absolute", "start": "2027-02-01T00:00:00Z", "end": "2027-02-02T00:00:00Z"}]
TABLES = [
    "jobs",
    "timers",
    "audit",
    "revisions",
    "runs",
    "ready",
    "waiting",
    "calendars",
    "job_calendars",
    "freezes",
    "api_keys",
    "principals",
    "workspaces",
    "limits",
    "rooms",
    "messages",
    "outbox",
    "hosts",
    "server_instances",
    "disabled_types",
    "budgets",
    "run_usage",
    "usage_days",
]


def everything(owner: Any) -> list[Any]:
    return [
        owner.execute(f"SELECT t::text FROM foliot.{table} AS t ORDER BY 1").fetchall() for table in TABLES
    ]


async def tried(
    api: ApiHarness,
    owner: Any,
    method: str,
    path: str,
    *,
    who: str = "acme",
    role: str = "admin",
    body: Any = None,
) -> dict[str, Any]:
    """It says what would be, and leaves neither a row nor a hint."""
    for _ in range(2):  # when a key was used last is written beside the first request
        await api.request("GET", "/me", who=who, role=role)
        await api.http._transport.app.state.authenticator.close()  # type: ignore[attr-defined]
    before = everything(owner)
    api.hints.clear()
    sign = "&" if "?" in path else "?"
    answer = await api.request(method, f"{path}{sign}dry_run=true", who=who, role=role, json=body)
    assert answer.status_code == 200, answer.text
    assert (everything(owner), api.hints) == (before, []), path
    assert "location" not in answer.headers
    reported: dict[str, Any] = answer.json()
    assert reported.get("dry_run", True) is True
    return reported


async def test_running_is_tried_with_what_would_become_of_the_run(api: ApiHarness, owner: Any) -> None:
    made = await api.create_job(payload={"full": True})
    path = f"/jobs/{made['id']}/run"
    reported = await tried(api, owner, "POST", path, role="operator", body={"input": {"x": 1}})
    assert (reported["run"]["status"], reported["run"]["trigger"]) == ("ready", "manual")
    assert reported["run"]["input"] == {"full": True, "x": 1}
    assert "no worker serves queue default" in reported["sentence"]
    assert (await api.request("GET", f"/runs/{reported['run']['id']}")).status_code == 404
    await api.request("POST", path)
    behind = await tried(api, owner, "POST", path)
    assert (behind["run"]["status"], "Run 2 waits" in behind["sentence"]) == ("waiting", True), behind


async def test_a_run_is_cancelled_and_made_again_in_a_try(api: ApiHarness, owner: Any) -> None:
    made = await api.create_job()
    run = (await api.request("POST", f"/jobs/{made['id']}/run")).json()
    reported = await tried(api, owner, "POST", f"/runs/{run['id']}/cancel", body={"reason": "why not"})
    assert reported["run"]["status"] == "cancelled"
    refused = await api.request("POST", f"/runs/{run['id']}/retry", params=DRY)
    assert refused.status_code == 409
    await api.request("POST", f"/runs/{run['id']}/cancel")
    again = await tried(api, owner, "POST", f"/runs/{run['id']}/retry")
    assert again["run"]["retry_of"] == run["id"]


async def test_skipping_is_tried_with_the_times_that_would_pass(api: ApiHarness, owner: Any) -> None:
    made = await api.create_job(schedule=DAILY)
    path = f"/jobs/{made['id']}/skip-next"
    reported = await tried(api, owner, "POST", path, body={"n": 2})
    assert (reported["count"], reported["next_run_at"]) == (2, "2027-01-18T06:00:00Z")
    refused = await api.request("DELETE", path, params=DRY)
    assert refused.status_code == 409
    assert (await api.request("POST", path)).json()["dry_run"] is False
    assert (await tried(api, owner, "DELETE", path))["job"]["id"] == made["id"]


async def test_calendars_are_tried_with_the_jobs_that_would_move(api: ApiHarness, owner: Any) -> None:
    reported = await tried(api, owner, "POST", "/calendars", body=BLACKOUT)
    assert (reported["calendar"]["name"], reported["jobs"], reported["moved"]) == ("holidays", 0, [])
    calendar = (await api.request("POST", "/calendars", json=BLACKOUT)).json()
    taken = await api.request("POST", "/calendars", json=BLACKOUT, params=DRY)
    assert taken.status_code == 409
    made = await api.create_job(schedule=DAILY, calendars=[calendar["id"]])
    assert made["next_run_at"] == "2027-01-17T00:00:00Z"
    path = f"/calendars/{calendar['id']}"
    moved = [
        {
            "job_id": made["id"],
            "job_name": "beat",
            "before": "2027-01-17T00:00:00Z",
            "after": "2027-01-16T06:00:00Z",
        }
    ]
    reported = await tried(api, owner, "PATCH", path, body={"rules": LATER})
    assert (reported["moved"], reported["jobs"], reported["complete"]) == (moved, 1, True)
    reported = await tried(api, owner, "PUT", path, body={**BLACKOUT, "rules": LATER})
    assert (reported["moved"], reported["calendar"]["revision"]) == (moved, 2)
    assert (await api.request("DELETE", path, params=DRY)).status_code == 409
    reported = await tried(api, owner, "DELETE", f"{path}?force=true")
    assert (reported["moved"], reported["calendar"]) == (moved, None)


async def test_freezes_are_tried_both_ways(api: ApiHarness, owner: Any, clock: ManualClock) -> None:
    made = await api.create_job()
    reported = await tried(api, owner, "POST", "/freezes", role="operator", body={"reason": "move"})
    assert reported["jobs"] == 1
    await api.request("POST", f"/jobs/{made['id']}/run")
    clock.advance(timedelta(seconds=1))
    freeze = (await api.request("POST", "/freezes", json={"reason": "move"})).json()
    clock.advance(timedelta(seconds=1))
    reported = await tried(api, owner, "POST", f"/freezes/{freeze['id']}/lift")
    assert (reported["freeze"]["status"], reported["runs"]) == ("over", 1)
    ahead = (
        await api.request("POST", "/freezes", json={"reason": "later", "start_at": "2027-02-01T00:00:00Z"})
    ).json()
    assert (await tried(api, owner, "DELETE", f"/freezes/{ahead['id']}"))["freeze"] is None


async def test_a_key_that_is_tried_is_no_key(api: ApiHarness, owner: Any) -> None:
    for who, role in (("acme", "viewer"), ("acme", "admin"), ("system", "admin")):
        reported = await tried(api, owner, "POST", "/keys", who=who, role=role, body={"name": "x"})
        assert "secret" not in str(reported)
        assert reported["key"]["name"] == "x"
        texts = [each for each in reported["key"].values() if isinstance(each, str)]
        assert not any(parse_key(text) for text in texts)
    narrow = (
        await api.request("POST", "/keys", role="admin", json={"name": "n", "scopes": ["viewer"]})
    ).json()
    api.keys["acme", "narrow"] = narrow["secret"]
    body = {"name": "x", "scopes": ["admin"]}
    assert (await api.request("POST", "/keys", role="narrow", params=DRY, json=body)).status_code == 403
    made = (await api.request("POST", "/keys", role="admin", json={"name": "y"})).json()
    path = f"/keys/{made['id']}"
    assert (await tried(api, owner, "PATCH", path, body={"name": "z"}))["key"]["name"] == "z"
    assert (await tried(api, owner, "POST", f"{path}/revoke"))["key"]["revoked_at"]
    assert (await tried(api, owner, "DELETE", path))["key"]["revoked_at"]


async def test_a_tried_key_under_an_idempotency_key_is_repeated_without_a_secret(api: ApiHarness) -> None:
    headers = {"Idempotency-Key": "k"}
    answers = [
        await api.request("POST", "/keys", params=DRY, json={"name": "x"}, headers=headers) for _ in range(2)
    ]
    assert [each.status_code for each in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    other = await api.request("POST", "/keys", json={"name": "x"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


async def test_members_are_tried_with_the_keys_that_would_end(api: ApiHarness, owner: Any) -> None:
    body = {"kind": "service", "name": "robot", "role": "editor"}
    assert (await tried(api, owner, "POST", "/members", body=body))["member"]["name"] == "robot"
    robot = (await api.request("POST", "/members", role="admin", json=body)).json()
    await api.request("POST", "/keys", role="admin", json={"name": "its", "principal": robot["id"]})
    path = f"/members/{robot['id']}"
    reported = await tried(api, owner, "PATCH", path, body={"role": "viewer"})
    assert (reported["member"]["role"], reported["revoked_keys"]) == ("viewer", 0)
    reported = await tried(api, owner, "DELETE", path)
    assert (reported["member"]["active"], reported["revoked_keys"]) == (False, 1)


async def test_workspaces_are_tried_with_what_would_end(api: ApiHarness, owner: Any) -> None:
    reported = await tried(api, owner, "POST", "/workspaces", who="system", body={"slug": "fresh"})
    assert reported["workspace"]["slug"] == "fresh"
    assert (
        await api.request("POST", "/workspaces", who="system", params=DRY, json={"slug": "acme"})
    ).status_code == 409
    reported = await tried(api, owner, "PATCH", "/workspaces/acme", who="system", body={"name": "ACME"})
    assert reported["workspace"]["name"] == "ACME"
    made = await api.create_job()
    await api.request("POST", f"/jobs/{made['id']}/run")
    reported = await tried(api, owner, "DELETE", "/workspaces/acme", who="system")
    assert (reported["jobs"], reported["keys"], reported["runs"]) == (1, 4, 1)
    assert reported["workspace"]["archived_at"]
    assert (await api.request("DELETE", "/workspaces/default", who="system", params=DRY)).status_code == 409


async def test_budgets_are_tried(api: ApiHarness, owner: Any) -> None:
    seen = await tried(api, owner, "PUT", "/budgets", body={"items": [{"unit": "usd", "amount": 5}]})
    assert (seen["dry_run"], seen["items"][0]["amount"]) == (True, "5")


async def test_limits_are_tried(api: ApiHarness, owner: Any) -> None:
    reported = await tried(api, owner, "PUT", "/limits", body={"key": "db", "cap": 2})
    assert (reported["key"], reported["cap"]) == ("db", 2)
    await api.request("PUT", "/limits", json={"key": "db", "cap": 2})
    assert (await tried(api, owner, "DELETE", "/limits?key=db"))["cap"] == 2


async def test_rooms_and_messages_are_tried(api: ApiHarness, owner: Any) -> None:
    preview = await tried(api, owner, "POST", "/rooms", body={"name": "ops", "key": "ops"})
    assert (await api.request("GET", f"/rooms/{preview['id']}")).status_code == 404
    room = (await api.request("POST", "/rooms", json={"name": "ops", "key": "ops"})).json()
    refused = await api.request("POST", "/rooms", params=DRY, json={"name": "ops", "key": "ops"})
    assert refused.status_code == 409
    path = f"/rooms/{room['id']}"
    assert (await tried(api, owner, "PATCH", path, body={"name": "night"}))["name"] == "night"
    assert (await tried(api, owner, "POST", f"{path}/messages", body={"text": "hello"}))["text"] == "hello"
    assert (await tried(api, owner, "DELETE", path))["id"] == room["id"]


async def test_hosts_and_their_instances_are_tried(api: ApiHarness, owner: Any, database: Database) -> None:
    workspace = api.ids["acme"]
    host = await register_host(database, worker_principal(workspace), "h1", "pvp")
    await host.leave()
    path = f"/hosts/{host.id}"
    assert (await tried(api, owner, "PATCH", path, body={"max_reads": 3}))["max_reads"] == 3
    added = await tried(api, owner, "POST", f"{path}/instances", body={"name": "pve"})
    assert added["name"] == "pve"
    [instance] = (await api.request("GET", path)).json()["instances"]
    found = await tried(
        api, owner, "PATCH", f"{path}/instances/{instance['id']}", body={"labels": {"a": "b"}}
    )
    assert found["labels"] == {"a": "b"}
    assert (await tried(api, owner, "DELETE", f"{path}/instances/{instance['id']}"))["instances"] == []
    assert (await tried(api, owner, "DELETE", path))["name"] == "h1"


async def test_switching_a_job_type_off_is_tried(api: ApiHarness, owner: Any) -> None:
    preview = await tried(api, owner, "PUT", "/job-types/http", body={"enabled": False, "reason": "x"})
    assert preview["enabled"] is False
    refused = await api.request(
        "PUT", "/job-types/nothing", role="admin", params=DRY, json={"enabled": False}
    )
    assert refused.status_code == 404


async def test_every_write_to_these_can_be_tried(api: ApiHarness) -> None:
    """But for what only ever tries or reads, and what is done to many by a field of its body."""
    nouns = tuple(
        f"/api/v1/{noun}"
        for noun in [
            "jobs",
            "runs",
            "calendars",
            "freezes",
            "keys",
            "members",
            "workspaces",
            "limits",
            "rooms",
            "hosts",
            "job-types",
            "secrets",
            "webhooks",
            "channels",
            "notification-rules",
            "incidents",
            "defaults",
            "deliveries",
        ]
    )
    described = (
        await api.http.get("/openapi.json", headers={"Authorization": f"Bearer {api.system}"})
    ).json()
    without = {
        f"{method.upper()} {path.removeprefix('/api/v1')}"
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if method in {"post", "put", "patch", "delete"}
        and path.startswith(nouns)
        and "dry_run" not in {each["name"] for each in operation.get("parameters", ())}
    }
    in_body = {
        "POST /jobs/bulk",
        "POST /jobs/batch-delete",
        "POST /jobs/{job_id}/backfill",
        "POST /runs/bulk",
    }
    assert without == in_body | {"POST /freezes/preview", "POST /calendars/ics"}


async def test_an_agent_tries_no_more_than_it_may_do(api: ApiHarness) -> None:
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    made = await api.create_job()
    for verb in ("run", "skip-next"):
        answer = await api.request("POST", f"/jobs/{made['id']}/{verb}", role="agent", params=DRY, json={})
        assert answer.status_code == 404, verb
    shared: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/calendars", BLACKOUT),
        ("POST", "/freezes", {"reason": "x"}),
        ("PUT", "/limits", {"key": "db", "cap": 1}),
        ("PUT", "/budgets", {"items": []}),
        ("POST", "/members", {"kind": "service", "name": "x", "role": "viewer"}),
        ("POST", "/workspaces", {"slug": "x"}),
    ]
    for method, path, body in shared:
        answer = await api.request(method, path, role="agent", params=DRY, json=body)
        assert answer.status_code == 403, path
    assert (await api.request("POST", "/jobs", role="agent", params=DRY, json=job())).status_code == 200
