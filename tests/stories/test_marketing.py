"""Story A1, marketing automation, the scheduler's half: a sync, jobs behind it, a weekly report, a blackout, retries and alarms.

The connectors and the contents of reports are stand-ins; times, records, files and messages are real.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foliot import Client
from foliot.handlers.registry import Assignment, HandlerResult, failed, succeeded
from foliot.sdk import AsyncClient
from foliot.wire.jobs import JobOut
from tests.notifications.http_peer import HttpPeer, http_peer
from tests.notifications.mail_server import MailServer, mail_server
from tests.stories.installation import Installation, start_node, worker_pid
from tests.stories.server_process import wait_until
from tests.stories.virtual_server import FunctionHandler, VirtualServer

SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
SYNC_TAKES = 20 * SECOND
FRIDAY = datetime(2027, 1, 15, 12, tzinfo=UTC)  # where the clock stands at first
SATURDAY, SUNDAY, MONDAY, TUESDAY = (FRIDAY.replace(hour=0) + n * DAY for n in (1, 2, 3, 4))


@dataclass
class Agency:
    server: VirtualServer
    client: AsyncClient
    mail: MailServer
    slack: HttpPeer
    is_down: bool = False
    ran: Counter[str] = field(default_factory=Counter)

    async def sync(self, assignment: Assignment) -> HandlerResult:
        self.server.stand_still(SYNC_TAKES)
        if self.is_down:
            return failed("source_down", "The platform does not answer.")
        return succeeded("Synced 120 campaigns")

    async def generate(self, assignment: Assignment) -> HandlerResult:
        self.ran[assignment.ctx.job] += 1
        return succeeded()

    async def report(self, assignment: Assignment) -> HandlerResult:
        sections = ", ".join(assignment.config["sections"])
        assignment.ctx.artifact(
            "weekly.pdf", f"%PDF-1.4\n% {sections}\n%%EOF\n".encode(), media_type="application/pdf"
        )
        return succeeded(f"A report with {sections}")

    async def create(self, name: str, kind: str, schedule: str | None, **fields: Any) -> JobOut:
        cron = {"kind": "cron", "expr": schedule, "timezone": "UTC"} if schedule else {"kind": "manual"}
        return await self.client.jobs.create({"name": name, "type": kind, "schedule": cron, **fields})

    async def runs(self, job: JobOut) -> list[Any]:
        """Oldest first."""
        return list(reversed((await self.client.runs.list(job=str(job.id))).items))

    async def channels(self) -> list[str]:
        await self.client.secrets.create("hook", f"{self.slack.url}/T")
        mail = {
            "kind": "email", "host": "127.0.0.1", "port": self.mail.port, "security": "none",
            "sender": "Foliot <foliot@example.com>", "to": ["ops@example.com"],
        }  # fmt: skip
        slack = {"kind": "slack", "webhook_url": {"secret": "hook"}}
        made = [
            await self.client.channels.create({"name": each["kind"], "config": each})
            for each in (mail, slack)
        ]
        return [str(each.id) for each in made]


@pytest.fixture
async def agency(virtual_server: VirtualServer) -> AsyncIterator[Agency]:
    async with mail_server() as mail, http_peer() as slack, virtual_server.client() as client:
        made = Agency(virtual_server, client, mail, slack)
        types = {
            "DATA_SYNC": FunctionHandler(made.sync), "AI_GENERATION": FunctionHandler(made.generate),
            "REPORT_GENERATION": FunctionHandler(made.report),
        }  # fmt: skip
        async with virtual_server.worker(types):
            yield made


@pytest.mark.anyio
@pytest.mark.requirement(
    "S1-US1.2", "S1-US1.3", "S1-US3.1", "S1-US3.3", "S1-US3.T", "S1-FR-005", "S1-FR-007", "S1-FR-008", "S1-SC-003", "S1-SC-006", "S1-A4"
)  # fmt: skip
async def test_a_sync_carries_two_jobs_and_its_failure_stops_them_and_is_reported(agency: Agency) -> None:
    server = agency.server
    mail, slack = await agency.channels()
    sync = await agency.create("sync", "DATA_SYNC", "30 6 * * *")
    behind = [{"job": str(sync.id), "delay": "30m"}]
    x = await agency.create("x", "AI_GENERATION", None, depends_on=behind)
    gate = [{"job": str(sync.id), "mode": "gate", "max_age": "12h"}]
    y = await agency.create("y", "AI_GENERATION", "0 7 * * *", depends_on=gate)
    report = await agency.create(
        "report", "REPORT_GENERATION", "0 9 * * 1", config={"sections": ["KPIs", "campaigns"]}
    )
    sundays = {"kind": "weekly", "start": "02:00", "end": "03:00", "days": ["sun"]}
    closed = await agency.client.calendars.create(
        {
            "name": "Sunday night",
            "kind": "blackout",
            "timezone": "UTC",
            "otherwise": "skip",
            "rules": [sundays],
        }
    )
    nightly = await agency.create("nightly", "AI_GENERATION", "30 2 * * *", calendars=[str(closed.id)])
    await agency.client.notification_rules.create(
        {
            "name": "reports", "events": ["run_succeeded"], "channels": [mail], "scope": {"jobs": [str(report.id)]},
            "recipients": ["board@example.com"], "attachments": ["*.pdf"],
        }
    )  # fmt: skip
    await agency.client.notification_rules.create(
        {"name": "alarms", "events": ["retries_exhausted"], "channels": [mail, slack]}
    )

    # Saturday: the sync succeeds, and both jobs run once at seven.
    await server.advance_to(SATURDAY + 8 * HOUR)
    [done] = await agency.runs(sync)
    assert (done.status, done.planned_for) == ("succeeded", SATURDAY + 6 * HOUR + 30 * MINUTE)
    assert (done.duration_ms, done.output) == (20_000, "Synced 120 campaigns")
    for job in (x, y):
        [run] = await agency.runs(job)
        assert run.status == "succeeded", job.name
        assert abs(run.started_at - (SATURDAY + 7 * HOUR)) <= MINUTE, job.name
    assert (await agency.runs(x))[0].trigger == "dependency"

    # Sunday: nothing runs in the blackout. Monday: one report, with its file, to its recipients.
    await server.advance_to(MONDAY + 10 * HOUR)
    by_day = {each.planned_for: each for each in await agency.runs(nightly)}
    skipped = by_day[SUNDAY + 2 * HOUR + 30 * MINUTE]
    assert (skipped.status, skipped.skip_reason) == ("skipped", "blackout")
    assert by_day[MONDAY + 2 * HOUR + 30 * MINUTE].status == "succeeded"
    [weekly] = await agency.runs(report)
    assert (weekly.planned_for, weekly.output) == (MONDAY + 9 * HOUR, "A report with KPIs, campaigns")
    [file] = (await agency.client.runs.get(weekly.id)).artifacts or []
    assert (file.name, file.media_type) == ("weekly.pdf", "application/pdf")
    [(recipients, letter)] = agency.mail.came
    [attached] = letter.iter_attachments()
    assert recipients == ["board@example.com"]
    assert (attached.get_filename(), attached.get_content()[:5]) == ("weekly.pdf", b"%PDF-")

    # Tuesday: the sync fails. It is repeated after 5, 15 and 30 minutes, and then people hear of it, once.
    agency.is_down = True
    agency.mail.came.clear()
    before = await agency.runs(x)
    await server.advance_to(TUESDAY + 7 * HOUR + 20 * MINUTE)
    assert (agency.mail.came, agency.slack.came) == ([], [])
    await server.advance(5 * MINUTE)
    broken = (await agency.runs(sync))[-1]
    attempts: list[Any] = list((await agency.client.runs.attempts(broken.id)).items)
    assert (broken.status, len(attempts)) == ("failed", 4)
    waits = [later.started_at - earlier.finished_at for earlier, later in pairwise(attempts)]
    assert waits == [5 * MINUTE, 15 * MINUTE, 30 * MINUTE]
    assert server.now() - attempts[-1].finished_at <= 5 * MINUTE
    assert (len(agency.mail.came), len(agency.slack.came)) == (1, 1)
    assert "The platform does not answer." in agency.mail.came[0][1].as_string()
    await server.advance_to(TUESDAY + 12 * HOUR)
    assert await agency.runs(x) == before
    gated = (await agency.runs(y))[-1]
    assert (gated.planned_for, gated.status) == (TUESDAY + 7 * HOUR, "skipped")
    assert gated.skip_reason == "dependency_failed"
    assert "no fresh data" in (gated.note or "")


@pytest.mark.anyio
@pytest.mark.requirement("S1-US4.1", "S1-US4.2", "S1-US4.T", "S1-FR-009")
async def test_one_of_ten_jobs_is_paused_and_does_not_run(agency: Agency) -> None:
    server = agency.server
    mail, _ = await agency.channels()
    await agency.client.notification_rules.create(
        {"name": "pauses", "events": ["job_paused", "job_resumed"], "channels": [mail]}
    )
    jobs = [await agency.create(f"job {n}", "AI_GENERATION", "0 18 * * *") for n in range(10)]
    assert [each.status for each in (await agency.client.jobs.list()).items] == ["active"] * 10
    paused = await agency.client.jobs.pause(jobs[3].id, reason="Campaign over.")
    assert (paused.status, paused.next_run_at) == ("paused", None)
    await server.settle()
    assert agency.mail.subjects == ["[default] job 3 was paused"]
    await server.advance(DAY)
    assert agency.ran == {f"job {n}": 1 for n in range(10) if n != 3}
    await agency.client.jobs.resume(jobs[3].id)
    await server.advance(DAY)
    assert agency.ran["job 3"] == 1


@pytest.mark.slow
@pytest.mark.requirement("S1-EC-3", "S1-NFR-003", "S1-SC-002", "S1-SC-007")
def test_a_server_killed_in_a_run_interrupts_it_and_a_second_one_repeats_it_on_request(
    start_server: Any, installation: Installation, data_dir: Path
) -> None:
    first = start_node(start_server, installation, FOLIOT_LOG_FORMAT="json")
    url = first.wait_for(r'"server.started".*"url": "([^"]+)"')[1]
    key = (data_dir / "admin.key").read_text().strip()
    body = {
        "name": "sync", "type": "python", "config": {"call": "job_functions:gated"}, "payload": installation.payload,
        "schedule": {"kind": "manual"}, "on_lost": "fail", "retry": {"max": 0},
    }  # fmt: skip
    with Client(url, key) as client:
        job = client.jobs.create(body)
        run = client.jobs.run(job.id)
        wait_until(lambda: installation.executions("began"), "the first attempt")
    for pid in (first.process.pid, worker_pid(first)):  # the whole machine is gone
        os.kill(pid, signal.SIGKILL)
    first.process.wait()
    second = start_node(start_server, installation, FOLIOT_LOG_FORMAT="json")
    url = second.wait_for(r'"server.started".*"url": "([^"]+)"')[1]
    with Client(url, key) as client:
        wait_until(lambda: client.runs.get(run.id).status == "interrupted", "the interrupted run")
        installation.open_gate()
        again = client.runs.retry(run.id)
        wait_until(lambda: client.runs.get(again.id).status == "succeeded", "the repeated run")
        assert client.runs.get(run.id).status == "interrupted", "what has ended stays as it is"
    overlaps = installation.rows("""
        SELECT 1 FROM foliot.attempts a JOIN foliot.attempts b ON (a.run_id, a.number) < (b.run_id, b.number)
         WHERE tstzrange(a.leased_at, a.ended_at) && tstzrange(b.leased_at, b.ended_at)""")
    assert overlaps == []
