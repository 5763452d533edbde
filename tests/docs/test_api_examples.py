"""What the reference of the API tells people to send is sent here, to a real app, and must not be refused."""

from __future__ import annotations

from functools import cache
from typing import Any
from uuid import UUID

import pytest

from docs.api_examples import BODIES, CALENDAR, CHANNEL, QUERIES, WEBHOOK
from docs.api_reference import description, operations
from foliot.domain.access import MemberRole
from foliot.domain.delivery import Rejected
from foliot.domain.ids import IncidentId, JobId
from foliot.domain.notifications.incidents import open_incident
from foliot.domain.notifications.notice import Notice, NoticeEvent
from foliot.services.messaging import courier
from foliot.services.messaging.courier import CourierCapacity
from foliot.storage.notifications import incidents
from foliot.storage.tx import Role
from tests.web.artifact_files import store_artifact
from tests.web.conftest import ApiHarness, api

__all__ = ["api"]  # a fixture of the tests of the web
pytestmark = pytest.mark.anyio
ENDLESS = {"stream_events"}


@cache
def described() -> dict[str, tuple[str, str, Any]]:
    """Method, path and description of each operation. Not at import: every process of a test run imports this."""
    return {
        operation["operationId"]: (method, path, operation)
        for method, path, operation in operations(description())
    }


def test_every_operation_with_a_body_has_an_example_and_no_example_is_left_over() -> None:
    with_body = {name for name, (_, _, operation) in described().items() if "requestBody" in operation}
    assert set(BODIES) == with_body
    assert set(QUERIES) <= set(described())


async def test_every_example_of_the_reference_is_taken(api: ApiHarness) -> None:
    refused = {}
    works = frozenset({"worker"})
    api.keys["acme", "worker"] = await api.create_key("acme", MemberRole.VIEWER, scopes=works)
    for name in sorted(set(described()) - ENDLESS):
        method, path, _ = described()[name]
        query = f"?{QUERIES[name]}" if name in QUERIES else ""
        found = await objects(api, name, path + query + str(BODIES.get(name, "")))
        for known, value in found.items():
            path = path.replace(f"{{{known}}}", value)  # the same path, filled in
            query = query.replace(f"${known}", value)
        sent = {"json": filled(BODIES[name], found)} if name in BODIES else {}
        answer = await ask(api, method, f"{path.removeprefix('/api/v1')}{query}", **sent)
        if answer.status_code >= 400:
            refused[name] = answer.text
    assert refused == {}


async def ask(api: ApiHarness, method: str, path: str, **more: Any) -> Any:
    if path.startswith("/worker/"):
        return await api.request(method, path, role="worker", **more)
    if path == "/invites/accept":
        member = await made(api, "/members", {"name": path, "kind": "user", "role": "editor"})
        invite = (await ask(api, "POST", f"/members/{member}/invite", json={})).json()
        api.keys["acme", "invite"] = invite["secret"]
        return await api.request(method, path, role="invite", **more)
    return await api.request(method, path, who="system", headers={"Foliot-Workspace": "acme"}, **more)


