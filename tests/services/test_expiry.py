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
from foliot.services.settlement.expiry import expire_runs, open_windows
from foliot.services.workers.limits import set_limit
from foliot.services.workers.overview import Unserved, unserved
from foliot.testing.fixtures import TEST
from tests.services.staging import BROKE, Stage

pytestmark = pytest.mark.anyio
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DEADLINE = Limits(start_deadline=5 * MINUTE)


async def test_a_run_that_nobody_starts_in_time_is_skipped(stage: Stage) -> None:
    job = await stage.job("prompt", Interval(HOUR), limits=DEADLINE)
    stage.clock.advance(HOUR)
    await stage.tick()
    assert await expire_runs(stage.database) == 0
    stage.clock.advance(5 * MINUTE)
    assert await stage.claim() == []
    assert await expire_runs(stage.database) == 1
    assert stage.runs(job, "status, skip_reason") == [("skipped", "deadline")]
    assert stage.timer(job, "live, live_run_id, skip_count") == (0, None, 1)
    assert await expire_runs(stage.database) == 0


async def test_the_next_in_line_moves_up_behind_an_expired_one(stage: Stage) -> None:
    job = await stage.job("prompt", Interval(4 * MINUTE), limits=DEADLINE, overlap=Overlap(OverlapRule.QUEUE))
    for _ in range(2):
        stage.clock.advance(4 * MINUTE)
        await stage.tick()
    assert stage.waits() == [(job, "turn")]
    stage.clock.advance(MINUTE)
    assert await expire_runs(stage.database) == 1
    assert stage.waits() == []
    assert stage.timer(job, "live, waiting") == (1, 0)
    assert await stage.run_once() == [job]


@pytest.mark.parametrize("where", ["freeze", "limit"])
async def test_a_deadline_passes_while_a_run_is_held(stage: Stage, where: str) -> None:
    job = await stage.job("prompt", Interval(HOUR), limits=DEADLINE)
    if where == "limit":
        await set_limit(stage.database, Scope(stage.workspace, TEST), "", 1)
        await stage.job("other", Interval(HOUR), priority=-1)
    stage.clock.advance(HOUR)
    await stage.tick()
    if where == "freeze":
        await turn_on(stage.database, Scope(stage.workspace, TEST), NewFreeze("now", everything=True))
    await stage.claim()
    assert stage.waits() == [(job, where)]
    stage.clock.advance(5 * MINUTE)
    assert await expire_runs(stage.database) == 1
    assert stage.runs(job, "status, skip_reason") == [("skipped", "deadline")]


async def test_a_run_must_start_before_its_window_closes(stage: Stage) -> None:
    job = await stage.job("daily", Cron("50 12 * * *"), window=Window(time(8), time(13)), limits=Limits())
    stage.clock.advance(50 * MINUTE)
    await stage.tick()
    stage.clock.advance(11 * MINUTE)
    assert await expire_runs(stage.database) == 1
    assert stage.runs(job, "status, skip_reason") == [("skipped", "window")]


async def test_of_deadline_and_window_the_one_that_came_first_is_named(stage: Stage) -> None:
    window = Window(time(8), time(13))
    jobs = [
        await stage.job("a", Cron("50 12 * * *"), window=window, limits=Limits(start_deadline=wait * MINUTE))
        for wait in (5, 50)
    ]
    stage.clock.advance(50 * MINUTE)
    await stage.tick()
    stage.clock.advance(HOUR)
    assert await expire_runs(stage.database) == 2
    assert [stage.runs(job, "skip_reason") for job in jobs] == [[("deadline",)], [("window",)]]


async def test_a_retry_is_not_bound_by_the_start_deadline(stage: Stage) -> None:
    """The run has started in time; only its window still binds it."""
    job = await stage.job("daily", Interval(DAY), limits=DEADLINE, retry=Retry(delays=(HOUR,)))
    stage.clock.advance(DAY)
    await stage.tick()
    [mine] = await stage.claim()
    await stage.report(mine, BROKE)
    stage.clock.advance(HOUR)
    assert await expire_runs(stage.database) == 0
    assert await stage.run_once() == [job]


