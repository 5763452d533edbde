"""/worker and /hosts: a machine with nothing but a key fetches its work, says what came of it, and sees nothing else."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from foliot.domain.access import MemberRole
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.sweep import sweep
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, problems

pytestmark = pytest.mark.anyio
NOW = {"wait": "0s"}


@pytest.fixture
async def shire(api: ApiHarness) -> ApiHarness:
    """With keys of the scope worker in acme and globex."""
    for who in ("acme", "globex"):
        api.keys[who, "worker"] = await api.create_key(who, MemberRole.VIEWER, scopes=frozenset({"worker"}))
    return api


async def say(api: ApiHarness, verb: str, who: str = "acme", **body: Any) -> dict[str, Any]:
    answer = await api.request("POST", f"/worker/{verb}", who=who, role="worker", json=body)
    assert answer.status_code in {200, 201, 204}, answer.text
    found: dict[str, Any] = answer.json() if answer.content else {}
    return found


async def registered(api: ApiHarness, name: str = "h1", *instances: str, who: str = "acme") -> dict[str, Any]:
    host = {"name": name, "labels": {"region": "eu"}, "instances": list(instances)}
    return await say(api, "register", who, name=f"{name}/1", types=["http"], capacity=4, host=host)


async def claimed(api: ApiHarness, worker: str, who: str = "acme", **more: Any) -> list[dict[str, Any]]:
    found = await say(
        api, "claim", who, **{"worker_id": worker, "types": ["http"], "permits": 4, **NOW, **more}
    )
    items: list[dict[str, Any]] = found["items"]
    return items


async def begun(api: ApiHarness) -> Any:
    """The state of the app, once a worker waits for work."""
    state = api.http._transport.app.state  # type: ignore[attr-defined]
    while not state.waiting.total():  # noqa: ASYNC110  # there is no event of it; each turn lets the claim go on
        await asyncio.sleep(0)
    return state


async def due(api: ApiHarness, clock: ManualClock, **fields: Any) -> dict[str, Any]:
    made = await api.create_job(
        **{"schedule": {"kind": "interval", "every": "10s"}, "payload": {"n": 1}, **fields}
    )
    clock.advance(timedelta(seconds=10))
    await tick(api.database)
    return made


@pytest.mark.requirement("S0-26")
async def test_a_host_fetches_its_run_logs_and_reports_it(shire: ApiHarness, clock: ManualClock) -> None:
    worker = (await registered(shire, "h1", "pvp"))["worker_id"]
    job = await due(shire, clock, name="restart", target={"server": "pvp"})
    assert (job["target"], job["read_only"]) == ({"server": "pvp"}, False)
    [work] = await claimed(shire, worker)
    assert (work["job"], work["input"], work["left"], work["attempt"]) == ("restart", {"n": 1}, "10m", 1)
    held = {"run_id": work["run_id"], "fence": work["fence"]}
    line = {"at": "2027-01-15T12:00:11Z", "text": "restarting"}
    chunk = {**held, "attempt": 1, "first": 1, "lines": [line]}
    assert await say(shire, "log", worker_id=worker, chunks=[chunk]) == {"taken": 1}
    beat = await say(shire, "heartbeat", worker_id=worker, working_on=[held])
    assert beat == {"alive": True, "cancels": [], "gone": []}
    done = {**held, "outcome": "succeeded", "output": {"pid": 4}}
    reported = await say(shire, "report", worker_id=worker, reports=[done])
    assert reported == {"items": [{**held, "status": 200, "code": None}]}
    run = (await shire.request("GET", f"/runs/{work['run_id']}")).json()
    assert (run["status"], run["output"], run["worker"]) == ("succeeded", {"pid": 4}, worker)
    lines = (await shire.request("GET", f"/runs/{work['run_id']}/logs")).json()
    assert [each["text"] for each in lines["items"]] == ["restarting"]


async def test_a_worker_cannot_date_its_lines_or_name_another_attempt(
    shire: ApiHarness, clock: ManualClock
) -> None:
    worker = (await registered(shire))["worker_id"]
    await due(shire, clock, name="odd", target={"host": "h1"})
    [work] = await claimed(shire, worker)
    clock.advance(timedelta(seconds=5))
    held = {"run_id": work["run_id"], "fence": work["fence"]}
    dates = ("1990-01-01T00:00:00Z", clock.now().isoformat(), "2999-01-01T00:00:00Z")
    lines = [{"at": at, "text": at} for at in dates]
    chunk = {**held, "attempt": 99, "first": 1, "lines": lines}
    progress = {**held, "done": 1, "total": 2, "at": dates[0]}
    assert await say(shire, "log", worker_id=worker, chunks=[chunk], progress=[progress]) == {"taken": 1}
    kept = (await shire.request("GET", f"/runs/{work['run_id']}/logs")).json()["items"]
    began = clock.now() - timedelta(seconds=5)
    assert [datetime.fromisoformat(each["at"]) for each in kept] == [began, clock.now(), clock.now()]
    assert {each["attempt"] for each in kept} == {1}
    run = (await shire.request("GET", f"/runs/{work['run_id']}")).json()
    assert datetime.fromisoformat(run["progress"]["at"]) == began
    artifact = {**held, "worker_id": worker, "attempt": 99, "name": "a.txt", "media_type": "text/plain"}
    await say(shire, "artifact", **artifact, content="aGVsbG8=")
    [stored] = (await shire.request("GET", f"/runs/{work['run_id']}/artifacts")).json()["items"]
    assert stored["attempt"] == 1


async def test_leases_tell_who_holds_a_run_since_when_and_until_when(
    shire: ApiHarness, clock: ManualClock
) -> None:
    worker = (await registered(shire))["worker_id"]
    job = await due(shire, clock, name="long", target={"host": "h1"}, timeout="2m")
    assert (await shire.request("GET", "/leases")).json() == {"items": []}
    [work] = await claimed(shire, worker)
    began = clock.now()
    clock.advance(timedelta(seconds=5))
    [lease] = (await shire.request("GET", "/leases")).json()["items"]
    assert (lease["run_id"], lease["job_id"], lease["job"]) == (work["run_id"], job["id"], "long")
    assert (lease["attempt"], lease["fence"], lease["worker"]) == (1, work["fence"], worker)
    assert (lease["worker_name"], lease["host"]) == ("h1/1", "h1")
    assert datetime.fromisoformat(lease["since"]) == began
    assert datetime.fromisoformat(lease["deadline_at"]) == began + timedelta(minutes=2)
    assert datetime.fromisoformat(lease["expires_at"]) > clock.now()
    assert lease["overdue"] is False
    assert (await shire.request("GET", "/leases?overdue=true")).json() == {"items": []}
    assert (await shire.request("GET", "/leases", who="globex")).json() == {"items": []}
    clock.advance(timedelta(minutes=1))
    for query in ("", "?overdue=true"):
        [late] = (await shire.request("GET", f"/leases{query}")).json()["items"]
        assert late["overdue"] is True, "its worker fell silent"


async def test_several_reports_are_judged_each_by_itself(shire: ApiHarness, clock: ManualClock) -> None:
    worker = (await registered(shire))["worker_id"]
    for name in ("one", "two"):
        await due(shire, clock, name=name, target={"host": "h1"}, read_only=True, overlap="concurrent")
    first, *_ = works = await claimed(shire, worker)
    ends = [{"run_id": each["run_id"], "fence": each["fence"], "outcome": "succeeded"} for each in works]
    ends[0]["fence"] += 1
    reported = await say(shire, "report", worker_id=worker, reports=ends)
    assert [(each["status"], each["code"]) for each in reported["items"]][:2] == [
        (409, "lease_lost"),
        (200, None),
    ]
    audited = (await shire.request("GET", "/audit?action=report.refused", role="admin")).json()["items"]
    assert [each["object"]["id"] for each in audited] == [first["run_id"]]


async def test_those_who_wait_in_one_workspace_leave_capacity_for_the_others(
    shire: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.web.mapping.worker.MOST_OF_A_WORKSPACE", 1)
    ours, theirs = await registered(shire), await registered(shire, who="globex")
    asked = {"worker_id": ours["worker_id"], "types": ["http"], "permits": 4, "wait": "30s"}
    waits = asyncio.create_task(shire.request("POST", "/worker/claim", role="worker", json=asked))
    state = await begun(shire)
    refused = await shire.request("POST", "/worker/claim", role="worker", json={**asked, **NOW})
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert await claimed(shire, theirs["worker_id"], who="globex") == []
    state.stopping.set()
    assert (await waits).json() == {"items": []}


async def test_reports_of_runs_that_never_were_leave_nothing_in_the_audit(shire: ApiHarness) -> None:
    worker = (await registered(shire))["worker_id"]
    made_up = [{"run_id": str(uuid4()), "fence": 1, "outcome": "succeeded"} for _ in range(3)]
    reported = await say(shire, "report", worker_id=worker, reports=made_up)
    assert {each["code"] for each in reported["items"]} == {"lease_lost"}
    assert (await shire.request("GET", "/audit?action=report.refused", role="admin")).json()["items"] == []


async def test_a_late_result_of_a_host_that_stayed_away_is_refused(
    shire: ApiHarness, clock: ManualClock
) -> None:
    worker = (await registered(shire, "h1", "pvp"))["worker_id"]
    await due(shire, clock, target={"server": "pvp"})
    [work] = await claimed(shire, worker)
    clock.advance(timedelta(seconds=31))
    await sweep(shire.database)
    held = {"run_id": work["run_id"], "fence": work["fence"]}
    reported = await say(shire, "report", worker_id=worker, reports=[{**held, "outcome": "succeeded"}])
    assert [each["status"] for each in reported["items"]] == [409]
    assert (await say(shire, "heartbeat", worker_id=worker))["alive"] is False
    refused = await shire.request(
        "POST", "/worker/claim", role="worker", json={"worker_id": worker, "types": ["http"], **NOW}
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "worker_gone")


async def test_a_key_of_another_workspace_finds_nothing_of_it(shire: ApiHarness, clock: ManualClock) -> None:
    made = await registered(shire, "h1", "pvp")
    job = await due(shire, clock, target={"server": "pvp"})
    [work] = await claimed(shire, made["worker_id"])
    held = {"run_id": work["run_id"], "fence": work["fence"]}
    theirs = (await registered(shire, "h1", "pvp", who="globex"))["worker_id"]
    assert await claimed(shire, theirs, "globex") == []
    for worker in (theirs, made["worker_id"]):
        reported = await say(
            shire, "report", "globex", worker_id=worker, reports=[{**held, "outcome": "succeeded"}]
        )
        assert [each["status"] for each in reported["items"]] == [409]
        chunk = {**held, "attempt": 1, "first": 1, "lines": [{"at": "2027-01-15T12:00:11Z", "text": "x"}]}
        assert await say(shire, "log", "globex", worker_id=worker, chunks=[chunk]) == {"taken": 0}
    assert (await say(shire, "heartbeat", "globex", worker_id=made["worker_id"]))["alive"] is False
    for path in (f"/hosts/{made['host_id']}", f"/jobs/{job['id']}", f"/runs/{work['run_id']}"):
        assert (await shire.request("GET", path, who="globex")).status_code == 404
    assert (await shire.request("GET", f"/runs/{work['run_id']}")).json()["status"] == "running"


async def test_a_claim_waits_for_work_and_the_bell_ends_the_wait(
    shire: ApiHarness, clock: ManualClock
) -> None:
    worker = (await registered(shire, "h1", "pvp"))["worker_id"]
    made = await shire.create_job(schedule={"kind": "manual"}, target={"server": "pvp"})
    waiting = asyncio.create_task(claimed(shire, worker, wait="30s"))
    state = await begun(shire)
    await shire.request("POST", f"/jobs/{made['id']}/run", json={})
    while not waiting.done():  # it may still be looking: the next ring is heard
        state.bell.ring()
        await asyncio.wait([waiting], timeout=0.05)
    assert [work["job"] for work in waiting.result()] == ["beat"]
    assert state.waiting.total() == 0


async def test_a_server_that_stops_ends_the_wait_at_once(shire: ApiHarness) -> None:
    worker = (await registered(shire))["worker_id"]
    waiting = asyncio.create_task(claimed(shire, worker, wait="30s"))
    state = await begun(shire)
    state.stopping.set()
    assert await asyncio.wait_for(waiting, 5) == []


async def test_a_revoked_key_gets_nothing_more_though_it_waited(shire: ApiHarness) -> None:
    worker = (await registered(shire, "h1", "pvp"))["worker_id"]
    made = await shire.create_job(schedule={"kind": "manual"}, target={"server": "pvp"})
    waiting = asyncio.create_task(claimed(shire, worker, wait="30s"))
    state = await begun(shire)
    keys = (await shire.request("GET", "/keys", role="admin")).json()["items"]
    mine = next(each for each in keys if each["scopes"] == ["worker"])
    assert (await shire.request("DELETE", f"/keys/{mine['id']}", role="admin")).status_code == 204
    await shire.request("POST", f"/jobs/{made['id']}/run", json={})
    state.bell.ring()
    while not waiting.done():
        state.bell.ring()
        await asyncio.wait([waiting], timeout=0.05)
    assert waiting.result() == []


async def test_hosts_are_listed_shown_and_changed(shire: ApiHarness, clock: ManualClock) -> None:
    host = (await registered(shire, "h1", "pvp"))["host_id"]
    [listed] = (await shire.request("GET", "/hosts", role="viewer")).json()["items"]
    shown = await shire.request("GET", f"/hosts/{host}", role="viewer")
    assert shown.json() == {**listed, "jobs": []}
    assert (listed["status"], listed["labels"], listed["max_mutations"], listed["max_reads"]) == (
        "online",
        {"region": "eu"},
        1,
        8,
    )
    assert [each["name"] for each in listed["instances"]] == ["pvp"]
    stale = {"If-Match": '"7"'}
    refused = await shire.request("PATCH", f"/hosts/{host}", json={"max_reads": 2}, headers=stale)
    assert refused.status_code == 412
    seen = {"If-Match": shown.headers["etag"]}
    changed = await shire.request("PATCH", f"/hosts/{host}", json={"max_reads": 2}, headers=seen)
    assert (changed.json()["max_reads"], changed.json()["labels"]) == (2, {"region": "eu"})
    clock.advance(timedelta(minutes=5))
    assert (await shire.request("GET", f"/hosts/{host}")).json()["status"] == "offline"
    assert (await shire.request("DELETE", f"/hosts/{host}")).status_code == 204
    assert (await shire.request("GET", "/hosts")).json()["items"] == []


async def test_instances_are_made_moved_and_removed(shire: ApiHarness) -> None:
    h1 = (await registered(shire, "h1"))["host_id"]
    h2 = (await registered(shire, "h2"))["host_id"]
    made = (await shire.request("POST", f"/hosts/{h1}/instances", json={"name": "pve"})).json()
    again = await shire.request("POST", f"/hosts/{h2}/instances", json={"name": "pve"})
    assert again.status_code == 409
    moved = await shire.request("PATCH", f"/hosts/{h1}/instances/{made['id']}", json={"host_id": h2})
    assert moved.json()["host_id"] == h2
    assert (await shire.request("DELETE", f"/hosts/{h1}/instances/{made['id']}")).status_code == 404
    await shire.create_job(target={"server": "pve"})
    assert (await shire.request("DELETE", f"/hosts/{h2}/instances/{made['id']}")).status_code == 409
    gone = await shire.request("DELETE", f"/hosts/{h2}/instances/{made['id']}?force=true")
    assert gone.status_code == 204


async def test_a_target_is_one_host_or_one_server_that_is_there(shire: ApiHarness) -> None:
    await registered(shire, "h1", "pvp")
    for wrong, pointer in (
        ({}, "/target"),
        ({"server": "pvpp"}, "/target/server"),
        ({"host": "h1", "server": "pvp"}, "/target/server"),
    ):
        answer = await shire.request("POST", "/jobs", json={**JOB, "target": wrong})
        assert (answer.status_code, list(problems(answer))) == (422, [pointer]), answer.text
    made = (await shire.request("POST", "/jobs", json={**JOB, "target": {"host": "h1"}})).json()
    patched = await shire.request("PATCH", f"/jobs/{made['id']}", json={"target": {"server": "pvp"}})
    assert patched.json()["target"] == {"server": "pvp"}
    freed = await shire.request("PATCH", f"/jobs/{made['id']}", json={"target": None})
    assert freed.json()["target"] is None


JOB = {
    "name": "restart",
    "type": "http",
    "config": {"url": "https://example.test"},
    "schedule": {"kind": "manual"},
}


async def test_a_host_gets_the_secrets_its_job_names_and_nobody_keeps_the_answer(
    shire: ApiHarness, clock: ManualClock, owner: psycopg.Connection[Any]
) -> None:
    worker = (await registered(shire, "h1", "pvp"))["worker_id"]
    secret = {"name": "crm", "value": "plain-77c1"}
    assert (await shire.request("POST", "/secrets", role="admin", json=secret)).status_code == 201
    config = {"url": "https://example.test", "headers": {"x-token": {"secret": "crm"}}}
    await due(shire, clock, target={"server": "pvp"}, config=config)
    answer = await shire.request(
        "POST", "/worker/claim", role="worker", headers={"Idempotency-Key": "again"},
        json={"worker_id": worker, "types": ["http"], "permits": 4, **NOW},
    )  # fmt: skip
    [work] = answer.json()["items"]
    assert (work["config"]["headers"], work["masks"]) == ({"x-token": "plain-77c1"}, ["plain-77c1"])
    assert answer.headers["cache-control"] == "no-store"
    kept = owner.execute("SELECT * FROM foliot.idempotency_keys").fetchall()
    assert "plain-77c1" not in repr(kept)
