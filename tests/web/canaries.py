"""A workspace with a canary in each text that users write, and all ids that another workspace could learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from foliot.domain.access import Scope
from foliot.domain.ids import HostId, PrincipalId
from foliot.domain.logs import LogLine, LogStream
from foliot.domain.outcomes import Failed
from foliot.domain.run import RunError
from foliot.services.notifications.dispatch import NotifierPolicy, dispatch
from foliot.services.runs import artifacts, logs
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.runs.logs import LogChunk
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers import hosts, remote_register, workers
from foliot.services.workers.claim import Turns, claim
from foliot.services.workers.remote_register import HostIntroduction, RemoteWorkerHello, WorkerPrincipal
from foliot.storage.jobs import job_types
from foliot.storage.jobs.job_types import JobTypeDescription
from foliot.storage.tx import Role
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST
from tests.web.conftest import ApiHarness, job

CANARY = "kanari7f3e9c"
FRAGMENT = "kanari7f"  # what a stranger may send: an answer that holds more of it than this has leaked
KEY = "their-own-key-1"  # an Idempotency-Key


@dataclass
class CanaryData:
    """What is there, by path parameter, and what its owners were given."""

    ids: dict[str, str] = field(default_factory=dict)
    cursors: list[str] = field(default_factory=list)
    etag: str = ""
    last_event_id: str = ""

    def all_ids(self) -> set[str]:
        return {each for each in self.ids.values() if len(each) == 36}


def canary_job(**fields: Any) -> dict[str, Any]:
    return job(
        **{
            "name": f"{CANARY} job", "description": f"{CANARY} description", "payload": {CANARY: f"{CANARY} payload"},
            "config": {"url": f"https://example.test/{CANARY}"}, "tags": [f"{CANARY}-tag"], "external_ref": {"crm": f"{CANARY}-ref"},
            "queue": CANARY, "concurrency_key": f"{CANARY}-key", "retry": {"max": 0, "strategy": "none"}, **fields,
        }
    )  # fmt: skip


async def plant_canaries(api: ApiHarness, clock: ManualClock, who: str = "acme") -> CanaryData:
    """Two of each, so that pages have a next one."""
    canaries = CanaryData()
    worker = await workers.register(api.database, f"{CANARY} worker", [CANARY], ["http"], 10, api.ids[who])

    async def made(path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        answer = await api.request("POST", path, who=who, role="admin", json=body, **more)
        assert answer.status_code in {200, 201}, (path, answer.text)
        found: dict[str, Any] = answer.json()
        return found

    speaker = WorkerPrincipal(api.ids[who], PrincipalId(uuid4()), TEST)
    hello = RemoteWorkerHello(
        f"{CANARY} process",
        ["http"],
        1,
        host=HostIntroduction(f"{CANARY} host", {CANARY: CANARY}, [f"{CANARY} server"]),
    )
    host = await remote_register.register(api.database, speaker, hello)
    [instance] = (
        await hosts.get(api.database, Scope(api.ids[who]), host.host_id or HostId(uuid4()))
    ).instances
    kind = f"{FRAGMENT}-type"
    async with api.database.tx(Role.ENGINE) as tx:
        await job_types.describe(
            tx, api.ids[who], [JobTypeDescription(kind, f"{CANARY} type", {"title": CANARY})]
        )
    switched = await api.request(
        "PUT", f"/job-types/{kind}", who=who, role="admin", json={"enabled": False, "reason": CANARY}
    )
    assert switched.status_code == 200, switched.text
    rules = [{"kind": "absolute", "start": "2100-01-01T00:00:00Z", "end": "2100-01-02T00:00:00Z"}]
    for turn in ("a", "b"):
        calendar = await made(
            "/calendars", {"name": f"{CANARY} calendar {turn}", "kind": "blackout", "rules": rules}
        )
        listened = await api.request(
            "GET", "/events", who=who, role="admin"
        )  # a client listens: events are written
        canaries.last_event_id = listened.text.partition("id: ")[2].partition("\n")[0].strip()
        key = {"Idempotency-Key": f"{KEY}{turn}"}
        task = await made(
            "/jobs", canary_job(name=f"{CANARY} job {turn}", calendars=[calendar["id"]]), headers=key
        )
        channel = await made(
            "/channels",
            {"name": f"{CANARY} {turn}", "config": {"kind": "email", "to": [f"{CANARY}@example.test"]}},
        )
        rule = await made(
            "/notification-rules",
            {"name": f"{CANARY} {turn}", "events": ["run_failed"], "channels": [channel["id"]]},
        )
        member = await made(
            "/members",
            {
                "kind": "user",
                "name": f"{CANARY} member {turn}",
                "role": "viewer",
                "email": f"{CANARY}{turn}@example.test",
            },
        )
        freeze = await made(
            "/freezes",
            {"reason": f"{CANARY} freeze", "start_at": f"2100-01-0{1 if turn == 'a' else 3}T00:00:00Z"},
        )
        hook = {"url": f"https://example.test/{CANARY}"}
        room = await made(
            "/rooms", {"name": f"{CANARY} room {turn}", "key": f"{FRAGMENT}-{turn}", "webhook": hook}
        )
        for _ in range(2):
            await made(f"/rooms/{room['id']}/messages", {"text": f"{CANARY} message"})
        sent = (await api.request("GET", f"/rooms/{room['id']}/deliveries", who=who, role="admin")).json()
        watched = await made("/jobs", canary_job(name=f"{CANARY} cron {turn}", type="check_in", config={}))
        called = await made(
            "/webhooks", {"name": f"{CANARY} {turn}", "kind": "check_in", "job_id": watched["id"]}
        )
        secret = await made("/secrets", {"name": f"{CANARY}-{turn}", "value": f"{CANARY} secret {turn}"})
        made_key = await made("/keys", {"name": f"{CANARY} key {turn}"})
        await made(f"/jobs/{task['id']}/run", {"input": {"with": f"{CANARY} input"}})
        clock.advance(timedelta(seconds=1))
        await tick(api.database)
        for run in await claim(api.database, worker, CANARY, ["http"], 10, Turns()):
            line = LogLine(clock.now(), LogStream.LOG, f"{CANARY} line")
            await logs.append(api.database, [LogChunk(run.run_id, 1, run.fence, 1, [line])])
            file = NewArtifact(
                run.run_id, run.fence, worker, 1, "report.txt", "text/plain", f"{CANARY} file".encode()
            )
            await artifacts.keep(api.database, file)
            broke = Failed(RunError("boom", f"{CANARY} error"), permanent=True)
            await report(api.database, [Report(run.run_id, run.job_id, run.fence, worker, broke)])
            canaries.ids |= {"run_id": str(run.run_id), "artifact_name": file.name}
        await made(f"/jobs/{task['id']}/pause", {"reason": f"{CANARY} reason"})
        await dispatch(api.database, NotifierPolicy())
        open_ = (await api.request("GET", "/incidents", who=who, role="admin")).json()["items"]
        canaries.ids["webhook_id"] = called["id"]
        canaries.ids |= {"channel_id": channel["id"], "rule_id": rule["id"], "incident_id": open_[0]["id"]}
        canaries.ids |= {
            "job_id": task["id"], "calendar_id": calendar["id"], "freeze_id": freeze["id"], "member_id": member["id"],
            "key_id": made_key["id"], "secret_id": secret["id"], "workspace": str(api.ids[who]), "host_id": str(host.host_id), "instance_id": str(instance.id),
            "worker_id": str(host.worker_id), "room_id": room["id"], "delivery_id": sent["items"][0]["id"], "job_type": kind,
        }  # fmt: skip
    shown = await api.request("GET", f"/jobs/{canaries.ids['job_id']}", who=who, role="admin")
    canaries.etag = shown.headers["etag"]
    for path in (
        "/jobs",
        "/jobs?sort=name",
        "/runs",
        "/keys",
        "/members",
        "/calendars",
        "/freezes",
        "/rooms",
        "/secrets",
        "/audit",
        "/channels",
        "/notification-rules",
        "/incidents",
        "/deliveries",
        "/webhooks",
    ):
        page = await api.request("GET", path, who=who, role="admin", params={"limit": "1"})
        if cursor := page.json()["next_cursor"]:
            canaries.cursors.append(cursor)
    return canaries


def sent_bodies(canaries: CanaryData) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Bodies that speak of what is not theirs, wherever a body takes an id or a filter. Others are sent empty."""
    ids = canaries.ids
    reaching = [
        job(depends_on=[{"job": ids["job_id"]}], schedule={"kind": "manual"}),
        job(calendars=[ids["calendar_id"]]),
        job(config={"url": {"secret": f"{FRAGMENT}"}}),
        job(target={"server": FRAGMENT}),
    ]
    me, held = {"worker_id": ids["worker_id"]}, {"run_id": ids["run_id"], "fence": 1}
    freezing = [{"reason": "x", "scope": {"jobs": [ids["job_id"]]}}]
    many: list[dict[str, Any]] = [{"ids": [ids["job_id"]]}, {"q": FRAGMENT, "dry_run": True}]
    many += [{"q": FRAGMENT, "expected_count": count} for count in (0, 1, 2)]
    many_runs = [{"ids": [ids["run_id"]]}, *many[1:]]
    return {
        ("POST", "/api/v1/jobs"): reaching,
        ("PUT", "/api/v1/jobs/{job_id}"): reaching,
        ("PATCH", "/api/v1/jobs/{job_id}"): [{"name": "mine now"}, {"calendars": [ids["calendar_id"]]}],
        ("POST", "/api/v1/jobs/bulk"): [{**each, "action": act} for each in many for act in ("pause", "archive", "run")],
        ("POST", "/api/v1/jobs/batch-delete"): [{**each, "purge": purge} for each in many for purge in (False, True)],
        ("POST", "/api/v1/runs/bulk"): [{**each, "action": act} for each in many_runs for act in ("retry", "cancel")],
        ("POST", "/api/v1/freezes"): freezing,
        ("POST", "/api/v1/freezes/preview"): freezing,
        ("POST", "/api/v1/keys"): [{"name": "x", "principal": ids["member_id"]}],
        ("POST", "/api/v1/jobs/{job_id}/revert"): [{"revision": 1}],
        ("POST", "/api/v1/notification-rules"): [
            {"name": "x", "events": ["run_failed"], "channels": [ids["channel_id"]]},
            {"name": "x", "events": ["run_failed"], "scope": {"jobs": [ids["job_id"]]}},
        ],
        ("PUT", "/api/v1/notification-rules/{rule_id}"): [{"name": "x", "events": ["run_failed"]}],
        ("PUT", "/api/v1/channels/{channel_id}"): [{"name": "x", "config": {"kind": "room", "room": ids["room_id"]}}],
        ("POST", "/api/v1/webhooks"): [{"name": "x", "kind": "check_in", "job_id": ids["job_id"]}],
        ("PUT", "/api/v1/webhooks/{webhook_id}"): [{"name": "x", "kind": "check_in", "job_id": ids["job_id"]}],
        ("POST", "/api/v1/incidents/{incident_id}/snooze"): [{"until": "2100-01-01T00:00:00Z"}],
        ("PUT", "/api/v1/incidents/{incident_id}/note"): [{"note": "x"}],
        ("PUT", "/api/v1/job-types/{job_type}"): [{"enabled": True}, {"enabled": False, "reason": "x"}],
        ("POST", "/api/v1/rooms"): [{"name": "x", "agents": [ids["member_id"]]}],
        ("PATCH", "/api/v1/rooms/{room_id}"): [{"name": "x"}, {"agents": [ids["member_id"]]}, {"webhook": None}],
        ("POST", "/api/v1/rooms/{room_id}/redeliver"): [{}, {"deliveries": [ids["delivery_id"]]}],
        ("POST", "/api/v1/rooms/{room_id}/messages"): [{"text": "x"}],
        ("POST", "/api/v1/secrets"): [{"name": "mine", "value": "mine", "agents": [ids["member_id"]]}],
        ("PUT", "/api/v1/secrets/{secret_id}"): [{"value": "mine"}],
        ("PATCH", "/api/v1/secrets/{secret_id}"): [{"agents": []}, {"agents": [ids["member_id"]]}],
        ("POST", "/api/v1/hosts/{host_id}/instances"): [{"name": "mine now"}],
        ("POST", "/api/v1/worker/claim"): [{**me, "types": ["http"], "wait": "0s"}],
        ("POST", "/api/v1/worker/heartbeat"): [{**me, "working_on": [held]}],
        ("POST", "/api/v1/worker/stops"): [{**me, "working_on": [held], "wait": "0s"}],
        ("POST", "/api/v1/worker/log"): [{**me, "chunks": [{**held, "attempt": 1, "first": 1, "lines": []}]}],
        ("POST", "/api/v1/worker/report"): [{**me, "reports": [{**held, "outcome": "succeeded"}]}],
        ("POST", "/api/v1/worker/artifact"): [{**me, **held, "attempt": 1, "name": "x", "content": ""}],
        ("POST", "/api/v1/worker/leave"): [me],
        ("PATCH", "/api/v1/hosts/{host_id}/instances/{instance_id}"): [{"host_id": ids["host_id"]}],
    }  # fmt: skip
