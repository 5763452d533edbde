"""Caps on how many runs are under way at once."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.policy import Limits
from foliot.domain.schedule import Interval
from foliot.services.workers.limits import list_limits, recount, set_limit
from foliot.testing.fixtures import TEST
from tests.services.workspace_harness import BROKE, WorkspaceHarness

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)


async def some_jobs(harness: WorkspaceHarness, count: int, key: str | None = None) -> list[JobId]:
    made = [await harness.job(f"{key} {n}", Interval(HOUR), concurrency_key=key) for n in range(count)]
    harness.clock.advance(HOUR)
    await harness.tick()
    return made


async def in_use(harness: WorkspaceHarness) -> dict[str, tuple[int, int]]:
    return {
        limit.key: (limit.in_use, limit.cap)
        for limit in await list_limits(harness.database, harness.workspace)
    }


async def test_without_a_limit_everything_is_claimed(harness: WorkspaceHarness) -> None:
    await some_jobs(harness, 4, "db")
    assert len(await harness.claim()) == 4


async def test_a_workspace_runs_no_more_at_once_than_its_cap(harness: WorkspaceHarness) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 2)
    jobs = await some_jobs(harness, 5)
    first = await harness.claim()
    assert [each.job_id for each in first] == jobs[:2]
    assert harness.waits() == [(job, "limit") for job in jobs[2:]]
    assert await harness.claim() == []
    assert await in_use(harness) == {"": (2, 2)}
    await harness.report(first[0])
    assert harness.ready() == [jobs[2]]
    assert [each.job_id for each in await harness.claim()] == [jobs[2]]
    assert await harness.claim() == []


async def test_a_key_is_capped_and_others_pass_it(harness: WorkspaceHarness) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "db", 1)
    capped = await some_jobs(harness, 3, "db")
    harness.clock.advance(-HOUR)
    free = await some_jobs(harness, 3, "mail")
    claimed = await harness.claim()
    assert {each.job_id for each in claimed} == {capped[0], *free}
    await harness.report(next(each for each in claimed if each.job_id in free))
    assert await harness.claim() == []
    await harness.report(next(each for each in claimed if each.job_id == capped[0]))
    assert [each.job_id for each in await harness.claim()] == [capped[1]]


async def test_a_run_needs_a_permit_of_its_key_and_of_its_workspace(harness: WorkspaceHarness) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 2)
    await set_limit(harness.database, Scope(harness.workspace, TEST), "db", 1)
    jobs = await some_jobs(harness, 3, "db")
    plain = await some_jobs(harness, 1)
    first = await harness.claim()
    assert {each.job_id for each in first} == {jobs[0], plain[0]}
    assert await in_use(harness) == {"": (2, 2), "db": (1, 1)}
    await harness.report(next(each for each in first if each.job_id == plain[0]))
    assert await harness.claim() == []  # its key is still full
    await harness.report(next(each for each in first if each.job_id == jobs[0]))
    assert [each.job_id for each in await harness.claim()] == [jobs[1]]


async def test_a_failed_attempt_gives_its_permit_back_while_it_waits_for_its_retry(
    harness: WorkspaceHarness,
) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 1)
    jobs = await some_jobs(harness, 2)
    [mine] = await harness.claim()
    await harness.report(mine, BROKE)
    assert await in_use(harness) == {"": (0, 1)}
    assert [each.job_id for each in await harness.claim()] == [jobs[1]]


async def test_a_line_longer_than_one_claim_does_not_hide_what_may_start(harness: WorkspaceHarness) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "db", 1)
    await some_jobs(harness, 8, "db")
    [other] = await some_jobs(harness, 1, "mail")
    assert len(await harness.claim(permits=2)) == 1
    assert [each.job_id for each in await harness.claim(permits=2)] == [other]


async def test_raising_or_removing_a_cap_lets_the_line_move_up(harness: WorkspaceHarness) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 1)
    jobs = await some_jobs(harness, 4)
    assert len(await harness.claim()) == 1
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 2)
    assert [each.job_id for each in await harness.claim()] == [jobs[1]]
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", None)
    assert [each.job_id for each in await harness.claim()] == jobs[2:]
    assert await in_use(harness) == {}


async def test_a_cap_set_while_runs_are_under_way_counts_them(harness: WorkspaceHarness) -> None:
    await some_jobs(harness, 3)
    under_way = await harness.claim(permits=2)
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 1)
    assert await in_use(harness) == {"": (2, 1)}
    await harness.report(under_way[0])
    assert await harness.claim() == []
    await harness.report(under_way[1])
    assert len(await harness.claim()) == 1


async def test_a_recount_repairs_what_went_wrong(harness: WorkspaceHarness) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 2)
    await some_jobs(harness, 4)
    assert len(await harness.claim()) == 2
    harness.owner.execute("UPDATE foliot.limits SET in_use = 7")
    harness.owner.execute("DELETE FROM foliot.leases")
    assert await recount(harness.database) == 1
    assert await in_use(harness) == {"": (0, 2)}
    assert len(await harness.claim()) == 2
    assert await recount(harness.database) == 0


@pytest.mark.parametrize("cap", [0, -1, 1_000_001])
async def test_a_cap_that_makes_no_sense_is_refused(harness: WorkspaceHarness, cap: int) -> None:
    with pytest.raises(Invalid, match="between 1 and"):
        await set_limit(harness.database, Scope(harness.workspace, TEST), "", cap)


@pytest.mark.parametrize("key", ["", "db"])
async def test_the_more_urgent_goes_first_behind_a_cap_too(harness: WorkspaceHarness, key: str) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), key, 1)
    [first, second] = await some_jobs(harness, 2, "db")
    [running] = await harness.claim()
    assert running.job_id == first
    harness.clock.advance(-HOUR)
    urgent = await harness.job("urgent", Interval(HOUR), concurrency_key="db", priority=-1)
    harness.clock.advance(HOUR)
    await harness.tick()
    assert await harness.claim() == []
    assert harness.waits() == [(second, "limit"), (urgent, "limit")]
    await harness.report(running)
    [running] = await harness.claim()
    assert running.job_id == urgent
    await harness.report(running)
    assert [each.job_id for each in await harness.claim()] == [second]


async def test_a_run_that_waited_for_a_permit_keeps_its_start_deadline(harness: WorkspaceHarness) -> None:
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", 1)
    for n in range(2):
        await harness.job(f"prompt {n}", Interval(HOUR), limits=Limits(start_deadline=HOUR / 2))
    harness.clock.advance(HOUR)
    await harness.tick()
    [first] = await harness.claim()
    expires = "SELECT expires_at FROM foliot.{}"
    [waits_until] = harness.owner.execute(expires.format("waiting").encode()).fetchall()
    await harness.report(first)
    assert harness.owner.execute(expires.format("ready").encode()).fetchall() == [waits_until]
    assert waits_until == (harness.clock.now() + HOUR / 2,)
    harness.clock.advance(HOUR / 2)
    assert await harness.claim() == []


async def test_caps_of_two_workspaces_count_each_its_own_runs(harness: WorkspaceHarness) -> None:
    other_id = WorkspaceId(uuid4())
    harness.owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'other', 'Other', now())",
        [other_id],
    )
    other = WorkspaceHarness(harness.database, harness.clock, other_id, harness.owner)
    for each in (harness, other):
        await set_limit(each.database, Scope(each.workspace, TEST), "", 3)
        await set_limit(each.database, Scope(each.workspace, TEST), "db", 2)
    await some_jobs(harness, 1, "db")
    harness.clock.advance(-HOUR)
    await some_jobs(other, 2, "db")
    assert len(await harness.claim()) == 3
    assert await recount(harness.database) == 0
    assert await in_use(harness) == {"": (1, 3), "db": (1, 2)}
    assert await in_use(other) == {"": (2, 3), "db": (2, 2)}
    harness.owner.execute("UPDATE foliot.limits SET in_use = 3")
    assert await recount(harness.database) == 4
    assert await in_use(harness) == {"": (1, 3), "db": (1, 2)}
    assert await in_use(other) == {"": (2, 3), "db": (2, 2)}
