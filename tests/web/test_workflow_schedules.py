"""A workflow builder's life with /schedules/: repetitions, retries, death, pause, recovery after a stop, slow runs, batch delete.

The clock is virtual; planning, claims and settlement are those of the engine on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.ids import WorkerId
from foliot.domain.outcomes import Failed, Outcome, Succeeded
from foliot.domain.run import RunError
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, open_api
from tests.web.test_dialects import DAILY_REPORT

pytestmark = pytest.mark.anyio
BROKE = Failed(RunError("http_status", "The target answered 500."))


class Story:
    """The API with the dialect, one worker, and a clock that only this class moves."""

    def __init__(self, api: ApiHarness, clock: ManualClock, worker: WorkerId) -> None:
        self.api, self.clock, self.worker = api, clock, worker

    async def ask(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        answer = await self.api.request(method, path, **more)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def create(self, **changed: Any) -> str:
        made = await self.ask("POST", "/schedules/", 201, json={**DAILY_REPORT, **changed})
        return str(made["id"])

    async def get(self, schedule_id: str) -> dict[str, Any]:
        found: dict[str, Any] = await self.ask("GET", f"/schedules/{schedule_id}/")
        return found

    async def pass_time(self, seconds: float) -> list[Claimed]:
        self.clock.advance(timedelta(seconds=seconds))
        await tick(self.api.database)
        return await claim(self.api.database, self.worker, "default", ["event"], 10, Turns())

    async def end(self, claimed: Claimed, outcome: Outcome | None = None) -> None:
        done = Report(claimed.run_id, claimed.job_id, claimed.fence, self.worker, outcome or Succeeded())
        assert await report(self.api.database, [done])


@pytest.fixture
async def story(database: Database) -> AsyncIterator[Story]:
    assert isinstance(database.clock, ManualClock)
    async with open_api(database, dialects=["schedules"]) as api:
        worker = await api.register_worker(WorkerId(uuid4()), ["default"], ["event"])
        yield Story(api, database.clock, worker)


@pytest.mark.requirement("S3-10", "S3-16")
async def test_three_repetitions_and_it_is_done(story: Story) -> None:
    made = await story.create()
    for _ in range(3):
        [run] = await story.pass_time(86_400)
        await story.end(run)
    runs = (await story.ask("GET", f"/runs?job={made}"))["items"]
    assert [each["number"] - 1 for each in reversed(runs)] == [0, 1, 2]  # repeat_number of the events
    found = await story.get(made)
    assert (found["status"], found["run_count"], found["next_run_at"]) == ("done", 3, None)
    assert await story.pass_time(86_400) == []


@pytest.mark.requirement("S3-11", "S3-13")
async def test_retries_wait_60_120_and_240_seconds_and_then_it_is_dead(story: Story) -> None:
    made = await story.create(interval_seconds=60, total_repeats=0)
    [first] = await story.pass_time(60)
    await story.end(first, BROKE)
    for attempt, wait in enumerate((60, 120, 240), start=2):
        assert await story.pass_time(wait - 1) == []
        [again] = await story.pass_time(1)
        assert (again.run_id, again.attempt) == (first.run_id, attempt)
        await story.end(again, BROKE)
    found = await story.get(made)
    assert (found["status"], found["last_error"]) == ("dead", "The target answered 500.")
    assert await story.pass_time(3_600) == []


@pytest.mark.requirement("S3-18", "S3-19")
async def test_a_paused_schedule_has_no_next_run_and_resumes_within_one_interval(story: Story) -> None:
    made = await story.create(interval_seconds=60, total_repeats=0)
    paused = await story.ask("POST", f"/schedules/{made}/pause/")
    assert (paused["status"], paused["next_run_at"]) == ("paused", None)
    await story.ask("POST", f"/schedules/{made}/pause/", 400)
    assert await story.pass_time(90) == []
    resumed = await story.ask("POST", f"/schedules/{made}/resume/")
    wait = datetime.fromisoformat(resumed["next_run_at"]) - story.clock.now()
    assert timedelta(0) < wait <= timedelta(seconds=60)


@pytest.mark.requirement("S3-14")
async def test_an_overdue_schedule_runs_once_after_a_stop(story: Story) -> None:
    made = await story.create(interval_seconds=60, total_repeats=0)
    [late] = await story.pass_time(3_600)
    assert str(late.job_id) == made
    await tick(story.api.database)
    assert await claim(story.api.database, story.worker, "default", ["event"], 10, Turns()) == []


@pytest.mark.requirement("S3-8")
async def test_a_slow_run_skips_the_times_beside_it(story: Story) -> None:
    made = await story.create(interval_seconds=60, total_repeats=0)
    [slow] = await story.pass_time(60)
    assert await story.pass_time(60) == []
    runs = (await story.ask("GET", f"/runs?job={made}"))["items"]
    assert [(each["status"], each["skip_reason"]) for each in runs] == [
        ("skipped", "overlap"),
        ("running", None),
    ]
    await story.end(slow)
    assert len(await story.pass_time(60)) == 1
