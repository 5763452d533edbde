"""Story A3, a workflow builder with /schedules/: repetitions, retries and death, pause, a restart, a slow workflow, batch delete."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx2 as httpx
import pytest

from foliot.engine.scheduler import Scheduler
from tests.notifications.http_peer import HttpPeer, http_peer
from tests.polling import wait_until
from tests.stories.virtual_server import VirtualServer
from tests.web.test_dialects import DAILY_REPORT

pytestmark = pytest.mark.anyio
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


@dataclass
class Builder:
    """A workflow builder: its calls of /schedules/, and the endpoint of its workflows, which a worker calls."""

    server: VirtualServer
    http: httpx.AsyncClient
    workflows: HttpPeer

    async def ask(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        answer = await self.http.request(method, path, **more)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def create(self, **changed: Any) -> str:
        made = await self.ask("POST", "/schedules/", 201, json={**DAILY_REPORT, **changed})
        return str(made["id"])

    async def get(self, schedule_id: str) -> dict[str, Any]:
        found: dict[str, Any] = await self.ask("GET", f"/schedules/{schedule_id}/")
        return found

    async def runs(self, schedule_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.ask("GET", f"/runs?job={schedule_id}"))["items"]
        return found


@pytest.fixture
async def builder(virtual_server: VirtualServer) -> AsyncIterator[Builder]:
    headers = {"Authorization": f"Bearer {virtual_server.key}"}
    async with (
        http_peer() as workflows,
        virtual_server.worker(event_url=f"{workflows.url}/events"),
        httpx.AsyncClient(base_url=f"{virtual_server.url}/api/v1", headers=headers) as http,
    ):
        yield Builder(virtual_server, http, workflows)


@pytest.mark.requirement("S3-1", "S3-2", "S3-3", "S3-4", "S3-5", "S3-9", "S3-10", "S3-16")
async def test_the_documented_schedule_is_done_after_three_events(builder: Builder) -> None:
    server = builder.server
    made = await builder.ask("POST", "/schedules/", 201, json=DAILY_REPORT)
    assert {name: made[name] for name in DAILY_REPORT} == DAILY_REPORT
    for number in range(3):
        assert (await builder.get(made["id"]))["current_repeat"] == number
        await server.advance(DAY)
    assert [each.json for each in builder.workflows.came] == [
        {
            "event": "schedule", "scheduled_job_id": made["id"], "scheduled_job_name": "Daily report",
            "repeat_number": number, "payload": {"report_type": "daily"},
            "workflow_id": 1, "trigger_node_id": "trigger_schedule_abc123",
        }
        for number in range(3)
    ]  # fmt: skip
    found = await builder.get(made["id"])
    assert (found["status"], found["run_count"], found["current_repeat"]) == ("done", 3, 3)
    assert (found["next_run_at"], found["error_count"], found["last_error"]) == (None, 0, None)
    await server.advance(2 * DAY)
    assert len(builder.workflows.came) == 3


@pytest.mark.requirement("S3-5", "S3-11", "S3-12", "S3-13")
async def test_retries_wait_60_120_and_240_seconds_and_then_it_is_dead(builder: Builder) -> None:
    server, came = builder.server, builder.workflows.came
    builder.workflows.default = ("500 Internal Server Error", "no")
    made = await builder.create(interval_seconds=60, total_repeats=0)
    await server.advance(60 * SECOND)
    assert len(came) == 1
    for tries, wait in enumerate((60, 120, 240), start=1):
        [run] = [each for each in await builder.runs(made) if each["status"] != "skipped"]
        assert run["occurrence"] == f"sched-{made[-8:]}-n1-rc{tries - 1}"
        await server.advance((wait - 1) * SECOND)
        assert len(came) == tries
        await server.advance(SECOND)
        assert len(came) == tries + 1
    found = await builder.get(made)
    assert (found["status"], found["next_run_at"], found["run_count"]) == ("dead", None, 0)
    assert "500" in found["last_error"]
    await server.advance(3_600 * SECOND)
    assert len(came) == 4


@pytest.mark.requirement("S3-6", "S3-7", "S3-18", "S3-19")
async def test_a_pause_drops_what_is_queued_and_a_resume_counts_from_now(builder: Builder) -> None:
    server = builder.server
    made = await builder.create(name="paused", interval_seconds=60, total_repeats=0)
    [loops] = server.workers
    loops.worker.is_draining = True  # no worker takes the fire that is queued
    server.held.add("paused")
    await server.advance(60 * SECOND)
    assert [each["status"] for each in await builder.runs(made)] == ["ready"]
    paused = await builder.ask("POST", f"/schedules/{made}/pause/")
    assert (paused["status"], paused["next_run_at"]) == ("paused", None)
    await builder.ask("POST", f"/schedules/{made}/pause/", 400)
    loops.worker.is_draining = False
    server.held.clear()
    await server.advance(90 * SECOND)
    assert builder.workflows.came == []
    assert [each["status"] for each in await builder.runs(made)] == ["skipped"]
    resumed = await builder.ask("POST", f"/schedules/{made}/resume/")
    assert (resumed["status"], resumed["run_count"]) == ("active", 0)
    assert datetime.fromisoformat(resumed["next_run_at"]) == server.now() + 60 * SECOND
    await builder.ask("POST", f"/schedules/{made}/resume/", 400)
    await server.advance(60 * SECOND)
    assert len(builder.workflows.came) == 1


@pytest.mark.requirement("S3-14")
async def test_a_restart_recovers_the_overdue_schedule_once(
    builder: Builder, caplog: pytest.LogCaptureFixture
) -> None:
    server = builder.server
    due = await builder.create(name="due", interval_seconds=86_400, total_repeats=0)
    idle = await builder.create(name="idle", interval_seconds=86_400, total_repeats=0)
    await builder.ask("POST", f"/schedules/{idle}/pause/")
    server.stand_still(DAY + 60 * SECOND)  # its time passes while the server is down
    caplog.set_level(logging.INFO, "foliot.engine.scheduler")
    for _ in range(2):
        server.schedulers = [Scheduler(server.database, server.announce)]
        await server.settle()
    recovered = [each for each in caplog.records if each.message == "scheduler.recovering"]
    assert [getattr(each, "jobs", None) for each in recovered] == [1]
    assert len(await builder.runs(due)) == 1
    assert await builder.runs(idle) == []
    assert [each.json["scheduled_job_name"] for each in builder.workflows.came] == ["due"]


@pytest.mark.requirement("S3-8", "S3-21")
async def test_a_slow_workflow_skips_the_times_beside_it(builder: Builder) -> None:
    server = builder.server
    builder.workflows.gate = asyncio.Event()
    made = await builder.create(name="slow", interval_seconds=60, total_repeats=0)
    server.held.add("slow")
    await server.advance(60 * SECOND)
    await wait_until(lambda: builder.workflows.came)
    await server.advance(60 * SECOND)
    assert [(each["status"], each["skip_reason"]) for each in await builder.runs(made)] == [
        ("skipped", "overlap"),
        ("running", None),
    ]
    builder.workflows.gate.set()
    server.held.clear()
    await server.advance(60 * SECOND)
    assert [each["status"] for each in await builder.runs(made)] == ["succeeded", "skipped", "succeeded"]
    assert len(builder.workflows.came) == 2


@pytest.mark.requirement("S3-20")
async def test_a_batch_deletes_exactly_the_callers_own(builder: Builder) -> None:
    server = builder.server
    mine = [await builder.create(name=f"mine {n}") for n in range(2)]
    kept = await builder.create(name="kept")
    async with server.client() as system:
        await system.workspaces.create("others")
    others = {"Foliot-Workspace": "others"}
    theirs = (await builder.ask("POST", "/schedules/", 201, json=DAILY_REPORT, headers=others))["id"]
    done = await builder.ask("POST", "/schedules/batch-delete/", json={"schedule_ids": [*mine, theirs]})
    assert done == {"deleted": 2}
    assert [each["id"] for each in (await builder.ask("GET", "/schedules/"))["items"]] == [kept]
    assert [each["id"] for each in (await builder.ask("GET", "/schedules/", headers=others))["items"]] == [
        theirs
    ]
