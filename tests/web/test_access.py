"""Who may do what: every operation by every role, keys that do not count, and workspaces that know nothing of each other."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts

from foliot.domain.access import MemberRole, Permission, PrincipalKind
from foliot.services.scheduling.tick import tick
from foliot.testing.clock import ManualClock
from foliot.web.app import OPEN, require_declared_routes
from foliot.web.routes import permission_of
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
# Every operation, and the least role that may. A new route must be added here.
TABLE = {
    ("POST", "/api/v1/jobs"): "editor",
    ("GET", "/api/v1/jobs"): "viewer",
    ("GET", "/api/v1/jobs/{job_id}"): "viewer",
    ("PUT", "/api/v1/jobs/{job_id}"): "editor",
    ("PATCH", "/api/v1/jobs/{job_id}"): "editor",
    ("DELETE", "/api/v1/jobs/{job_id}"): "editor",
    ("GET", "/api/v1/jobs/{job_id}/revisions"): "viewer",
    ("POST", "/api/v1/jobs/{job_id}/revert"): "editor",
    ("GET", "/api/v1/jobs/{job_id}/runs"): "viewer",
    ("GET", "/api/v1/jobs/{job_id}/next"): "viewer",
    ("POST", "/api/v1/jobs/{job_id}/run"): "operator",
    ("POST", "/api/v1/jobs/{job_id}/pause"): "operator",
    ("POST", "/api/v1/jobs/{job_id}/resume"): "operator",
    ("POST", "/api/v1/jobs/{job_id}/disable"): "operator",
    ("POST", "/api/v1/jobs/{job_id}/skip-next"): "operator",
    ("DELETE", "/api/v1/jobs/{job_id}/skip-next"): "operator",
    ("POST", "/api/v1/jobs/{job_id}/backfill"): "operator",
    ("POST", "/api/v1/jobs/bulk"): "operator",
    ("POST", "/api/v1/jobs/batch-delete"): "editor",
    ("GET", "/api/v1/jobs/{job_id}/explain"): "viewer",
    ("GET", "/api/v1/jobs/{job_id}/stats"): "viewer",
    ("GET", "/api/v1/runs"): "viewer",
    ("GET", "/api/v1/recent-runs"): "viewer",
    ("GET", "/api/v1/runs/summary"): "viewer",
    ("GET", "/api/v1/agenda.ics"): "viewer",
    ("GET", "/api/v1/capacity/shares"): "system",
    ("GET", "/api/v1/runs/{run_id}"): "viewer",
    ("GET", "/api/v1/runs/{run_id}/attempts"): "viewer",
    ("GET", "/api/v1/runs/{run_id}/explain"): "viewer",
    ("POST", "/api/v1/runs/bulk"): "operator",
    ("POST", "/api/v1/runs/{run_id}/cancel"): "operator",
    ("POST", "/api/v1/runs/{run_id}/retry"): "operator",
    ("POST", "/api/v1/runs/{run_id}/usage"): "operator",
    ("GET", "/api/v1/usage"): "viewer",
    ("GET", "/api/v1/budgets"): "viewer",
    ("PUT", "/api/v1/budgets"): "admin",
    ("GET", "/api/v1/stats"): "viewer",
    ("GET", "/api/v1/stats/now"): "viewer",
    ("GET", "/api/v1/agenda/density"): "viewer",
    ("GET", "/api/v1/agenda"): "viewer",
    ("POST", "/api/v1/preview"): "viewer",
    ("GET", "/api/v1/me"): "viewer",
    ("POST", "/api/v1/keys"): "viewer",
    ("GET", "/api/v1/keys"): "viewer",
    ("GET", "/api/v1/keys/{key_id}"): "viewer",
    ("PATCH", "/api/v1/keys/{key_id}"): "viewer",
    ("POST", "/api/v1/keys/{key_id}/revoke"): "viewer",
    ("DELETE", "/api/v1/keys/{key_id}"): "viewer",
    ("POST", "/api/v1/members/{member_id}/invite"): "admin",
    ("POST", "/api/v1/invites/accept"): "invite",
    ("POST", "/api/v1/members"): "admin",
    ("GET", "/api/v1/members"): "viewer",
    ("GET", "/api/v1/members/{member_id}"): "viewer",
    ("PATCH", "/api/v1/members/{member_id}"): "admin",
    ("DELETE", "/api/v1/members/{member_id}"): "admin",
    ("POST", "/api/v1/workspaces"): "system",
    ("GET", "/api/v1/workspaces"): "system",
    ("GET", "/api/v1/workspaces/{workspace}"): "system",
    ("PATCH", "/api/v1/workspaces/{workspace}"): "system",
    ("DELETE", "/api/v1/workspaces/{workspace}"): "system",
    ("GET", "/api/v1/audit"): "admin",
    ("GET", "/api/v1/calendars"): "viewer",
    ("POST", "/api/v1/calendars"): "editor",
    ("GET", "/api/v1/calendars/{calendar_id}"): "viewer",
    ("GET", "/api/v1/calendars/{calendar_id}/jobs"): "viewer",
    ("GET", "/api/v1/calendars/{calendar_id}/year"): "viewer",
    ("GET", "/api/v1/calendars/countries"): "viewer",
    ("GET", "/api/v1/calendars/holidays"): "viewer",
    ("POST", "/api/v1/calendars/ics"): "editor",
    ("PUT", "/api/v1/calendars/{calendar_id}"): "editor",
    ("PATCH", "/api/v1/calendars/{calendar_id}"): "editor",
    ("DELETE", "/api/v1/calendars/{calendar_id}"): "editor",
    ("GET", "/api/v1/freezes"): "viewer",
    ("POST", "/api/v1/freezes"): "operator",
    ("POST", "/api/v1/freezes/preview"): "operator",
    ("GET", "/api/v1/freezes/{freeze_id}"): "viewer",
    ("POST", "/api/v1/freezes/{freeze_id}/lift"): "operator",
    ("DELETE", "/api/v1/freezes/{freeze_id}"): "operator",
    ("GET", "/api/v1/workers"): "viewer",
    ("GET", "/api/v1/events"): "viewer",
    ("GET", "/api/v1/runs/{run_id}/logs"): "viewer",
    ("GET", "/api/v1/queues"): "viewer",
    ("GET", "/api/v1/leases"): "viewer",
    ("GET", "/api/v1/job-types"): "viewer",
    ("GET", "/api/v1/hosts"): "viewer",
    ("GET", "/api/v1/hosts/{host_id}"): "viewer",
    ("PATCH", "/api/v1/hosts/{host_id}"): "editor",
    ("DELETE", "/api/v1/hosts/{host_id}"): "editor",
    ("POST", "/api/v1/hosts/{host_id}/instances"): "editor",
    ("PATCH", "/api/v1/hosts/{host_id}/instances/{instance_id}"): "editor",
    ("DELETE", "/api/v1/hosts/{host_id}/instances/{instance_id}"): "editor",
    ("POST", "/api/v1/worker/register"): "worker",
    ("POST", "/api/v1/worker/claim"): "worker",
    ("POST", "/api/v1/worker/heartbeat"): "worker",
    ("POST", "/api/v1/worker/stops"): "worker",
    ("POST", "/api/v1/worker/log"): "worker",
    ("POST", "/api/v1/worker/artifact"): "worker",
    ("POST", "/api/v1/worker/report"): "worker",
    ("POST", "/api/v1/worker/leave"): "worker",
    ("GET", "/api/v1/runs/{run_id}/artifacts"): "viewer",
    ("GET", "/api/v1/runs/{run_id}/artifacts/{artifact_name}"): "viewer",
    ("GET", "/api/v1/limits"): "viewer",
    ("PUT", "/api/v1/limits"): "editor",
    ("DELETE", "/api/v1/limits"): "editor",
    ("POST", "/api/v1/secrets"): "admin",
    ("GET", "/api/v1/secrets"): "viewer",
    ("GET", "/api/v1/secrets/{secret_id}"): "viewer",
    ("GET", "/api/v1/secrets/{secret_id}/jobs"): "viewer",
    ("PUT", "/api/v1/secrets/{secret_id}"): "admin",
    ("PATCH", "/api/v1/secrets/{secret_id}"): "admin",
    ("DELETE", "/api/v1/secrets/{secret_id}"): "admin",
    ("GET", "/api/v1/master-key"): "system",
    ("POST", "/api/v1/master-key/rotate"): "system",
    ("PUT", "/api/v1/job-types/{job_type}"): "admin",
    ("POST", "/api/v1/rooms"): "editor",
    ("GET", "/api/v1/rooms"): "viewer",
    ("GET", "/api/v1/rooms/{room_id}"): "viewer",
    ("PATCH", "/api/v1/rooms/{room_id}"): "editor",
    ("DELETE", "/api/v1/rooms/{room_id}"): "editor",
    ("POST", "/api/v1/rooms/{room_id}/messages"): "operator",
    ("GET", "/api/v1/rooms/{room_id}/messages"): "viewer",
    ("GET", "/api/v1/rooms/{room_id}/deliveries"): "viewer",
    ("POST", "/api/v1/rooms/{room_id}/redeliver"): "operator",
    ("POST", "/api/v1/jobs/{job_id}/restore"): "editor",
    ("POST", "/api/v1/batch"): "editor",
    ("POST", "/api/v1/imports"): "editor",
    ("GET", "/api/v1/defaults"): "viewer",
    ("PATCH", "/api/v1/defaults"): "admin",
    ("POST", "/api/v1/channels"): "editor",
    ("GET", "/api/v1/channels"): "viewer",
    ("GET", "/api/v1/channels/{channel_id}"): "viewer",
    ("PUT", "/api/v1/channels/{channel_id}"): "editor",
    ("DELETE", "/api/v1/channels/{channel_id}"): "editor",
    ("POST", "/api/v1/channels/{channel_id}/enable"): "operator",
    ("POST", "/api/v1/channels/{channel_id}/disable"): "operator",
    ("POST", "/api/v1/channels/{channel_id}/test"): "operator",
    ("POST", "/api/v1/notification-rules"): "editor",
    ("GET", "/api/v1/notification-rules"): "viewer",
    ("GET", "/api/v1/notification-rules/{rule_id}"): "viewer",
    ("PUT", "/api/v1/notification-rules/{rule_id}"): "editor",
    ("DELETE", "/api/v1/notification-rules/{rule_id}"): "editor",
    ("GET", "/api/v1/incidents"): "viewer",
    ("GET", "/api/v1/incidents/{incident_id}"): "viewer",
    ("POST", "/api/v1/incidents/{incident_id}/acknowledge"): "operator",
    ("POST", "/api/v1/incidents/{incident_id}/mute"): "operator",
    ("POST", "/api/v1/incidents/{incident_id}/unmute"): "operator",
    ("POST", "/api/v1/incidents/{incident_id}/snooze"): "operator",
    ("POST", "/api/v1/incidents/{incident_id}/close"): "operator",
    ("PUT", "/api/v1/incidents/{incident_id}/note"): "operator",
    ("GET", "/api/v1/deliveries"): "viewer",
    ("GET", "/api/v1/deliveries/{delivery_id}"): "viewer",
    ("POST", "/api/v1/deliveries/{delivery_id}/replay"): "operator",
    ("POST", "/api/v1/webhooks"): "editor",
    ("GET", "/api/v1/webhooks"): "viewer",
    ("GET", "/api/v1/webhooks/{webhook_id}"): "viewer",
    ("PUT", "/api/v1/webhooks/{webhook_id}"): "editor",
    ("POST", "/api/v1/webhooks/{webhook_id}/rotate"): "editor",
    ("DELETE", "/api/v1/webhooks/{webhook_id}"): "editor",
    ("GET", "/openapi.json"): "viewer",
}


def app_of(api: ApiHarness) -> FastAPI:
    app = api.http._transport.app  # type: ignore[attr-defined]
    assert isinstance(app, FastAPI)
    return app


async def send(api: ApiHarness, method: str, path: str, key: str | None, **more: Any) -> Any:
    path = path.replace("{job_id}", str(uuid4())).replace("{run_id}", str(uuid4()))
    if path.endswith("/events"):
        path += "?types=nonsense"  # a stream that is let in has no end
    if path.endswith("/limits") and method == "DELETE":
        path += "?key=db"  # the workspace's own is an administrator's
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return await api.http.request(method, path, headers=headers, **more)


async def test_the_table_names_every_operation_and_its_permission(shared_api: ApiHarness) -> None:
    found = {
        (method, str(route.path)): permission_of(route)
        for route in iter_route_contexts(app_of(shared_api).routes)
        if route.path not in OPEN
        for method in route.methods or ()
    }
    assert found == {operation: Permission(role) for operation, role in TABLE.items()}


@pytest.mark.parametrize("role", list(MemberRole))
async def test_each_role_may_what_the_table_says_and_no_more(
    shared_api: ApiHarness, role: MemberRole
) -> None:
    for (method, path), least in TABLE.items():
        answer = await send(shared_api, method, path, shared_api.keys["acme", role])
        may = least not in {"system", "worker", "invite"} and role.is_at_least(MemberRole(least))
        assert (answer.status_code != 403) == may, (method, path, answer.text)
        assert answer.status_code != 401
        if not may:
            reported = f"This needs the role {least}; this key has {role}."
            if least == "worker":
                reported = "This is for keys of the scope worker, which belong to one workspace."
            if least == "invite":
                reported = "Only an invite can be used here."
            assert answer.json()["detail"] == reported


async def test_without_a_key_nothing_is_reported_but_how_to_bring_one(shared_api: ApiHarness) -> None:
    for method, path in TABLE:
        answer = await send(shared_api, method, path, None)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), (method, path)
        assert answer.headers["www-authenticate"] == 'Bearer realm="foliot"'
        assert answer.headers["content-type"] == "application/problem+json"


async def test_revoked_expired_foreign_and_broken_keys_are_all_the_same(
    api: ApiHarness, owner: Any, clock: ManualClock
) -> None:
    revoked, expired, retired = [await api.create_key("acme", MemberRole.ADMIN, name=name) for name in "abc"]
    owner.execute("UPDATE foliot.api_keys SET revoked_at = now() WHERE name = 'a'")
    owner.execute("UPDATE foliot.api_keys SET expires_at = %s WHERE name = 'b'", [clock.now()])
    owner.execute("UPDATE foliot.principals SET active = false WHERE name = 'c'")
    bodies = set()
    for key in (revoked, expired, retired, "fol_nonsense", revoked[:-1] + "x", "\u00e9", "a b c"):
        headers = {b"Authorization": f"Bearer {key}".encode("latin-1"), b"X-Request-Id": b"same-for-all"}
        answer = await api.http.get("/api/v1/jobs", headers=headers)
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        bodies.add(answer.text)
    assert len(bodies) == 1


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "fol_abc"])
async def test_other_ways_to_authenticate_are_refused(shared_api: ApiHarness, header: str) -> None:
    answer = await shared_api.http.get("/api/v1/jobs", headers={"Authorization": header})
    assert answer.status_code == 401


async def test_the_key_is_looked_at_before_the_body(shared_api: ApiHarness) -> None:
    answer = await shared_api.http.post("/api/v1/jobs", content=b"{" * 2_000_000)
    assert answer.status_code == 401


async def test_a_key_of_the_installation_chooses_its_workspace(api: ApiHarness) -> None:
    made = await api.create_job(who="globex")
    chosen = {"Foliot-Workspace": "globex"}
    assert (await api.request("GET", f"/jobs/{made['id']}", who="system", headers=chosen)).status_code == 200
    assert (await api.request("GET", f"/jobs/{made['id']}", who="system")).status_code == 404  # in `default`
    for slug in ("nowhere", "x" * 500, "no such"):
        answer = await api.request("GET", "/jobs", who="system", headers={"Foliot-Workspace": slug})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_any_other_key_stays_in_its_own_workspace(shared_api: ApiHarness) -> None:
    own = await shared_api.request("GET", "/jobs", headers={"Foliot-Workspace": "acme"})
    assert own.status_code == 200
    answers = [
        (
            await shared_api.request(
                "GET", "/jobs", headers={"Foliot-Workspace": slug, "X-Request-Id": "same-for-all"}
            )
        )
        for slug in ("globex", "nowhere")
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.text for answer in answers}) == 1


async def test_another_workspace_s_things_answer_exactly_like_things_that_do_not_exist(
    api: ApiHarness, clock: ManualClock
) -> None:
    made = await api.create_job(name="canary-5b1f", schedule={"kind": "interval", "every": "1s"})
    clock.set(clock.now().replace(minute=1))
    await tick(api.database)
    (run,) = (await api.request("GET", f"/jobs/{made['id']}/runs")).json()["items"][:1]

    async def reported(path: str, who: str) -> tuple[int, str, dict[str, str]]:
        method = "POST" if path.endswith(("/run", "/pause", "/resume", "/cancel", "/retry")) else "GET"
        answer = await api.request(method, path, who=who, headers={"X-Request-Id": "same-for-all"})
        assert "canary" not in answer.text
        return answer.status_code, answer.text, dict(answer.headers)

    under_jobs = ("", "/runs", "/next", "/explain", "/stats", "/run", "/pause", "/resume")
    under_runs = ("", "/attempts", "/explain", "/cancel", "/retry")
    paths = (*(f"/runs/{{}}{verb}" for verb in under_runs), *(f"/jobs/{{}}{verb}" for verb in under_jobs))
    for path in paths:
        mine = run["id"] if path.startswith("/runs") else made["id"]
        expected = await reported(path.format(uuid4()), "globex")
        assert expected[0] == 404
        for other in (mine, mine.upper(), "not-an-id", "{" + mine + "}", mine.replace("-", ""), "%00", "0"):
            assert await reported(path.format(other), "globex") == expected, (path, other)
        assert await reported(path.format(mine), "outsider") == expected
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["status"] == "active"
    for who in ("globex", "outsider"):
        assert (await api.request("GET", "/jobs", who=who)).json() == {"items": [], "next_cursor": None}


@pytest.mark.requirement("S4-26", "S4-AC-11")
async def test_an_agent_sees_its_own_jobs_alone(api: ApiHarness, clock: ManualClock) -> None:
    agent = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    api.keys["acme", "agent"] = agent
    others = await api.create_job(schedule={"kind": "interval", "every": "1s"})
    own = (await api.request("POST", "/jobs", role="agent", json=job(name="mine"))).json()
    clock.set(clock.now().replace(minute=1))
    await tick(api.database)
    run = (await api.request("GET", f"/jobs/{others['id']}/runs")).json()["items"][0]
    listed = (await api.request("GET", "/jobs", role="agent")).json()["items"]
    assert [each["id"] for each in listed] == [own["id"]]
    assert (await api.request("GET", f"/jobs/{own['id']}", role="agent")).status_code == 200
    for path in (
        f"/jobs/{others['id']}",
        f"/jobs/{others['id']}/runs",
        f"/jobs/{others['id']}/next",
        f"/runs/{run['id']}",
    ):
        assert (await api.request("GET", path, role="agent")).status_code == 404, path
    for verb in ("run", "pause", "resume"):
        answer = await api.request("POST", f"/jobs/{others['id']}/{verb}", role="agent")
        assert answer.status_code == 404, verb
    assert (await api.request("POST", f"/jobs/{own['id']}/pause", role="agent")).status_code == 200
    after = job(schedule={"kind": "manual"}, depends_on=[{"job": others["id"]}])
    refused = await api.request("POST", "/jobs", role="agent", json=after)
    assert (refused.status_code, list(problems(refused))) == (422, ["/depends_on/0/job"])
    assert len((await api.request("GET", "/jobs")).json()["items"]) == 2


async def test_scopes_narrow_what_a_key_may(api: ApiHarness) -> None:
    api.keys["acme", "reader"] = await api.create_key("acme", MemberRole.ADMIN, scopes=frozenset({"viewer"}))
    api.keys["acme", "worker"] = await api.create_key("acme", MemberRole.ADMIN, scopes=frozenset({"worker"}))
    assert (await api.request("GET", "/jobs", role="reader")).status_code == 200
    assert (await api.request("POST", "/jobs", role="reader", json=job())).status_code == 403
    assert (await api.request("GET", "/jobs", role="worker")).status_code == 403
    left = {"worker_id": str(uuid4())}
    assert (await api.request("POST", "/worker/leave", role="worker", json=left)).status_code == 204
    for role in ("reader", "admin"):
        assert (await api.request("POST", "/worker/leave", role=role, json=left)).status_code == 403


async def test_a_route_without_a_permission_stops_the_start(api: ApiHarness) -> None:
    app, hidden = app_of(api), APIRouter(prefix="/api/v1")
    hidden.add_api_route("/leak", lambda: None)
    app.include_router(hidden)
    with pytest.raises(RuntimeError, match="neither open nor guarded: /api/v1/leak"):
        require_declared_routes(app.routes)


async def test_the_description_of_the_api_names_the_permission_of_every_operation(
    shared_api: ApiHarness,
) -> None:
    answer = await send(shared_api, "GET", "/openapi.json", shared_api.keys["acme", "viewer"])
    described = answer.json()
    assert described["openapi"].startswith("3.1")
    reported = {
        (method.upper(), path): operation["x-foliot-permission"]
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }
    assert reported == {each: role for each, role in TABLE.items() if each[1] != "/openapi.json"}
    assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert all(operation["security"] for path in described["paths"].values() for operation in path.values())
    assert set(re.findall(r"[\w?]+://[\w./-]*", answer.text)) == {
        "https://example.test/hook",
        "https?://",  # a pattern
        "discord://",
        "https://slack.com/api.",
        "https://graph.facebook.com/v23.0.",
    }, "it names no address of this server, and none that a reader would load"