async def test_a_retry_whose_window_closes_first_ends_as_the_failure_it_was(stage: Stage) -> None:
    job = await stage.job("daily", Cron("0 12 * * *"), window=Window(time(8), time(13)))
    stage.clock.advance(DAY)
    await stage.tick()
    [mine] = await stage.claim()
    await stage.report(mine, BROKE)
    assert stage.ready() == [job]
    stage.clock.advance(61 * MINUTE)
    assert await expire_runs(stage.database) == 1
    assert stage.runs(job, "status, error ->> 'code', note") == [
        ("failed", "boom", "its retry could not start in time")
    ]


async def test_a_retry_outside_the_window_waits_for_the_next(stage: Stage) -> None:
    job = await stage.job(
        "daily",
        Cron("0 12 * * *"),
        window=Window(time(8), time(13)),
        retry=Retry(delays=(2 * HOUR,), past_next=True),
    )
    stage.clock.advance(DAY)
    await stage.tick()
    [mine] = await stage.claim()
    await stage.report(mine, BROKE)
    expected = (datetime(2027, 1, 17, 8, tzinfo=UTC), datetime(2027, 1, 17, 13, tzinfo=UTC))
    assert stage.owner.execute("SELECT available_at, expires_at FROM foliot.ready").fetchall() == [expected]
    assert stage.runs(job, "status") == [(None,)]


async def test_a_late_run_waits_for_its_window_and_then_starts(stage: Stage) -> None:
    """The node was down over the window: found in the evening, the run is for the next morning."""
    job = await stage.job("daily", Cron("0 12 * * *"), window=Window(time(8), time(13)))
    stage.clock.set(datetime(2027, 1, 16, 18, tzinfo=UTC))
    await stage.tick()
    assert stage.waits() == [(job, "window")]
    assert await open_windows(stage.database) == 0
    stage.clock.set(datetime(2027, 1, 17, 8, tzinfo=UTC))
    assert await open_windows(stage.database) == 1
    assert await open_windows(stage.database) == 0
    assert await stage.run_once() == [job]


async def test_a_window_that_opens_into_a_freeze_stays_shut(stage: Stage) -> None:
    job = await stage.job(
        "daily", Cron("0 12 * * *"), window=Window(time(8), time(13)), misfire=Misfire(MisfireRule.LATEST)
    )
    stage.clock.set(datetime(2027, 1, 16, 18, tzinfo=UTC))
    await stage.tick()
    await turn_on(stage.database, Scope(stage.workspace, TEST), NewFreeze("now", everything=True))
    stage.clock.set(datetime(2027, 1, 17, 8, tzinfo=UTC))
    assert await open_windows(stage.database) == 0
    assert stage.waits() == [(job, "freeze")]


def a_worker(stage: Stage, **columns: Any) -> None:
    row = {
        "id": uuid4(),
        "name": "w",
        "queues": ["default"],
        "types": ["python"],
        "capacity": 1,
        "started_at": stage.clock.now(),
        "alive_until": stage.clock.now() + HOUR,
        "is_draining": False,
        "workspace_id": None,
        **columns,
    }
    names = ", ".join(row)
    places = ", ".join(f"%({name})s" for name in row)
    stage.owner.execute(f"INSERT INTO foliot.workers ({names}) VALUES ({places})", row)


async def test_a_run_that_no_live_worker_can_serve_says_so(stage: Stage) -> None:
    for n in range(2):
        await stage.job(f"job {n}", Interval(HOUR))
    await stage.job("mail", Interval(HOUR), queue="mail")
    stage.clock.advance(HOUR)
    await stage.tick()
    assert await unserved(stage.database, stage.workspace) == []
    stage.clock.advance(MINUTE)
    since = stage.clock.now() - MINUTE
    mail, default = Unserved("mail", "python", 1, since), Unserved("default", "python", 2, since)
    assert await unserved(stage.database, stage.workspace) == [default, mail]
    assert default.sentence == 'No live worker serves type "python" on queue "default".'
    a_worker(stage, types=["http"])
    a_worker(stage, alive_until=stage.clock.now() - MINUTE)
    a_worker(stage, is_draining=True)
    a_worker(stage, workspace_id=WorkspaceId(uuid4()))
    assert await unserved(stage.database, stage.workspace) == [default, mail]
    a_worker(stage)
    assert await unserved(stage.database, stage.workspace) == [mail]
    a_worker(stage, workspace_id=stage.workspace, queues=["mail"])
    assert await unserved(stage.database, stage.workspace) == []
