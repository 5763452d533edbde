"""Story A4, chat agents: an import from OpenClaw, an agent's own jobs by the command line, reminders, a breaker, a killed worker, pruning."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from foliot.clock import SystemClock
from foliot.engine.janitor import BATCH_PAUSE, Janitor
from foliot.handlers.registry import Assignment, HandlerResult, failed, succeeded
from foliot.sdk import AsyncClient
from foliot.testing.clock import ManualClock
from foliot.wiring.janitor_tasks import janitor_tasks
from tests.polling import wait_until
from tests.stories.execution_log import ExecutionLog
from tests.stories.virtual_server import LEASE, FunctionHandler, VirtualServer

pytestmark = pytest.mark.anyio
FILES = Path(__file__).parents[1] / "importers" / "files"
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def clock() -> ManualClock:
    """The command line reads the real clock, and both should mean the same day."""
    return ManualClock(SystemClock().now().replace(microsecond=0))


@dataclass
class Camp:
    server: VirtualServer
    admin: AsyncClient
    keys: dict[str, str] = field(default_factory=dict)
    is_broken: bool = True

    async def agent(self, name: str) -> str:
        member = await self.admin.members.create(name, kind="agent", role="editor")
        return (await self.admin.keys.create(name, principal=member.id)).secret

    async def messages(self, job_id: str) -> list[Any]:
        """What stands in the room of this job."""
        run = (await self.admin.runs.list(job=job_id)).items[0]
        return (await self.admin.rooms.messages(run.output["room_id"])).items

    async def page(self, path: str) -> str:
        """A page of the console, as text."""
        async with httpx.AsyncClient(base_url=self.server.url, follow_redirects=True) as http:
            signed = await http.post("/console/sign-in", data={"key": self.server.key})
            assert signed.status_code == 200
            shown = await http.get(f"/console{path}")
        return re.sub(r"<[^>]+>", " ", shown.text)


@pytest.fixture
async def camp(virtual_server: VirtualServer) -> AsyncIterator[Camp]:
    async def flaky(assignment: Assignment) -> HandlerResult:
        return failed("no_answer", "Nobody answered.") if made.is_broken else succeeded()

    async def beat(assignment: Assignment) -> HandlerResult:
        return succeeded()

    types = {"flaky": FunctionHandler(flaky), "beat": FunctionHandler(beat)}
    async with virtual_server.client() as admin, virtual_server.worker(types):
        made = Camp(virtual_server, admin)
        yield made


@pytest.mark.requirement("S4-29", "S4-30", "S4-31", "S4-32", "S4-CLI-1")
async def test_an_openclaw_file_arrives_disabled_and_a_second_import_changes_nothing(
    camp: Camp, caplog: pytest.LogCaptureFixture
) -> None:
    server, file = camp.server, str(FILES / "openclaw-current.json")
    caplog.set_level(logging.INFO, "foliot.web.api.imports")
    await camp.agent("fern")
    await camp.agent("main")
    mapping = server.folder / "map.yaml"
    mapping.write_text("agents: {fern: fern}\n")
    words = ("import", "openclaw", file, "--map", str(mapping), "--agent", "main")
    said = await server.command(*words)
    assert "Imported 4 records from openclaw: 4 imported." in said
    assert "Imported jobs are disabled." in said
    logged = [each for each in caplog.records if each.message == "jobs.imported"]
    assert [(each.source, each.imported, each.review) for each in logged] == [  # type: ignore[attr-defined]
        ("openclaw", 4, "foliot jobs list --disabled")
    ]
    listed = await server.command("jobs", "list", "--disabled")
    names = ("Greenhouse morning check", "Seed order reminder", "Pump pulse", "Nightly ledger copy")
    assert all(name in listed for name in names), listed
    before = server.sql("SELECT id, definition, status FROM foliot.jobs ORDER BY id")
    assert {status for _, _, status in before} == {"disabled"}
    again = await server.command(*words)
    assert "Imported 4 records from openclaw: 4 unchanged." in again
    assert server.sql("SELECT id, definition, status FROM foliot.jobs ORDER BY id") == before
    await server.advance(24 * HOUR)
    assert server.sql("SELECT count(*) FROM foliot.runs") == [(0,)]


@pytest.mark.requirement(
    "S4-4", "S4-5", "S4-18", "S4-19", "S4-22", "S4-25", "S4-26", "S4-27", "S4-28", "S4-CLI-2", "S4-AC-3", "S4-AC-8", "S4-AC-11"
)  # fmt: skip
async def test_an_agent_makes_its_jobs_by_the_command_line_and_its_reminder_comes_once(camp: Camp) -> None:
    server, create = camp.server, ("jobs", "create")
    frank, nova = await camp.agent("frank"), await camp.agent("nova")
    theirs = await server.command_json(*create, "of nova", "--every", "1h", "--message", "Mine.", key=nova)
    often = await server.command_json(*create, "often", "--every", "30s", "--message", "Look.", key=frank)
    half = await server.command_json(
        *create, "half hours", "--schedule", "*/30 * * * *", "--message", "Look.", key=frank
    )
    at = server.now() + 2 * MINUTE
    once = await server.command_json(
        *create, "call", "--at", at.isoformat(), "--message", "Call Ada.", key=frank
    )
    assert often["schedule"]["every"] == "30s"
    assert half["schedule"]["expr"] == "*/30 * * * *"
    assert (datetime.fromisoformat(once["next_run_at"]), once["owner_name"]) == (at, "frank")
    for verb in ("show", "pause", "run", "delete"):
        words = ("jobs", verb, theirs["id"], *(("--yes",) if verb == "delete" else ()))
        assert "error[not_found]" in await server.command(*words, key=frank, fails=True), verb

    # "remind me in 2 hours"
    said = await server.command_json(
        *create, "later", "--when", "remind me in 2 hours", "--message", "Tea.", key=frank
    )
    wait = datetime.fromisoformat(said["schedule"]["at"]) - server.now()
    assert (said["schedule"]["kind"], wait) == ("once", 2 * HOUR)

    # A system event says what happened and asks for nothing.
    event = await camp.admin.jobs.create(
        {
            "name": "word", "type": "message", "config": {"text": "Deployed.", "kind": "system_event"},
            "schedule": {"kind": "once", "at": (at + MINUTE).isoformat()},
        }
    )  # fmt: skip
    await server.advance(4 * MINUTE)
    [letter] = await camp.messages(once["id"])
    assert (letter.text, letter.kind, letter.sender.kind, letter.expects_reply) == (
        "Call Ada.",
        "message",
        "user",
        True,
    )
    done = await camp.admin.jobs.get(once["id"])
    assert (done.status, done.run_count, done.next_run_at) == ("completed", 1, None)
    [word] = await camp.messages(str(event.id))
    assert (word.text, word.kind, word.sender.kind, word.expects_reply) == (
        "Deployed.",
        "system_event",
        "system",
        False,
    )
    assert (await camp.admin.jobs.get(often["id"])).success_count == 8
    await server.command("jobs", "pause", often["id"], key=frank)
    await server.advance(2 * HOUR)
    assert (await camp.admin.jobs.get(half["id"])).success_count in {4, 5}
    assert [each.text for each in await camp.messages(said["id"])] == ["Tea."]
    assert len(await camp.messages(once["id"])) == 1, "the reminder came once"


@pytest.mark.requirement("S4-9", "S4-20", "S4-21", "S4-33", "S4-AC-4", "S4-CLI-5")
async def test_five_failures_pause_the_job_and_one_after_the_resume_does_not(camp: Camp) -> None:
    server = camp.server
    job = await camp.admin.jobs.create(
        {
            "name": "Deploy Watch", "type": "flaky", "schedule": {"kind": "interval", "every": "5m"},
            "retry": {"max": 0}, "breaker": {"after": 5, "action": "pause"},
        }
    )  # fmt: skip
    await server.advance(20 * MINUTE)
    assert (await camp.admin.jobs.get(job.id)).status == "active"
    await server.advance(5 * MINUTE)
    paused = await camp.admin.jobs.get(job.id)
    assert (paused.status, paused.consecutive_failures, paused.next_run_at) == ("paused", 5, None)
    assert "5 failures in a row" in (paused.status_reason or "")
    assert "Paused (5 consecutive failures)" in await server.command("jobs", "list")
    page = await camp.page(f"/jobs/{job.id}")
    assert "5 failures in a row" in page
    assert "Nobody answered." in page
    assert "Deploy Watch" in await camp.page("")  # among what needs a look
    await server.advance(HOUR)
    assert (await camp.admin.jobs.get(job.id)).run_count == 5

    resumed = await camp.admin.jobs.resume(job.id)
    assert (resumed.status, resumed.consecutive_failures) == ("active", 0)
    await server.advance(5 * MINUTE)
    after = await camp.admin.jobs.get(job.id)
    assert (after.status, after.consecutive_failures, after.run_count) == ("active", 1, 6)
    camp.is_broken = False
    await server.advance(5 * MINUTE)
    healed = await camp.admin.jobs.get(job.id)
    assert (healed.last_run_status, healed.consecutive_failures) == ("succeeded", 0)


@pytest.mark.requirement("S4-24", "S4-AC-9", "S1-EC-3")
async def test_a_run_whose_worker_is_killed_is_interrupted_and_its_job_fires_again(camp: Camp) -> None:
    server, log = camp.server, ExecutionLog(camp.server.folder)
    member = await camp.admin.members.create("worker", kind="service", role="viewer")
    key = (await camp.admin.keys.create("worker", principal=member.id, scopes=["worker"])).secret
    killed = server.start("worker", "--queue", "far", key=key)
    await asyncio.to_thread(killed.wait_for, r'"worker.registered"')
    job = await camp.admin.jobs.create(
        {
            "name": "inbox", "type": "python", "config": {"call": "job_functions:gated"}, "payload": log.payload,
            "schedule": {"kind": "interval", "every": "10m"}, "queue": "far", "on_lost": "fail", "retry": {"max": 0},
        }
    )  # fmt: skip
    server.held.add("inbox")
    await server.advance(10 * MINUTE)
    await wait_until(lambda: log.executions("began"))
    [lease] = (await camp.admin.leases()).items
    killed.process.kill()
    killed.process.wait()
    server.dead.add(lease.worker)
    await server.advance(LEASE + SECOND)
    [lost] = (await camp.admin.runs.list(job=str(job.id))).items
    assert lost.status == "interrupted"
    log.open_gate()
    again = server.start("worker", "--queue", "far", key=key)
    await asyncio.to_thread(again.wait_for, r'"worker.registered"')
    server.held.clear()
    await server.advance(5 * MINUTE)
    statuses = [each.status for each in (await camp.admin.runs.list(job=str(job.id))).items]
    assert statuses == ["succeeded", "interrupted"]


@pytest.mark.requirement("S4-14", "S4-AC-10", "C-8")
async def test_of_130_runs_the_newest_100_are_kept(camp: Camp) -> None:
    server = camp.server
    job = await camp.admin.jobs.create(
        {
            "name": "beat", "type": "beat", "schedule": {"kind": "interval", "every": "1m"}, "misfire": "all",
            "overlap": "concurrent", "retention": {"keep_last": 100, "mode": "any"},
        }
    )  # fmt: skip
    for _ in range(13):
        server.stand_still(10 * MINUTE)
        await server.settle()
    assert server.sql("SELECT count(*) FROM foliot.runs") == [(130,)]
    await camp.admin.jobs.pause(job.id)
    await server.advance(2 * HOUR)  # figures are added up by the hour, and only then is a run deleted
    janitor = Janitor(janitor_tasks(server.database))
    while await janitor.step() == BATCH_PAUSE:
        pass
    assert server.sql("SELECT min(number), max(number), count(*) FROM foliot.runs") == [(31, 130, 100)]
    assert (await camp.admin.jobs.get(job.id)).run_count == 130
