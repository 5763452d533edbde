"""Claims, reports, cancels and edits meet each other on one run or one job."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import IllegalMove, StaleRevision
from foliot.domain.ids import JobId, WorkerId
from foliot.domain.outcomes import Cancelled, Failed, Outcome, Succeeded
from foliot.domain.policy import Backoff, Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Cron, Manual
from foliot.services.jobs.job_edits import edit
from foliot.services.jobs.job_status import archive, pause, purge, resume
from foliot.services.runs.backfill import backfill
from foliot.services.runs.run_control import CancelResult, cancel_run, retry_run, run_now
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database
from foliot.testing.fixtures import ANA, BEN
from tests.race.race_nodes import RaceNodes
from tests.services.builders import WORKER as OTHER
from tests.services.service_driver import MINUTE, ServiceDriver, definition

pytestmark = pytest.mark.anyio
BOOM = Failed(RunError("boom", "It broke."))


async def take(node: Database, worker: WorkerId, permits: int = 10) -> list[Claimed]:
    return await claim(node, worker, "default", ["python"], permits, Turns())


async def tell(node: Database, driver: ServiceDriver, run: Claimed, outcome: Outcome) -> bool:
    done = Report(run.run_id, run.job_id, run.fence, driver.worker, outcome)
    return run.run_id in await report(node, [done])


async def running(driver: ServiceDriver, **spec: Any) -> tuple[JobId, Claimed]:
    job_id = await driver.job(Cron("0 * * * *"), **spec)
    await run_now(driver.database, Scope(driver.workspace, ANA), job_id)
    [run] = await driver.claim()
    return job_id, run


# Claims


@pytest.mark.requirement("S1-A3")
async def test_of_two_claims_one_has_the_run_and_the_other_passes_by(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    await driver.job()
    await driver.tick(MINUTE)
    async with nodes.paused_in_claim(take(nodes.left, driver.worker)) as first:
        assert await take(nodes.right, OTHER) == []
    [run] = await first
    assert driver.sql("SELECT run_id, worker_id, fence FROM foliot.leases") == [
        (run.run_id, driver.worker, 1)
    ]


async def test_two_claims_share_what_is_ready(nodes: RaceNodes, driver: ServiceDriver) -> None:
    for _ in range(4):
        await driver.job()
    await driver.tick(MINUTE)
    async with nodes.paused_in_claim(take(nodes.left, driver.worker, 2)) as first:
        second = await nodes.start_blocked(take(nodes.right, OTHER, 2))
    mine, theirs = await first, await second
    assert len({run.run_id for run in (*mine, *theirs)}) == 4


@pytest.mark.requirement("S1-FR-004", "S1-T1", "S4-AC-5")
async def test_an_exclusive_job_is_leased_once_even_when_two_of_its_runs_are_ready(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    """The bookkeeping is wrong here on purpose: the index holds all the same."""
    await driver.job(rule="queue")
    await driver.tick(MINUTE)
    await driver.tick(MINUTE)
    driver.owner.execute(
        "WITH gone AS (DELETE FROM foliot.waiting RETURNING *) INSERT INTO foliot.ready (workspace_id, run_id, job_id, queue, type,"
        " priority, available_at, planned_for, exclusive, timeout, trigger) SELECT workspace_id, run_id, job_id, queue, type,"
        " priority, available_at, planned_for, exclusive, timeout, trigger FROM gone"
    )
    driver.owner.execute("UPDATE foliot.timers SET live = 2, waiting = 0")
    assert len(await take(nodes.left, driver.worker, 10)) == 1
    assert await take(nodes.right, OTHER) == []
    assert [where for _, where, _ in driver.runs()] == ["running", "ready"]


async def test_a_cancel_waits_for_a_claim_and_asks_its_worker(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    await driver.job()
    await driver.tick(MINUTE)
    [(run_id,)] = driver.sql("SELECT run_id FROM foliot.ready")
    async with nodes.paused_in_claim(take(nodes.left, driver.worker)) as first:
        second = await nodes.start_blocked(cancel_run(nodes.right, Scope(driver.workspace, BEN), run_id))
    assert len(await first) == 1
    assert await second is CancelResult.REQUESTED
    assert driver.sql("SELECT cancel_requested_at IS NOT NULL FROM foliot.leases") == [(True,)]


async def test_a_claim_passes_by_a_run_that_is_being_cancelled(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    await driver.job()
    await driver.tick(MINUTE)
    [(run_id,)] = driver.sql("SELECT run_id FROM foliot.ready")
    async with nodes.paused_at_table(
        cancel_run(nodes.left, Scope(driver.workspace, BEN), run_id), at="audit"
    ) as first:
        assert await take(nodes.right, driver.worker) == []
    assert await first is CancelResult.ENDED
    assert driver.runs() == [("schedule", "cancelled", None)]


async def test_a_pause_waits_for_a_claim_and_lets_it_run_on(nodes: RaceNodes, driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await driver.tick(MINUTE)
    async with nodes.paused_in_claim(take(nodes.left, driver.worker)) as first:
        second = await nodes.start_blocked(pause(nodes.right, Scope(driver.workspace, BEN), job_id))
    [run] = await first
    await second
    assert (driver.status(), driver.runs()) == ("paused", [("schedule", "running", None)])
    assert await driver.finish(run)


async def test_an_edit_waits_for_a_claim_and_leaves_its_run_where_it_is(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    await driver.tick(MINUTE)
    async with nodes.paused_in_claim(take(nodes.left, driver.worker)) as first:
        second = await nodes.start_blocked(
            edit(nodes.right, Scope(driver.workspace, BEN), job_id, definition(queue="slow"))
        )
    assert len(await first) == 1
    await second
    assert driver.sql("SELECT queue FROM foliot.leases") == [("default",)]


async def test_an_archive_waits_for_a_claim_and_lets_it_run_on(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    await driver.tick(MINUTE)
    async with nodes.paused_in_claim(take(nodes.left, driver.worker)) as first:
        second = await nodes.start_blocked(archive(nodes.right, Scope(driver.workspace, BEN), job_id))
    [run] = await first
    await second
    assert await driver.finish(run)
    assert (driver.status(), driver.runs()) == ("archived", [("schedule", "succeeded", None)])


# Reports


async def test_of_two_reports_under_one_fence_the_first_counts(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    _, run = await running(driver)
    async with nodes.paused_in_report(tell(nodes.left, driver, run, Succeeded())) as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run, BOOM))
    assert (await first, await second) == (True, False)
    assert driver.runs() == [("manual", "succeeded", None)]
    assert driver.timer("run_count", "success_count", "failure_count") == (1, 1, 0)


async def test_of_two_successes_under_one_fence_one_counts(nodes: RaceNodes, driver: ServiceDriver) -> None:
    _, run = await running(driver)
    async with nodes.paused_in_report(tell(nodes.left, driver, run, Succeeded())) as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run, Succeeded()))
    assert (await first, await second) == (True, False)
    assert driver.timer("run_count", "success_count", "live", "live_run_id") == (1, 1, 0, None)


async def test_a_cancel_waits_for_a_report_and_comes_too_late(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    _, run = await running(driver)
    async with nodes.paused_in_report(tell(nodes.left, driver, run, Succeeded())) as first:
        second = await nodes.start_blocked(cancel_run(nodes.right, Scope(driver.workspace, BEN), run.run_id))
    assert await first
    with pytest.raises(IllegalMove, match="has already ended: it is succeeded"):
        await second
    assert driver.runs() == [("manual", "succeeded", None)]


async def test_a_cancel_after_a_failure_ends_the_retry_that_waits(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    _, run = await running(driver, retry=Retry(3, Backoff.FIXED))
    async with nodes.paused_at_table(tell(nodes.left, driver, run, BOOM), at="runs") as first:
        second = await nodes.start_blocked(cancel_run(nodes.right, Scope(driver.workspace, BEN), run.run_id))
    assert await first
    assert await second is CancelResult.ENDED
    assert driver.runs() == [("manual", "cancelled", None)]
    assert driver.sql("SELECT attempt_count FROM foliot.runs") == [(1,)]


@pytest.mark.parametrize(
    ("outcome", "end"), [(Succeeded(), "succeeded"), (BOOM, "cancelled"), (Cancelled(), "cancelled")]
)
async def test_a_report_that_waited_for_a_cancel_counts_only_as_a_success(
    nodes: RaceNodes, driver: ServiceDriver, outcome: Outcome, end: str
) -> None:
    _, run = await running(driver, retry=Retry(3, Backoff.FIXED))
    cancel = cancel_run(nodes.left, Scope(driver.workspace, BEN), run.run_id)
    async with nodes.paused_at_table(cancel, at="audit") as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run, outcome))
    assert await first is CancelResult.REQUESTED
    assert await second
    assert driver.runs() == [("manual", end, None)]


async def test_a_manual_run_that_waited_for_the_last_report_may_start_at_once(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id, run = await running(driver)
    async with nodes.paused_in_report(tell(nodes.left, driver, run, Succeeded())) as first:
        second = await nodes.start_blocked(run_now(nodes.right, Scope(driver.workspace, BEN), job_id))
    assert await first
    await second
    assert driver.runs() == [("manual", "succeeded", None), ("manual", "ready", None)]


async def test_a_report_that_waited_for_a_manual_run_brings_it_forward(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id, run = await running(driver)
    async with nodes.paused_at_table(
        run_now(nodes.left, Scope(driver.workspace, BEN), job_id), at="audit"
    ) as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run, Succeeded()))
    await first
    assert await second
    assert driver.runs() == [("manual", "succeeded", None), ("manual", "ready", None)]


async def test_a_report_that_waited_for_a_forced_purge_is_refused(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id, run = await running(driver)
    gone = purge(nodes.left, Scope(driver.workspace, BEN), job_id, force=True)
    async with nodes.paused_at_table(gone, at="audit") as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, run, Succeeded()))
    assert await first == 1
    assert not await second


async def test_two_repeats_of_one_run_are_two_runs_in_line(nodes: RaceNodes, driver: ServiceDriver) -> None:
    _, run = await running(driver)
    assert await driver.finish(run)
    async with nodes.paused_at_table(
        retry_run(nodes.left, Scope(driver.workspace, ANA), run.run_id), at="audit"
    ) as first:
        second = await nodes.start_blocked(retry_run(nodes.right, Scope(driver.workspace, BEN), run.run_id))
    assert await first != await second
    assert [where for _, where, _ in driver.runs()] == ["succeeded", "ready", "waiting"]


# Two upstreams of one join


@pytest.mark.parametrize("dependent_is_oldest", [True, False])
@pytest.mark.parametrize(("when", "made"), [("all", 1), ("any", 2)])
async def test_two_upstreams_that_end_at_once_complete_the_join_as_often_as_it_says(
    nodes: RaceNodes, driver: ServiceDriver, when: str, made: int, dependent_is_oldest: bool
) -> None:
    """Ids rise with time, and locks are taken by id: the dependent is locked before its upstreams or after them."""
    join: dict[str, Any] = {"name": "join", "rule": "queue", "depends_when": when}
    dependent = await driver.job(Manual(), **join) if dependent_is_oldest else None
    upstreams = []
    for _ in range(2):
        driver.clock.advance(MINUTE)
        upstreams.append(await driver.job(Manual()))
    driver.clock.advance(MINUTE)
    dependent = dependent or await driver.job(Manual(), **join)
    for upstream in upstreams:
        depend(driver, dependent, upstream)
        await run_now(nodes.left, Scope(driver.workspace, ANA), upstream)
    one, other = await driver.claim()
    async with nodes.paused_in_report(tell(nodes.left, driver, one, Succeeded())) as first:
        second = await nodes.start_blocked(tell(nodes.right, driver, other, Succeeded()))
    assert (await first, await second) == (True, True)
    assert driver.sql("SELECT count(*) FROM foliot.runs WHERE trigger = 'dependency'") == [(made,)]
    driver.balance()
    marks = {row[0] for row in driver.sql("SELECT consumed_run_id FROM foliot.dependencies")}
    assert marks == {one.run_id, other.run_id}


def depend(driver: ServiceDriver, job_id: JobId, upstream: JobId) -> None:
    driver.owner.execute(
        'INSERT INTO foliot.dependencies (workspace_id, job_id, upstream_id, "on", mode)'
        " VALUES (%s, %s, %s, 'success', 'trigger')",
        [driver.workspace, job_id, upstream],
    )
    driver.owner.execute("UPDATE foliot.timers SET has_dependents = true WHERE job_id = %s", [upstream])


# People against people


async def test_of_two_edits_of_one_revision_the_second_is_refused(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    mine = edit(
        nodes.left, Scope(driver.workspace, ANA, expected_revision=1), job_id, definition(name="mine")
    )
    async with nodes.paused_at_table(mine, at="audit") as first:
        second = await nodes.start_blocked(
            edit(
                nodes.right,
                Scope(driver.workspace, BEN, expected_revision=1),
                job_id,
                definition(name="theirs"),
            )
        )
    assert (await first).job.revision == 2
    with pytest.raises(StaleRevision, match="revision 2, not 1"):
        await second
    assert driver.sql("SELECT name, revision FROM foliot.jobs") == [("mine", 2)]


async def test_two_edits_that_ask_for_no_revision_both_count_and_the_last_stays(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job()
    mine = edit(nodes.left, Scope(driver.workspace, ANA), job_id, definition(name="mine"))
    async with nodes.paused_at_table(mine, at="audit") as first:
        second = await nodes.start_blocked(
            edit(nodes.right, Scope(driver.workspace, BEN), job_id, definition(name="theirs"))
        )
    assert ((await first).job.revision, (await second).job.revision) == (2, 3)
    assert driver.sql("SELECT name, revision FROM foliot.jobs") == [("theirs", 3)]


async def test_of_two_resumes_one_records_the_gap(nodes: RaceNodes, driver: ServiceDriver) -> None:
    job_id = await driver.job()
    await pause(nodes.left, Scope(driver.workspace, ANA), job_id)
    driver.clock.advance(5 * MINUTE)
    async with nodes.paused_at_table(
        resume(nodes.left, Scope(driver.workspace, ANA), job_id), at="audit"
    ) as first:
        second = await nodes.start_blocked(resume(nodes.right, Scope(driver.workspace, BEN), job_id))
    await first
    with pytest.raises(IllegalMove):
        await second
    assert driver.sql("SELECT skip_reason, count FROM foliot.runs") == [("paused", 5)]


async def test_of_two_backfills_of_one_range_one_makes_the_runs(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    job_id = await driver.job(Cron("0 * * * *"))
    end = driver.clock.now()
    start = end - 600 * MINUTE
    mine = backfill(nodes.left, Scope(driver.workspace, ANA), job_id, start, end, dry_run=False)
    async with nodes.paused_at_table(mine, at="audit") as first:
        second = await nodes.start_blocked(
            backfill(nodes.right, Scope(driver.workspace, BEN), job_id, start, end, dry_run=False)
        )
    assert ((await first).count, (await second).count) == (10, 0)
