"""Quotas of fires per day: planned times beyond them are skipped, whichever process ticks."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.access import Scope
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.policy import Overlap, OverlapRule
from foliot.services.identity import workspaces
from foliot.services.identity.workspaces import WorkspaceChanges
from foliot.services.runs import explain, run_control
from foliot.services.scheduling.tick import tick
from foliot.storage.timers import fire_quotas
from foliot.storage.tx import Database, Role
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST
from tests.services.builders import MINUTELY, Owner, advance_and_tick, create_job

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)
CONCURRENT = Overlap(OverlapRule.CONCURRENT)


def records(owner: Owner, job_id: JobId) -> list[str | None]:
    found = owner.execute("SELECT skip_reason FROM foliot.runs WHERE job_id = %s ORDER BY number", [job_id])
    return [reason for (reason,) in found.fetchall()]


async def allow(database: Database, workspace: WorkspaceId, fires: int | None) -> None:
    await workspaces.change(database, TEST, workspace, WorkspaceChanges(None, None, {"fires_per_day": fires}))


async def test_planned_times_beyond_the_quota_of_the_day_are_skipped_until_midnight(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    job_id = await create_job(database, workspace, MINUTELY, overlap=CONCURRENT)
    await allow(database, workspace, 2)
    for _ in range(4):
        await advance_and_tick(database, clock, MINUTE)
    assert records(owner, job_id) == [None, None, "quota", "quota"]
    await run_control.run_now(database, Scope(workspace, TEST), job_id)  # not a fire
    ahead = await explain.explain_instant(database, Scope(workspace), job_id, clock.now() + MINUTE)
    assert "used up for today" in ahead.explanation.sentence
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    owner.execute("DELETE FROM foliot.runs")
    owner.execute("UPDATE foliot.timers SET cursor_at = %s, due_at = %s", [midnight, midnight + MINUTE])
    await advance_and_tick(database, clock, midnight + 2 * MINUTE - clock.now())
    assert records(owner, job_id) == [None, None]
    await allow(database, workspace, None)
    await advance_and_tick(database, clock, MINUTE)
    assert records(owner, job_id) == [None, None, None]


async def test_the_jobs_of_one_batch_share_what_is_left(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    for name in ("a", "b", "c"):
        await create_job(database, workspace, MINUTELY, name=name)
    await allow(database, workspace, 2)
    await advance_and_tick(database, clock, MINUTE)
    found = owner.execute("SELECT skip_reason, count(*) FROM foliot.runs GROUP BY 1 ORDER BY 1").fetchall()
    assert found == [("quota", 1), (None, 2)]


async def test_a_member_has_a_quota_of_its_own(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    mine, other = [
        await create_job(database, workspace, MINUTELY, name=each, overlap=CONCURRENT) for each in "ab"
    ]
    [(agent,)] = owner.execute("SELECT gen_random_uuid()").fetchall()
    owner.execute("UPDATE foliot.jobs SET owner_id = %s WHERE id = %s", [agent, mine])
    async with database.tx(Role.APP, workspace) as tx:
        await fire_quotas.put(tx, workspace, agent, 1)
    for _ in range(2):
        await advance_and_tick(database, clock, MINUTE)
    assert (records(owner, mine), records(owner, other)) == ([None, "quota"], [None, None])


async def test_two_ticks_at_once_do_not_spend_the_same_fire(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    for name in ("a", "b"):
        await create_job(database, workspace, MINUTELY, name=name)
    await allow(database, workspace, 1)
    clock.advance(MINUTE)
    async with database.tx(Role.ENGINE) as tx:
        await fire_quotas.lock(tx, [workspace], [])  # another node is about to spend it
        owner.execute("SET lock_timeout = '100ms'")
        with pytest.raises(Exception, match="lock timeout"):
            owner.execute("SELECT FROM foliot.fire_quotas FOR UPDATE")
    await tick(database, limit=1)
    await tick(database, limit=1)
    found = owner.execute("SELECT skip_reason FROM foliot.runs ORDER BY 1").fetchall()
    assert found == [("quota",), (None,)]
