"""Transactions lock timers in the order of ids, so that two of them never wait in a ring."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from foliot.domain.ids import JobId
from foliot.domain.outcomes import Failed, Outcome, Succeeded
from foliot.domain.run import RunError
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.settle_steps import lock_for_settlement
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role
from tests.race.race_nodes import RaceNodes
from tests.services.service_driver import MINUTE, ServiceDriver

pytestmark = pytest.mark.anyio
JOBS = 4
Locking = Callable[[Database, list[JobId]], Coroutine[Any, Any, object]]


async def lock_timers(database: Database, job_ids: list[JobId]) -> None:
    async with database.tx(Role.ENGINE) as tx:
        await timers.lock(tx, job_ids)


async def lock_with_dependents(database: Database, job_ids: list[JobId]) -> None:
    async with database.tx(Role.ENGINE) as tx:
        await lock_for_settlement(tx, job_ids)


async def locked_before_the_last(
    nodes: RaceNodes, verb: Coroutine[Any, Any, object], ids: list[JobId]
) -> set[JobId]:
    """Hold the timer of the last job; return the timers that the verb has locked while it waits for that one."""
    await nodes.lock_holder.execute("SELECT FROM foliot.timers WHERE job_id = %s FOR UPDATE", [ids[-1]])
    waiting = await nodes.start_blocked(verb)
    free = await nodes.watcher.execute("SELECT job_id FROM foliot.timers FOR UPDATE SKIP LOCKED")
    found = {job_id for (job_id,) in await free.fetchall()}
    await nodes.lock_holder.rollback()
    nodes.waiting = 0
    await waiting
    return set(ids[:-1]) - found


@pytest.mark.parametrize("lock", [lock_timers, lock_with_dependents])
async def test_timers_are_locked_in_the_order_of_ids(
    nodes: RaceNodes, driver: ServiceDriver, lock: Locking
) -> None:
    ids = sorted([await driver.job() for _ in range(JOBS)])
    held = await locked_before_the_last(nodes, lock(nodes.left, ids[::-1]), ids)
    assert held == set(ids[:-1])


@pytest.mark.parametrize("outcome", [Succeeded(), Failed(RunError("boom", "It broke."))])
async def test_a_report_locks_timers_in_the_order_of_ids(
    nodes: RaceNodes, driver: ServiceDriver, outcome: Outcome
) -> None:
    ids = sorted([await driver.job() for _ in range(JOBS)])
    await driver.tick(MINUTE)
    runs = sorted(await driver.claim(), key=lambda run: run.job_id, reverse=True)
    reports = [Report(run.run_id, run.job_id, run.fence, driver.worker, outcome) for run in runs]
    held = await locked_before_the_last(nodes, report(nodes.left, reports), ids)
    assert held == set(ids[:-1])
