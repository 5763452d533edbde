"""Start deadlines, the ends of windows, windows that open, and runs that nobody can serve."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.ids import WorkspaceId
from foliot.domain.policy import Limits, Misfire, MisfireRule, Overlap, OverlapRule, Retry
from foliot.domain.schedule import Cron, Interval, Window
from foliot.services.scheduling.freezes import NewFreeze, turn_on
from foliot.services.settlement.waiting_runs import expire_runs, open_windows
from foliot.services.workers.limits import set_limit
from foliot.services.workers.overview import Unserved, unserved
from foliot.testing.fixtures import TEST
from tests.services.workspace_harness import BROKE, WorkspaceHarness

pytestmark = pytest.mark.anyio
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DEADLINE = Limits(start_deadline=5 * MINUTE)


async def test_a_run_that_nobody_starts_in_time_is_skipped(harness: WorkspaceHarness) -> None:
    job = await harness.job("prompt", Interval(HOUR), limits=DEADLINE)
    harness.clock.advance(HOUR)
    await harness.tick()
    assert await expire_runs(harness.database) == 0
    harness.clock.advance(5 * MINUTE)
    assert await harness.claim() == []
    assert await expire_runs(harness.database) == 1
    assert harness.runs(job, "status, skip_reason") == [("skipped", "deadline")]
    assert harness.timer(job, "live, live_run_id, skip_count") == (0, None, 1)
    assert await expire_runs(harness.database) == 0


async def test_the_next_in_line_moves_up_behind_an_expired_one(harness: WorkspaceHarness) -> None:
    job = await harness.job(
        "prompt", Interval(4 * MINUTE), limits=DEADLINE, overlap=Overlap(OverlapRule.QUEUE)
    )
    for _ in range(2):
        harness.clock.advance(4 * MINUTE)
        await harness.tick()
    assert harness.waits() == [(job, "turn")]
    harness.clock.advance(MINUTE)
    assert await expire_runs(harness.database) == 1
    assert harness.waits() == []
    assert harness.timer(job, "live, waiting") == (1, 0)
    assert await harness.run_once() == [job]


@pytest.mark.parametrize("where", ["freeze", "limit"])
async def test_a_deadline_passes_while_a_run_is_held(harness: WorkspaceHarness, where: str) -> None:
    job = await harness.job("prompt", Interval(HOUR), limits=DEADLINE)
    if where == "limit":
        await set_limit(harness.database, Scope(harness.workspace, TEST), "", 1)
        await harness.job("other", Interval(HOUR), priority=-1)
    harness.clock.advance(HOUR)
    await harness.tick()
    if where == "freeze":
        await turn_on(harness.database, Scope(harness.workspace, TEST), NewFreeze("now", everything=True))
    await harness.claim()
    assert harness.waits() == [(job, where)]
    harness.clock.advance(5 * MINUTE)
    assert await expire_runs(harness.database) == 1
    assert harness.runs(job, "status, skip_reason") == [("skipped", "deadline")]


@pytest.mark.requirement("X-11")
async def test_a_run_must_start_before_its_window_closes(harness: WorkspaceHarness) -> None:
    job = await harness.job("daily", Cron("50 12 * * *"), window=Window(time(8), time(13)), limits=Limits())
    harness.clock.advance(50 * MINUTE)
    await harness.tick()
    harness.clock.advance(11 * MINUTE)
    assert await expire_runs(harness.database) == 1
    assert harness.runs(job, "status, skip_reason") == [("skipped", "window")]


async def test_of_deadline_and_window_the_one_that_came_first_is_named(harness: WorkspaceHarness) -> None:
    window = Window(time(8), time(13))
    jobs = [
        await harness.job(
            "a", Cron("50 12 * * *"), window=window, limits=Limits(start_deadline=wait * MINUTE)
        )
        for wait in (5, 50)
    ]
    harness.clock.advance(50 * MINUTE)
    await harness.tick()
    harness.clock.advance(HOUR)
    assert await expire_runs(harness.database) == 2
    assert [harness.runs(job, "skip_reason") for job in jobs] == [[("deadline",)], [("window",)]]


async def test_a_retry_is_not_bound_by_the_start_deadline(harness: WorkspaceHarness) -> None:
    """The run has started in time; only its window still binds it."""
    job = await harness.job("daily", Interval(DAY), limits=DEADLINE, retry=Retry(delays=(HOUR,)))
    harness.clock.advance(DAY)
    await harness.tick()
    [mine] = await harness.claim()
    await harness.report(mine, BROKE)
    harness.clock.advance(HOUR)
    assert await expire_runs(harness.database) == 0
    assert await harness.run_once() == [job]


async def test_a_retry_whose_window_closes_first_ends_as_the_failure_it_was(
    harness: WorkspaceHarness,
) -> None:
    job = await harness.job("daily", Cron("0 12 * * *"), window=Window(time(8), time(13)))
    harness.clock.advance(DAY)
    await harness.tick()
    [mine] = await harness.claim()
    await harness.report(mine, BROKE)
    assert harness.ready() == [job]
    harness.clock.advance(61 * MINUTE)
    assert await expire_runs(harness.database) == 1
    assert harness.runs(job, "status, error ->> 'code', note") == [
        ("failed", "boom", "its retry could not start in time")
    ]


async def test_a_retry_outside_the_window_waits_for_the_next(harness: WorkspaceHarness) -> None:
    job = await harness.job(
        "daily",
        Cron("0 12 * * *"),
        window=Window(time(8), time(13)),
        retry=Retry(delays=(2 * HOUR,), past_next=True),
    )
    harness.clock.advance(DAY)
    await harness.tick()
    [mine] = await harness.claim()
    await harness.report(mine, BROKE)
    expected = (datetime(2027, 1, 17, 8, tzinfo=UTC), datetime(2027, 1, 17, 13, tzinfo=UTC))
    assert harness.owner.execute("SELECT available_at, expires_at FROM foliot.ready").fetchall() == [expected]
    assert harness.runs(job, "status") == [(None,)]


async def test_a_late_run_waits_for_its_window_and_then_starts(harness: WorkspaceHarness) -> None:
    """The node was down over the window: found in the evening, the run is for the next morning."""
    job = await harness.job("daily", Cron("0 12 * * *"), window=Window(time(8), time(13)))
    harness.clock.set(datetime(2027, 1, 16, 18, tzinfo=UTC))
    await harness.tick()
    assert harness.waits() == [(job, "window")]
    assert await open_windows(harness.database) == 0
    harness.clock.set(datetime(2027, 1, 17, 8, tzinfo=UTC))
    assert await open_windows(harness.database) == 1
    assert await open_windows(harness.database) == 0
    assert await harness.run_once() == [job]


async def test_a_window_that_opens_into_a_freeze_stays_shut(harness: WorkspaceHarness) -> None:
    job = await harness.job(
        "daily", Cron("0 12 * * *"), window=Window(time(8), time(13)), misfire=Misfire(MisfireRule.LATEST)
    )
    harness.clock.set(datetime(2027, 1, 16, 18, tzinfo=UTC))
    await harness.tick()
    await turn_on(harness.database, Scope(harness.workspace, TEST), NewFreeze("now", everything=True))
    harness.clock.set(datetime(2027, 1, 17, 8, tzinfo=UTC))
    assert await open_windows(harness.database) == 0
    assert harness.waits() == [(job, "freeze")]


def a_worker(harness: WorkspaceHarness, **columns: Any) -> None:
    row = {
        "id": uuid4(),
        "name": "w",
        "queues": ["default"],
        "types": ["python"],
        "capacity": 1,
        "started_at": harness.clock.now(),
        "alive_until": harness.clock.now() + HOUR,
        "is_draining": False,
        "workspace_id": None,
        **columns,
    }
    names = ", ".join(row)
    places = ", ".join(f"%({name})s" for name in row)
    harness.owner.execute(f"INSERT INTO foliot.workers ({names}) VALUES ({places})", row)


async def test_a_run_that_no_live_worker_can_serve_says_so(harness: WorkspaceHarness) -> None:
    for n in range(2):
        await harness.job(f"job {n}", Interval(HOUR))
    await harness.job("mail", Interval(HOUR), queue="mail")
    harness.clock.advance(HOUR)
    await harness.tick()
    assert await unserved(harness.database, harness.workspace) == []
    harness.clock.advance(MINUTE)
    since = harness.clock.now() - MINUTE
    mail, default = Unserved("mail", "python", 1, since), Unserved("default", "python", 2, since)
    assert await unserved(harness.database, harness.workspace) == [default, mail]
    assert default.sentence == 'No live worker serves type "python" on queue "default".'
    a_worker(harness, types=["http"])
    a_worker(harness, alive_until=harness.clock.now() - MINUTE)
    a_worker(harness, is_draining=True)
    a_worker(harness, workspace_id=WorkspaceId(uuid4()))
    assert await unserved(harness.database, harness.workspace) == [default, mail]
    a_worker(harness)
    assert await unserved(harness.database, harness.workspace) == [mail]
    a_worker(harness, workspace_id=harness.workspace, queues=["mail"])
    assert await unserved(harness.database, harness.workspace) == []