async def objects(api: ApiHarness, name: str, wanted: str) -> dict[str, str]:
    """What the example speaks of, made for it alone."""
    found: dict[str, str] = {}
    if "job_id" in wanted or "run_id" in wanted or name == "act_on_many":
        tags = ["billing"] if name == "act_on_many" else []
        found["job_id"] = (await api.create_job(name=name, tags=tags))["id"]
    if name == "revert_job":
        await ask(api, "PATCH", f"/jobs/{found['job_id']}", json={"priority": 1})
    if name == "resume_job":
        await ask(api, "POST", f"/jobs/{found['job_id']}/pause")
    if name == "restore_job":
        await ask(api, "DELETE", f"/jobs/{found['job_id']}")
    if name == "undo_skip_next":
        await ask(api, "POST", f"/jobs/{found['job_id']}/skip-next")
    if "run_id" in wanted:
        found["run_id"] = await made(api, f"/jobs/{found['job_id']}/run", {})
    if "{job_type}" in wanted:
        found["job_type"] = "python"
    if "artifact_name" in wanted:
        found["artifact_name"] = await store_artifact(api.database, found["run_id"])
    if name == "retry_run":
        await ask(api, "POST", f"/runs/{found['run_id']}/cancel")
    if "calendar_id" in wanted:
        found["calendar_id"] = await made(api, "/calendars", {**CALENDAR, "name": name})
    if "freeze_id" in wanted:
        scope = {"tags": ["none has this"]}
        found["freeze_id"] = await made(api, "/freezes", {"reason": name, "scope": scope})
    if "channel_id" in wanted or "{delivery_id}" in wanted:
        found["channel_id"] = await made(api, "/channels", {**CHANNEL, "name": name})
    if "{delivery_id}" in wanted:
        sent = await ask(api, "POST", f"/channels/{found['channel_id']}/test")
        found["delivery_id"] = sent.json()["id"]
    if name == "replay_delivery":
        await give_up(api, found["delivery_id"])
    if "rule_id" in wanted:
        rule = {"name": name, "events": ["run_failed"]}
        found["rule_id"] = await made(api, "/notification-rules", rule)
    if name in ("create_webhook", "replace_webhook"):
        for secret in ("deploy-hook", "deploy-hook-2"):
            await ask(api, "POST", "/secrets", json={"name": secret, "value": "whsec_" + "a" * 43 + "="})
    if "webhook_id" in wanted:
        job_id = found.get("job_id") or (await api.create_job(name=name))["id"]
        await ask(api, "POST", "/secrets", json={"name": "deploy-hook", "value": "whsec_" + "a" * 43 + "="})
        found["webhook_id"] = await made(api, "/webhooks", {**WEBHOOK, "name": name, "job_id": job_id})
    if "incident_id" in wanted:
        found["incident_id"] = await incident(api, name)
    if "key_id" in wanted:
        found["key_id"] = await made(api, "/keys", {"name": name})
    if "member_id" in wanted:
        found["member_id"] = await made(api, "/members", {"name": name, "kind": "user", "role": "editor"})
    if "room_id" in wanted:
        hook = {"webhook": {"url": "https://example.test/hook"}} if name == "redeliver" else {}
        found["room_id"] = await made(api, "/rooms", {"name": name, **hook})
    if name == "read_messages":
        await ask(api, "POST", f"/rooms/{found['room_id']}/messages", json={"text": name})
    if name == "remove_limit":
        await ask(api, "PUT", "/limits", json=BODIES["set_limit"])
    if "agent_id" in wanted:
        found["agent_id"] = await made(api, "/members", {"name": name, "kind": "agent", "role": "editor"})
    if "secret_id" in wanted:
        found["secret_id"] = await made(api, "/secrets", {"name": name, "value": "a value"})
    if "host_id" in wanted or "worker_id" in wanted:
        host = {"name": name, "instances": [f"server of {name}"]}
        hello = {"name": name, "types": ["http"], "capacity": 1, "host": host}
        registered = (await ask(api, "POST", "/worker/register", json=hello)).json()
        found |= {each: registered[each] for each in ("host_id", "worker_id")}
        shown = (await ask(api, "GET", f"/hosts/{found['host_id']}")).json()
        found["instance_id"] = shown["instances"][0]["id"]
    if name == "keep_artifact":
        claim = {"worker_id": found["worker_id"], "types": ["http"], "wait": "0s"}
        await ask(api, "PATCH", f"/jobs/{found['job_id']}", json={"target": {"host": name}})
        assert (await ask(api, "POST", "/worker/claim", json=claim)).json()["items"]
    if name == "delete_host":
        await ask(api, "POST", "/worker/leave", json={"worker_id": found["worker_id"]})
    if "{workspace}" in wanted:
        found["workspace"] = name.replace("_", "-")
        await made(api, "/workspaces", {"slug": found["workspace"]})
    return found


async def incident(api: ApiHarness, name: str) -> str:
    job_id = JobId(UUID((await api.create_job(name=name))["id"]))
    async with api.database.tx(Role.APP, api.ids["acme"]) as tx:
        opened = open_incident(IncidentId(tx.new_id()), Notice(1, NoticeEvent.RUN_FAILED, tx.now, job_id))
        await incidents.insert(tx, [opened])
    return str(opened.id)


async def give_up(api: ApiHarness, delivery_id: str) -> None:
    """End a delivery, so that it can be sent again."""
    taken = await courier.take(api.database, CourierCapacity(40, 40, 40), None)
    for parcel in taken.parcels:
        await courier.record(api.database, parcel.taken, Rejected(550, "refused"))


async def made(api: ApiHarness, path: str, body: dict[str, Any]) -> str:
    answer = await ask(api, "POST", path, json=body)
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found


def filled(body: Any, found: dict[str, str]) -> Any:
    if isinstance(body, dict):
        return {field: filled(value, found) for field, value in body.items()}
    if isinstance(body, list):
        return [filled(value, found) for value in body]
    return found[body[1:]] if isinstance(body, str) and body.startswith("$") else body
