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
from tests.race.hands import Hands
from tests.services.given import WORKER as OTHER
from tests.services.shop import MINUTE, Shop, definition

pytestmark = pytest.mark.anyio
BOOM = Failed(RunError("boom", "It broke."))


async def take(node: Database, worker: WorkerId, permits: int = 10) -> list[Claimed]:
    return await claim(node, worker, "default", ["python"], permits, Turns())


async def tell(node: Database, shop: Shop, run: Claimed, outcome: Outcome) -> bool:
    done = Report(run.run_id, run.job_id, run.fence, shop.worker, outcome)
    return run.run_id in await report(node, [done])


async def running(shop: Shop, **spec: Any) -> tuple[JobId, Claimed]:
    job_id = await shop.job(Cron("0 * * * *"), **spec)
    await run_now(shop.database, Scope(shop.workspace, ANA), job_id)
    [run] = await shop.claim()
    return job_id, run


# Claims


async def test_of_two_claims_one_has_the_run_and_the_other_passes_by(hands: Hands, shop: Shop) -> None:
    await shop.job()
    await shop.tick(MINUTE)
    async with hands.claiming(take(hands.left, shop.worker)) as first:
        assert await take(hands.right, OTHER) == []
    [run] = await first
    assert shop.sql("SELECT run_id, worker_id, fence FROM foliot.leases") == [(run.run_id, shop.worker, 1)]


async def test_two_claims_share_what_is_ready(hands: Hands, shop: Shop) -> None:
    for _ in range(4):
        await shop.job()
    await shop.tick(MINUTE)
    async with hands.claiming(take(hands.left, shop.worker, 2)) as first:
        second = await hands.behind(take(hands.right, OTHER, 2))
    mine, theirs = await first, await second
    assert len({run.run_id for run in (*mine, *theirs)}) == 4


async def test_an_exclusive_job_is_leased_once_even_when_two_of_its_runs_are_ready(
    hands: Hands, shop: Shop
) -> None:
    """The bookkeeping is wrong here on purpose: the index holds all the same."""
    await shop.job(rule="queue")
    await shop.tick(MINUTE)
    await shop.tick(MINUTE)
    shop.owner.execute(
        "WITH gone AS (DELETE FROM foliot.waiting RETURNING *) INSERT INTO foliot.ready (workspace_id, run_id, job_id, queue, type,"
        " priority, available_at, planned_for, exclusive, timeout, trigger) SELECT workspace_id, run_id, job_id, queue, type,"
        " priority, available_at, planned_for, exclusive, timeout, trigger FROM gone"
    )
    shop.owner.execute("UPDATE foliot.timers SET live = 2, waiting = 0")
    assert len(await take(hands.left, shop.worker, 10)) == 1
    assert await take(hands.right, OTHER) == []
    assert [where for _, where, _ in shop.runs()] == ["running", "ready"]


async def test_a_cancel_waits_for_a_claim_and_asks_its_worker(hands: Hands, shop: Shop) -> None:
    await shop.job()
    await shop.tick(MINUTE)
    [(run_id,)] = shop.sql("SELECT run_id FROM foliot.ready")
    async with hands.claiming(take(hands.left, shop.worker)) as first:
        second = await hands.behind(cancel_run(hands.right, Scope(shop.workspace, BEN), run_id))
    assert len(await first) == 1
    assert await second is CancelResult.REQUESTED
    assert shop.sql("SELECT cancel_requested_at IS NOT NULL FROM foliot.leases") == [(True,)]


async def test_a_claim_passes_by_a_run_that_is_being_cancelled(hands: Hands, shop: Shop) -> None:
    await shop.job()
    await shop.tick(MINUTE)
    [(run_id,)] = shop.sql("SELECT run_id FROM foliot.ready")
    async with hands.midway(cancel_run(hands.left, Scope(shop.workspace, BEN), run_id), at="audit") as first:
        assert await take(hands.right, shop.worker) == []
    assert await first is CancelResult.ENDED
    assert shop.runs() == [("schedule", "cancelled", None)]


