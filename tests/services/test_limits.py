"""Caps on how many runs are under way at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId
from foliot.domain.schedule import Interval
from foliot.services.workers.limits import list_limits, recount, set_limit
from foliot.testing.fixtures import TEST
from tests.services.staging import BROKE, Stage

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)


async def some_jobs(stage: Stage, count: int, key: str | None = None) -> list[JobId]:
    made = [await stage.job(f"{key} {n}", Interval(HOUR), concurrency_key=key) for n in range(count)]
    stage.clock.advance(HOUR)
    await stage.tick()
    return made


async def in_use(stage: Stage) -> dict[str, tuple[int, int]]:
    return {
        limit.key: (limit.in_use, limit.cap) for limit in await list_limits(stage.database, stage.workspace)
    }


async def test_without_a_limit_everything_is_claimed(stage: Stage) -> None:
    await some_jobs(stage, 4, "db")
    assert len(await stage.claim()) == 4


async def test_a_workspace_runs_no_more_at_once_than_its_cap(stage: Stage) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 2)
    jobs = await some_jobs(stage, 5)
    first = await stage.claim()
    assert [each.job_id for each in first] == jobs[:2]
    assert stage.waits() == [(job, "limit") for job in jobs[2:]]
    assert await stage.claim() == []
    assert await in_use(stage) == {"": (2, 2)}
    await stage.report(first[0])
    assert stage.ready() == [jobs[2]]
    assert [each.job_id for each in await stage.claim()] == [jobs[2]]
    assert await stage.claim() == []


async def test_a_key_is_capped_and_others_pass_it(stage: Stage) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "db", 1)
    capped = await some_jobs(stage, 3, "db")
    stage.clock.advance(-HOUR)
    free = await some_jobs(stage, 3, "mail")
    claimed = await stage.claim()
    assert {each.job_id for each in claimed} == {capped[0], *free}
    await stage.report(next(each for each in claimed if each.job_id in free))
    assert await stage.claim() == []
    await stage.report(next(each for each in claimed if each.job_id == capped[0]))
    assert [each.job_id for each in await stage.claim()] == [capped[1]]


async def test_a_run_needs_a_permit_of_its_key_and_of_its_workspace(stage: Stage) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 2)
    await set_limit(stage.database, Scope(stage.workspace, TEST), "db", 1)
    jobs = await some_jobs(stage, 3, "db")
    plain = await some_jobs(stage, 1)
    first = await stage.claim()
    assert {each.job_id for each in first} == {jobs[0], plain[0]}
    assert await in_use(stage) == {"": (2, 2), "db": (1, 1)}
    await stage.report(next(each for each in first if each.job_id == plain[0]))
    assert await stage.claim() == []  # its key is still full
    await stage.report(next(each for each in first if each.job_id == jobs[0]))
    assert [each.job_id for each in await stage.claim()] == [jobs[1]]


async def test_a_failed_attempt_gives_its_permit_back_while_it_waits_for_its_retry(stage: Stage) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 1)
    jobs = await some_jobs(stage, 2)
    [mine] = await stage.claim()
    await stage.report(mine, BROKE)
    assert await in_use(stage) == {"": (0, 1)}
    assert [each.job_id for each in await stage.claim()] == [jobs[1]]


async def test_a_line_longer_than_one_claim_does_not_hide_what_may_start(stage: Stage) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "db", 1)
    await some_jobs(stage, 8, "db")
    [other] = await some_jobs(stage, 1, "mail")
    assert len(await stage.claim(permits=2)) == 1
    assert [each.job_id for each in await stage.claim(permits=2)] == [other]


async def test_raising_or_removing_a_cap_lets_the_line_move_up(stage: Stage) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 1)
    jobs = await some_jobs(stage, 4)
    assert len(await stage.claim()) == 1
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 2)
    assert [each.job_id for each in await stage.claim()] == [jobs[1]]
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", None)
    assert [each.job_id for each in await stage.claim()] == jobs[2:]
    assert await in_use(stage) == {}


async def test_a_cap_set_while_runs_are_under_way_counts_them(stage: Stage) -> None:
    await some_jobs(stage, 3)
    under_way = await stage.claim(permits=2)
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 1)
    assert await in_use(stage) == {"": (2, 1)}
    await stage.report(under_way[0])
    assert await stage.claim() == []
    await stage.report(under_way[1])
    assert len(await stage.claim()) == 1


async def test_a_recount_repairs_what_went_wrong(stage: Stage) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), "", 2)
    await some_jobs(stage, 4)
    assert len(await stage.claim()) == 2
    stage.owner.execute("UPDATE foliot.limits SET in_use = 7")
    stage.owner.execute("DELETE FROM foliot.leases")
    assert await recount(stage.database) == 1
    assert await in_use(stage) == {"": (0, 2)}
    assert len(await stage.claim()) == 2
    assert await recount(stage.database) == 0


@pytest.mark.parametrize("cap", [0, -1, 1_000_001])
async def test_a_cap_that_makes_no_sense_is_refused(stage: Stage, cap: int) -> None:
    with pytest.raises(Invalid, match="between 1 and"):
        await set_limit(stage.database, Scope(stage.workspace, TEST), "", cap)


@pytest.mark.parametrize("key", ["", "db"])
async def test_the_more_urgent_goes_first_behind_a_cap_too(stage: Stage, key: str) -> None:
    await set_limit(stage.database, Scope(stage.workspace, TEST), key, 1)
    [first, second] = await some_jobs(stage, 2, "db")
    [running] = await stage.claim()
    assert running.job_id == first
    stage.clock.advance(-HOUR)
    urgent = await stage.job("urgent", Interval(HOUR), concurrency_key="db", priority=-1)
    stage.clock.advance(HOUR)
    await stage.tick()
    assert await stage.claim() == []
    assert stage.waits() == [(second, "limit"), (urgent, "limit")]
    await stage.report(running)
    [running] = await stage.claim()
    assert running.job_id == urgent
    await stage.report(running)
    assert [each.job_id for each in await stage.claim()] == [second]
