"""Every write of a lease is refused under another fence and from another worker."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import LeaseLost
from foliot.domain.ids import WorkerId
from foliot.domain.outcomes import Cancelled, Failed, HandedBack, Lost, Outcome, Succeeded, TimedOut
from foliot.domain.policy import Backoff, Limits, Retry
from foliot.domain.run import Progress, RunError
from foliot.domain.schedule import Interval, Manual
from foliot.services.runs import artifacts, run_control
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.runs.logs import store_progress
from foliot.services.settlement.report import Report, report
from foliot.services.workers import remote, workers
from foliot.services.workers.bridges import HandedOver, handed_over
from foliot.services.workers.remote import RemoteReport
from foliot.storage.queue.run_queue import Claimed
from foliot.testing.fixtures import TEST
from tests.services.builders import insert_immortal_worker
from tests.services.remote_hosts import H1, register_host, worker_principal
from tests.services.workspace_harness import BROKE, WorkspaceHarness

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)
OUTCOMES: list[Outcome] = [Succeeded(), Failed(RunError("boom", "It broke.")), TimedOut(), Cancelled(), HandedBack(), Lost()]  # fmt: skip


@pytest.fixture
async def second(harness: WorkspaceHarness) -> Claimed:
    """The second attempt of a run, under way. Its job has a start deadline, which binds no retry."""
    retry = Retry(3, Backoff.FIXED, base=timedelta(0), past_next=True)
    await harness.job("beat", Interval(MINUTE), retry=retry, limits=Limits(start_deadline=MINUTE))
    harness.clock.advance(MINUTE)
    await harness.tick()
    [first] = await harness.claim()
    assert await harness.report(first, BROKE)
    [again] = await harness.claim()
    assert (again.run_id, again.fence) == (first.run_id, first.fence + 1)
    return again


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
async def test_a_report_counts_under_its_own_fence_and_from_its_own_worker(
    harness: WorkspaceHarness, second: Claimed, outcome: Outcome
) -> None:
    mine = Report(second.run_id, second.job_id, second.fence, harness.worker, outcome)
    for wrong in (
        mine._replace(fence=second.fence - 1),
        mine._replace(fence=second.fence + 1),
        mine._replace(worker_id=WorkerId(uuid4())),
    ):
        assert not await report(harness.database, [wrong])
    assert harness.owner.execute("SELECT fence FROM foliot.leases").fetchall() == [(second.fence,)]
    assert await report(harness.database, [mine]) == {second.run_id}
    assert not await report(harness.database, [mine])


async def test_a_run_reported_twice_in_one_batch_counts_once(
    harness: WorkspaceHarness, second: Claimed
) -> None:
    for_good = Failed(RunError("boom", "It broke."), permanent=True)
    mine = Report(second.run_id, second.job_id, second.fence, harness.worker, for_good)
    assert await report(harness.database, [mine, mine]) == {second.run_id}
    assert harness.timer(second.job_id, "run_count, failure_count, failures_in_a_row, live") == (1, 1, 1, 0)


async def test_progress_and_external_ids_are_written_under_the_current_fence(
    harness: WorkspaceHarness, second: Claimed
) -> None:
    now = harness.clock.now()
    for fence in (second.fence, second.fence - 1):
        progress = Progress(float(fence), 9.0, "", now)
        await store_progress(harness.database, {(second.run_id, fence): progress})
        await handed_over(harness.database, [HandedOver(second.run_id, fence, f"theirs-{fence}")])
    found = harness.owner.execute("SELECT progress -> 0, external_id FROM foliot.leases").fetchall()
    assert found == [(float(second.fence), f"theirs-{second.fence}")]


async def test_an_artifact_is_stored_under_the_current_fence_by_the_current_worker(
    harness: WorkspaceHarness, second: Claimed
) -> None:
    def artifact(fence: int, worker: WorkerId) -> NewArtifact:
        return NewArtifact(second.run_id, fence, worker, second.attempt, "report.txt", "text/plain", b"x")

    for wrong in (artifact(second.fence - 1, harness.worker), artifact(second.fence, WorkerId(uuid4()))):
        with pytest.raises(LeaseLost):
            await artifacts.keep(harness.database, wrong)
    await artifacts.keep(harness.database, artifact(second.fence, harness.worker))


async def test_a_heartbeat_names_attempts_that_are_no_longer_the_workers(
    harness: WorkspaceHarness, second: Claimed
) -> None:
    other = WorkerId(uuid4())
    insert_immortal_worker(harness.owner, other)
    old, new = (second.run_id, second.fence - 1), (second.run_id, second.fence)
    mine = await workers.beat(harness.database, harness.worker, working_on=[old, new])
    assert list(mine.gone) == [old]
    theirs = await workers.beat(harness.database, other, working_on=[new])
    assert list(theirs.gone) == [new]


async def test_a_cancel_is_reported_to_the_worker_that_has_the_run(
    harness: WorkspaceHarness, second: Claimed
) -> None:
    other = WorkerId(uuid4())
    insert_immortal_worker(harness.owner, other)
    await run_control.cancel_run(harness.database, Scope(harness.workspace, TEST), second.run_id)
    assert list((await workers.beat(harness.database, other)).cancels) == []
    assert list((await workers.beat(harness.database, harness.worker)).cancels) == [
        (second.run_id, second.fence)
    ]


async def test_a_repeated_report_is_accepted_from_the_worker_that_sent_it(harness: WorkspaceHarness) -> None:
    speaker = worker_principal(harness.workspace)
    one, other = [await register_host(harness.database, speaker, "h1") for _ in range(2)]
    job = await harness.job("read", Manual(), target=H1, read_only=True)
    await run_control.run_now(harness.database, Scope(harness.workspace, TEST), job)
    [work] = await one.claim()
    assert await one.report(work)
    reported = RemoteReport(work.claimed.run_id, work.claimed.fence, Succeeded())
    for host, again in (
        (one, reported._replace(outcome=BROKE)),
        (one, reported._replace(fence=9)),
        (other, reported),
    ):
        assert not await remote.report(harness.database, speaker, host.worker, [again])
    assert await remote.report(harness.database, speaker, one.worker, [reported]) == {work.claimed.run_id}