async def test_a_pause_waits_for_a_claim_and_lets_it_run_on(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    await shop.tick(MINUTE)
    async with hands.claiming(take(hands.left, shop.worker)) as first:
        second = await hands.behind(pause(hands.right, Scope(shop.workspace, BEN), job_id))
    [run] = await first
    await second
    assert (shop.status(), shop.runs()) == ("paused", [("schedule", "running", None)])
    assert await shop.finish(run)


async def test_an_edit_waits_for_a_claim_and_leaves_its_run_where_it_is(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    await shop.tick(MINUTE)
    async with hands.claiming(take(hands.left, shop.worker)) as first:
        second = await hands.behind(
            edit(hands.right, Scope(shop.workspace, BEN), job_id, definition(queue="slow"))
        )
    assert len(await first) == 1
    await second
    assert shop.sql("SELECT queue FROM foliot.leases") == [("default",)]


async def test_an_archive_waits_for_a_claim_and_lets_it_run_on(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    await shop.tick(MINUTE)
    async with hands.claiming(take(hands.left, shop.worker)) as first:
        second = await hands.behind(archive(hands.right, Scope(shop.workspace, BEN), job_id))
    [run] = await first
    await second
    assert await shop.finish(run)
    assert (shop.status(), shop.runs()) == ("archived", [("schedule", "succeeded", None)])


# Reports


async def test_of_two_reports_under_one_fence_the_first_counts(hands: Hands, shop: Shop) -> None:
    _, run = await running(shop)
    async with hands.ending(tell(hands.left, shop, run, Succeeded())) as first:
        second = await hands.behind(tell(hands.right, shop, run, BOOM))
    assert (await first, await second) == (True, False)
    assert shop.runs() == [("manual", "succeeded", None)]
    assert shop.timer("run_count", "success_count", "failure_count") == (1, 1, 0)


async def test_of_two_successes_under_one_fence_one_counts(hands: Hands, shop: Shop) -> None:
    _, run = await running(shop)
    async with hands.ending(tell(hands.left, shop, run, Succeeded())) as first:
        second = await hands.behind(tell(hands.right, shop, run, Succeeded()))
    assert (await first, await second) == (True, False)
    assert shop.timer("run_count", "success_count", "live", "live_run_id") == (1, 1, 0, None)


async def test_a_cancel_waits_for_a_report_and_comes_too_late(hands: Hands, shop: Shop) -> None:
    _, run = await running(shop)
    async with hands.ending(tell(hands.left, shop, run, Succeeded())) as first:
        second = await hands.behind(cancel_run(hands.right, Scope(shop.workspace, BEN), run.run_id))
    assert await first
    with pytest.raises(IllegalMove, match="succeeded, which is final"):
        await second
    assert shop.runs() == [("manual", "succeeded", None)]


async def test_a_cancel_after_a_failure_ends_the_retry_that_waits(hands: Hands, shop: Shop) -> None:
    _, run = await running(shop, retry=Retry(3, Backoff.FIXED))
    async with hands.midway(tell(hands.left, shop, run, BOOM), at="runs") as first:
        second = await hands.behind(cancel_run(hands.right, Scope(shop.workspace, BEN), run.run_id))
    assert await first
    assert await second is CancelResult.ENDED
    assert shop.runs() == [("manual", "cancelled", None)]
    assert shop.sql("SELECT attempt_count FROM foliot.runs") == [(1,)]


@pytest.mark.parametrize(
    ("outcome", "end"), [(Succeeded(), "succeeded"), (BOOM, "cancelled"), (Cancelled(), "cancelled")]
)
async def test_a_report_that_waited_for_a_cancel_counts_only_as_a_success(
    hands: Hands, shop: Shop, outcome: Outcome, end: str
) -> None:
    _, run = await running(shop, retry=Retry(3, Backoff.FIXED))
    cancel = cancel_run(hands.left, Scope(shop.workspace, BEN), run.run_id)
    async with hands.midway(cancel, at="audit") as first:
        second = await hands.behind(tell(hands.right, shop, run, outcome))
    assert await first is CancelResult.REQUESTED
    assert await second
    assert shop.runs() == [("manual", end, None)]


async def test_a_run_by_hand_that_waited_for_the_last_report_may_start_at_once(
    hands: Hands, shop: Shop
) -> None:
    job_id, run = await running(shop)
    async with hands.ending(tell(hands.left, shop, run, Succeeded())) as first:
        second = await hands.behind(run_now(hands.right, Scope(shop.workspace, BEN), job_id))
    assert await first
    await second
    assert shop.runs() == [("manual", "succeeded", None), ("manual", "ready", None)]


async def test_a_report_that_waited_for_a_run_by_hand_brings_it_forward(hands: Hands, shop: Shop) -> None:
    job_id, run = await running(shop)
    async with hands.midway(run_now(hands.left, Scope(shop.workspace, BEN), job_id), at="audit") as first:
        second = await hands.behind(tell(hands.right, shop, run, Succeeded()))
    await first
    assert await second
    assert shop.runs() == [("manual", "succeeded", None), ("manual", "ready", None)]


async def test_a_report_that_waited_for_a_forced_purge_is_refused(hands: Hands, shop: Shop) -> None:
    job_id, run = await running(shop)
    gone = purge(hands.left, Scope(shop.workspace, BEN), job_id, force=True)
    async with hands.midway(gone, at="audit") as first:
        second = await hands.behind(tell(hands.right, shop, run, Succeeded()))
    assert await first == 1
    assert not await second


async def test_two_repeats_of_one_run_are_two_runs_in_line(hands: Hands, shop: Shop) -> None:
    _, run = await running(shop)
    assert await shop.finish(run)
    async with hands.midway(
        retry_run(hands.left, Scope(shop.workspace, ANA), run.run_id), at="audit"
    ) as first:
        second = await hands.behind(retry_run(hands.right, Scope(shop.workspace, BEN), run.run_id))
    assert await first != await second
    assert [where for _, where, _ in shop.runs()] == ["succeeded", "ready", "waiting"]


# Two upstreams of one join


@pytest.mark.parametrize("dependent_is_oldest", [True, False])
@pytest.mark.parametrize(("when", "made"), [("all", 1), ("any", 2)])
async def test_two_upstreams_that_end_at_once_complete_the_join_as_often_as_it_says(
    hands: Hands, shop: Shop, when: str, made: int, dependent_is_oldest: bool
) -> None:
    """Ids rise with time, and locks are taken by id: the dependent is locked before its upstreams or after them."""
    join: dict[str, Any] = {"name": "join", "rule": "queue", "depends_when": when}
    dependent = await shop.job(Manual(), **join) if dependent_is_oldest else None
    upstreams = []
    for _ in range(2):
        shop.clock.advance(MINUTE)
        upstreams.append(await shop.job(Manual()))
    shop.clock.advance(MINUTE)
    dependent = dependent or await shop.job(Manual(), **join)
    for upstream in upstreams:
        depend(shop, dependent, upstream)
        await run_now(hands.left, Scope(shop.workspace, ANA), upstream)
    one, other = await shop.claim()
    async with hands.ending(tell(hands.left, shop, one, Succeeded())) as first:
        second = await hands.behind(tell(hands.right, shop, other, Succeeded()))
    assert (await first, await second) == (True, True)
    assert shop.sql("SELECT count(*) FROM foliot.runs WHERE trigger = 'dependency'") == [(made,)]
    shop.balance()
    marks = {row[0] for row in shop.sql("SELECT consumed_run_id FROM foliot.dependencies")}
    assert marks == {one.run_id, other.run_id}


def depend(shop: Shop, job_id: JobId, upstream: JobId) -> None:
    shop.owner.execute(
        'INSERT INTO foliot.dependencies (workspace_id, job_id, upstream_id, "on", mode)'
        " VALUES (%s, %s, %s, 'success', 'trigger')",
        [shop.workspace, job_id, upstream],
    )
    shop.owner.execute("UPDATE foliot.timers SET has_dependents = true WHERE job_id = %s", [upstream])


# People against people


async def test_of_two_edits_of_one_revision_the_second_is_refused(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    mine = edit(hands.left, Scope(shop.workspace, ANA, expected_revision=1), job_id, definition(name="mine"))
    async with hands.midway(mine, at="audit") as first:
        second = await hands.behind(
            edit(
                hands.right,
                Scope(shop.workspace, BEN, expected_revision=1),
                job_id,
                definition(name="theirs"),
            )
        )
    assert (await first).job.revision == 2
    with pytest.raises(StaleRevision, match="revision 2, not 1"):
        await second
    assert shop.sql("SELECT name, revision FROM foliot.jobs") == [("mine", 2)]


async def test_two_edits_that_ask_for_no_revision_both_count_and_the_last_stays(
    hands: Hands, shop: Shop
) -> None:
    job_id = await shop.job()
    mine = edit(hands.left, Scope(shop.workspace, ANA), job_id, definition(name="mine"))
    async with hands.midway(mine, at="audit") as first:
        second = await hands.behind(
            edit(hands.right, Scope(shop.workspace, BEN), job_id, definition(name="theirs"))
        )
    assert ((await first).job.revision, (await second).job.revision) == (2, 3)
    assert shop.sql("SELECT name, revision FROM foliot.jobs") == [("theirs", 3)]


async def test_of_two_resumes_one_records_the_gap(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job()
    await pause(hands.left, Scope(shop.workspace, ANA), job_id)
    shop.clock.advance(5 * MINUTE)
    async with hands.midway(resume(hands.left, Scope(shop.workspace, ANA), job_id), at="audit") as first:
        second = await hands.behind(resume(hands.right, Scope(shop.workspace, BEN), job_id))
    await first
    with pytest.raises(IllegalMove):
        await second
    assert shop.sql("SELECT skip_reason, count FROM foliot.runs") == [("paused", 5)]


async def test_of_two_backfills_of_one_range_one_makes_the_runs(hands: Hands, shop: Shop) -> None:
    job_id = await shop.job(Cron("0 * * * *"))
    end = shop.clock.now()
    start = end - 600 * MINUTE
    mine = backfill(hands.left, Scope(shop.workspace, ANA), job_id, start, end, dry_run=False)
    async with hands.midway(mine, at="audit") as first:
        second = await hands.behind(
            backfill(hands.right, Scope(shop.workspace, BEN), job_id, start, end, dry_run=False)
        )
    assert ((await first).count, (await second).count) == (10, 0)
