"""The worker over a real database: permits, deadlines, cancels, hand-backs, and a claim whose answer was lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

import psycopg
import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.errors import DatabaseUnavailable
from foliot.domain.ids import RunId, WorkerId, WorkspaceId
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Limits
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval
from foliot.handlers.registry import Assignment, HandlerResult, succeeded
from foliot.services.jobs import jobs
from foliot.services.runs.run_control import cancel_run
from foliot.services.scheduling.tick import tick
from foliot.services.workers import workers
from foliot.services.workers.claim import ClaimSize, Work
from foliot.services.workers.workers import HeartbeatReply
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST
from foliot.worker.link import LocalLink
from foliot.worker.worker import AT_ONCE, Worker
from tests.polling import wait_until

pytestmark = pytest.mark.anyio
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
Owner = psycopg.Connection[Any]


@dataclass
class Gate:
    """A handler whose attempts last until the gate opens."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    begun: list[Assignment] = field(default_factory=list)

    async def run(self, assignment: Assignment) -> HandlerResult:
        self.begun.append(assignment)
        await self.opened.wait()
        return succeeded({"input": dict(assignment.input)})

    async def close(self) -> None:
        pass


class Desk:
    """A worker with its reporter, driven by the test."""

    def __init__(self, database: Database, permits: int = 10) -> None:
        self.gate = Gate()
        self.link = LocalLink(database, "test")
        self.worker = Worker(self.link, {"python": self.gate}, permits)
        self.reporter = self.worker.reporter

    async def work_off(self, reports: int) -> None:
        await wait_until(lambda: self.reporter.unsent == reports)
        await self.reporter.step()


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(database)


async def make_ready(
    database: Database, clock: ManualClock, workspace: WorkspaceId, count: int = 1, ends: timedelta = HOUR
) -> None:
    spec = Spec(Interval(HOUR), "python", limits=Limits(timeout=ends))
    for number in range(count):
        definition = Definition(f"job {number}", spec, payload={"n": number, "full": False})
        await jobs.create(database, Scope(workspace, TEST), definition)
    clock.advance(HOUR)
    await tick(database)


def statuses(owner: Owner) -> list[Any]:
    return [row[0] for row in owner.execute("SELECT status FROM foliot.runs").fetchall()]


@pytest.mark.requirement("S2-17")
async def test_start_and_end_of_a_run_are_in_the_log_of_those_who_ask_for_it(
    desk: Desk,
    database: Database,
    clock: ManualClock,
    workspace: WorkspaceId,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "foliot.worker.worker")
    await make_ready(database, clock, workspace)
    await desk.worker.step()
    desk.gate.opened.set()
    await desk.work_off(1)
    said: list[Any] = [each for each in caplog.records if each.message in ("run.started", "run.ended")]
    assert [(each.message, each.levelname) for each in said] == [
        ("run.started", "DEBUG"),
        ("run.ended", "DEBUG"),
    ]
    assert said[0].run == said[1].run == str(desk.gate.begun[0].ctx.run_id)
    assert (said[1].outcome, said[1].ms >= 0) == ("Succeeded", True)


@pytest.mark.requirement("S2-13")
async def test_a_run_is_done_with_its_jobs_payload_and_reported(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    await make_ready(database, clock, workspace)
    owner.execute(
        """UPDATE foliot.runs SET trigger = 'manual', input = '{"full": true}', triggered_by = 'user:ana'"""
    )
    owner.execute("UPDATE foliot.ready SET trigger = 'manual'")
    assert await desk.worker.step() == AT_ONCE
    assert await desk.worker.step() > AT_ONCE
    desk.gate.opened.set()
    await desk.work_off(1)
    assert owner.execute("SELECT status, output FROM foliot.runs").fetchall() == [
        ("succeeded", {"input": {"n": 0, "full": True}})
    ]
    [assignment] = desk.gate.begun
    assert (assignment.ctx.job, assignment.ctx.attempt, assignment.ctx.fence) == ("job 0", 1, 1)
    assert (assignment.ctx.workspace, assignment.ctx.triggered_by) == ("default", "user:ana")
    assert assignment.ctx.number == 1
    assert assignment.ctx.deadline == clock.now() + HOUR


@pytest.mark.requirement("S2-16", "S4-23")
async def test_no_more_runs_are_claimed_than_there_are_permits(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    desk = Desk(database, permits=2)
    await make_ready(database, clock, workspace, 3)
    await desk.worker.step()
    assert await desk.worker.step() > AT_ONCE
    assert owner.execute("SELECT count(*) FROM foliot.leases").fetchone() == (2,)
    desk.gate.opened.set()
    await desk.work_off(2)
    await desk.worker.step()
    await desk.work_off(1)
    assert statuses(owner) == ["succeeded"] * 3


async def test_runs_that_wait_for_others_take_no_permits_and_are_counted_by_themselves(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    @dataclass
    class Waits(Gate):
        takes_permit: ClassVar = False

    waits, desk = Waits(), Desk(database, permits=1)
    desk.worker = Worker(desk.link, {"python": desk.gate, "celery": waits}, 1, external_runs=2)
    desk.reporter = desk.worker.reporter
    await make_ready(database, clock, workspace, 5)
    owner.execute(
        "UPDATE foliot.ready SET type = 'celery' WHERE position > (SELECT min(position) + 1 FROM foliot.ready)"
    )
    await desk.worker.step()
    await wait_until(lambda: (len(desk.gate.begun), len(waits.begun)) == (1, 2))
    assert await desk.worker.step() > AT_ONCE
    waits.opened.set()
    await desk.work_off(2)
    await desk.worker.step()
    await desk.work_off(1)
    assert (len(desk.gate.begun), len(waits.begun)) == (1, 3), "the only permit is still taken"
    assert owner.execute("SELECT capacity FROM foliot.workers").fetchone() == (3,)
    desk.gate.opened.set()
    await desk.work_off(1)
    await desk.worker.step()
    await desk.work_off(1)
    assert statuses(owner) == ["succeeded"] * 5


@pytest.mark.requirement("S3-21")
async def test_an_attempt_is_ended_at_its_deadline(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    await make_ready(database, clock, workspace, ends=timedelta(milliseconds=50))
    await desk.worker.step()
    await desk.work_off(1)
    assert owner.execute("SELECT last_error->>'code' FROM foliot.ready").fetchall() == [("timed_out",)]


async def test_code_that_calls_exit_fails_its_attempt_and_leaves_the_worker_alone(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    async def leave(assignment: Assignment) -> HandlerResult:
        raise SystemExit("enough")

    desk.gate.run = leave  # type: ignore[method-assign]
    await make_ready(database, clock, workspace)
    await desk.worker.step()
    await desk.work_off(1)
    assert owner.execute("SELECT last_error->>'code' FROM foliot.ready").fetchall() == [("SystemExit",)]


class Odd(BaseException):
    """Of nobody's family."""


async def cancels_its_own() -> None:
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task


async def is_odd() -> None:
    raise Odd


@pytest.mark.parametrize(
    ("work", "code"), [(cancels_its_own, "CancelledError"), (is_odd, "Odd")], ids=["cancels", "odd"]
)
async def test_whatever_code_raises_is_a_failure_that_spends_an_attempt(
    desk: Desk,
    database: Database,
    clock: ManualClock,
    workspace: WorkspaceId,
    owner: Owner,
    work: Callable[[], Awaitable[None]],
    code: str,
) -> None:
    async def run(assignment: Assignment) -> HandlerResult:
        await work()
        return succeeded()

    desk.gate.run = run  # type: ignore[method-assign]
    await make_ready(database, clock, workspace)
    await desk.worker.step()
    await desk.work_off(1)
    assert owner.execute("SELECT last_error->>'code', retries FROM foliot.ready").fetchall() == [(code, 1)]


async def test_an_attempt_that_is_ended_before_its_first_step_is_reported_and_gives_its_permit_back(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    desk = Desk(database, permits=1)
    await make_ready(database, clock, workspace)
    await desk.worker.step()
    [key] = desk.worker.working_on()
    desk.worker.on_beat(HeartbeatReply(is_alive=True, cancels=[key]))
    assert desk.gate.begun == [], "nothing has run since the claim"
    await desk.work_off(1)
    assert (desk.gate.begun, desk.worker.working_on(), statuses(owner)) == ([], [], ["cancelled"])


async def test_a_cancel_heard_with_a_beat_ends_the_attempt(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    await make_ready(database, clock, workspace)
    await desk.worker.step()
    owner.execute("UPDATE foliot.leases SET cancel_requested_at = %s", [clock.now()])
    assert desk.worker.id is not None
    await wait_until(lambda: desk.gate.begun)
    desk.worker.on_beat(await desk.link.beat(desk.worker.id, [], draining=False))
    await desk.work_off(1)
    assert statuses(owner) == ["cancelled"]


async def test_an_attempt_whose_lease_was_taken_away_ends_with_the_next_beat_and_the_others_go_on(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    await make_ready(database, clock, workspace, 2)
    await desk.worker.step()
    await wait_until(lambda: len(desk.gate.begun) == 2)
    taken = RunId(UUID(desk.gate.begun[0].ctx.run_id))
    await cancel_run(database, Scope(workspace, TEST), taken, force=True)
    assert desk.worker.id is not None
    beat = await desk.link.beat(desk.worker.id, desk.worker.working_on(), draining=False)
    assert beat.gone == [(taken, 1)]
    desk.worker.on_beat(beat)
    await desk.work_off(1)
    assert [run_id for run_id, _ in desk.worker.working_on()] == [
        RunId(UUID(desk.gate.begun[1].ctx.run_id))
    ], "only the one that was taken away has ended"
    desk.gate.opened.set()
    await desk.work_off(1)
    assert sorted(statuses(owner)) == ["cancelled", "succeeded"]


async def test_draining_finishes_what_it_can_and_hands_the_rest_back(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    await make_ready(database, clock, workspace, 2)
    await desk.worker.step()
    await wait_until(lambda: len(desk.gate.begun) == 2)
    await desk.worker.drain(0)
    await desk.work_off(2)
    assert statuses(owner) == [None, None]
    assert owner.execute("SELECT retries, losses FROM foliot.ready").fetchall() == [(0, 0)] * 2
    assert await desk.worker.step() > AT_ONCE
    assert owner.execute("SELECT count(*) FROM foliot.leases").fetchone() == (0,)


async def test_a_worker_given_up_for_lost_stops_and_comes_again_under_a_new_id(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    await make_ready(database, clock, workspace)
    await desk.worker.step()
    await wait_until(lambda: desk.gate.begun)
    first = desk.worker.id
    assert first is not None
    clock.advance(workers.LEASE + MINUTE)
    desk.worker.on_beat(await desk.link.beat(first, [], draining=False))
    await desk.work_off(1)
    await desk.worker.step()
    assert desk.worker.id not in (None, first)
    await wait_until(lambda: len(desk.gate.begun) == 2)
    assert [assignment.ctx.fence for assignment in desk.gate.begun] == [1, 2]
    await desk.worker.drain(0)


async def test_a_claim_whose_answer_was_lost_is_handed_back(
    database: Database,
    clock: ManualClock,
    workspace: WorkspaceId,
    owner: Owner,
) -> None:
    class Cut(LocalLink):
        """Its first claim is committed, and nobody hears of it."""

        async def claim(self, worker_id: WorkerId, types: Sequence[str], size: ClaimSize) -> list[Work]:
            found = await LocalLink.claim(self, worker_id, types, size)
            if not was_cut:
                was_cut.append(found)
                raise DatabaseUnavailable("The connection broke during the commit.")
            return found

    was_cut: list[list[Work]] = []
    desk = Desk(database)
    desk.worker._link = Cut(database, "test")
    await make_ready(database, clock, workspace)
    with pytest.raises(DatabaseUnavailable):
        await desk.worker.step()
    assert len(was_cut[0]) == 1
    await desk.worker.step()
    await desk.work_off(1)
    await desk.worker.step()
    await wait_until(lambda: desk.gate.begun)
    assert desk.gate.begun[0].ctx.fence == 2
    await desk.worker.drain(0)


class Stalled(LocalLink):
    """A claim that is committed after the worker has stopped waiting for it."""

    claim_later: Callable[[], Awaitable[list[Work]]] | None = None

    async def claim(self, worker_id: WorkerId, types: Sequence[str], size: ClaimSize) -> list[Work]:
        if self.claim_later is None:
            self.claim_later = partial(LocalLink.claim, self, worker_id, types, size)
            raise DatabaseUnavailable("The disk of the database stalls.")
        return await LocalLink.claim(self, worker_id, types, size)


async def test_a_claim_that_commits_after_the_worker_stopped_waiting_is_handed_back_at_the_next_heartbeat(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    desk = Desk(database)
    desk.worker._link = link = Stalled(database, "test")
    await make_ready(database, clock, workspace)
    with pytest.raises(DatabaseUnavailable):
        await desk.worker.step()
    assert link.claim_later is not None
    link.queues = ()  # nothing else is claimed meanwhile
    await desk.worker.step()  # it asks what it holds, too soon
    assert desk.reporter.unsent == 0
    link.queues = ("*",)
    [late] = await link.claim_later()
    assert desk.worker.id is not None
    beat = await workers.beat(database, desk.worker.id, working_on=desk.worker.working_on())
    assert beat.has_unknown
    desk.worker.on_beat(beat)
    await desk.worker.step()
    await desk.work_off(1)
    await desk.worker.step()
    await wait_until(lambda: desk.gate.begun)
    assert desk.gate.begun[0].ctx.run_id == str(late.claimed.run_id)
    assert desk.gate.begun[0].ctx.fence == 2
    beat = await workers.beat(database, desk.worker.id, working_on=desk.worker.working_on())
    assert not beat.has_unknown
    await desk.worker.drain(0)


async def test_a_claim_under_way_is_not_taken_for_a_lost_one(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    """The heartbeat sees the leases of a claim before the worker does."""
    await make_ready(database, clock, workspace)
    before = desk.worker.working_on()
    await desk.worker.step()
    assert desk.worker.id is not None
    beat = await workers.beat(database, desk.worker.id, working_on=before)
    assert beat.has_unknown
    desk.worker.on_beat(beat)
    await desk.worker.step()
    assert desk.reporter.unsent == 0
    assert len(desk.gate.begun) == 1
    await desk.worker.drain(0)


async def test_a_late_result_of_a_worker_at_the_database_is_refused_and_audited(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    await make_ready(database, clock, workspace, 2)
    await desk.worker.step()
    owner.execute(
        "UPDATE foliot.leases SET fence = 2 WHERE run_id = (SELECT min(run_id::text)::uuid FROM foliot.leases)"
    )
    desk.gate.opened.set()
    await desk.work_off(2)
    assert owner.execute(
        "SELECT action, workspace_id, actor, after FROM foliot.audit WHERE action = 'report.refused'"
    ).fetchall() == [
        (
            "report.refused",
            workspace,
            "engine",
            {"worker": str(desk.worker.id), "fence": 1, "outcome": "succeeded"},
        )
    ]


async def test_reports_are_kept_while_the_database_is_away(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    await make_ready(database, clock, workspace)
    await desk.worker.step()
    desk.gate.opened.set()
    await wait_until(lambda: desk.reporter.unsent == 1)
    good = desk.reporter._link

    class Away(LocalLink):
        async def report(self, reports: Any) -> Any:
            raise DatabaseUnavailable("away")

    desk.reporter._link = Away(database, "test")
    with pytest.raises(DatabaseUnavailable):
        await desk.reporter.step()
    desk.reporter._link = good
    await desk.work_off(1)
    assert statuses(owner) == ["succeeded"]


async def test_one_report_that_cannot_be_stored_spoils_no_other(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    await make_ready(database, clock, workspace, 3)
    await desk.worker.step()
    desk.gate.opened.set()
    await wait_until(lambda: desk.reporter.unsent == 3)
    bad = desk.reporter._unsent[1]
    desk.reporter._unsent[1] = type(bad)(
        bad.run_id, bad.job_id, bad.fence, bad.worker_id, bad.outcome, "a\0b"
    )
    await desk.reporter.step()
    assert sorted(statuses(owner), key=str) == [None, "succeeded", "succeeded"]
    assert owner.execute("SELECT last_error->>'code' FROM foliot.ready").fetchall() == [("report_refused",)]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


class Mumbling:
    """A handler that says of its end what cannot be stored, or nothing at all."""

    def __init__(self, end: Callable[[], HandlerResult]) -> None:
        self.end = end

    async def run(self, assignment: Assignment) -> HandlerResult:
        return self.end()

    async def close(self) -> None:
        pass


def unspeakable() -> HandlerResult:
    raise Unspeakable


def wrong_code() -> HandlerResult:
    code: Any = 42  # as of `Fail("It broke.", code=42)`
    return HandlerResult(Failed(RunError(code, "It broke.")))


@pytest.mark.parametrize("end", [unspeakable, wrong_code])
async def test_an_attempt_whose_end_cannot_be_reported_fails_and_gives_its_permit_back(
    database: Database,
    clock: ManualClock,
    workspace: WorkspaceId,
    owner: Owner,
    desk: Desk,
    end: Callable[[], HandlerResult],
) -> None:
    await make_ready(database, clock, workspace, 2)
    worker = Worker(desk.link, {"python": Mumbling(end)}, 1)
    desk.reporter = worker.reporter
    for _ in range(2):
        await worker.step()
        await desk.work_off(1)
    assert worker.working_on() == []
    reported = owner.execute("SELECT last_error ->> 'code' FROM foliot.ready").fetchall()
    assert reported == [("invalid_result",), ("invalid_result",)]


async def test_a_run_whose_report_is_unsent_is_still_named_by_heartbeats(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    await make_ready(database, clock, workspace)
    await desk.worker.step()
    [key] = desk.worker.working_on()
    desk.gate.opened.set()
    await wait_until(lambda: desk.reporter.unsent == 1)
    assert desk.worker.under_way() == ([], [])
    assert desk.worker.working_on() == [key]
    await desk.reporter.step()
    assert desk.worker.working_on() == []


async def test_a_claim_that_comes_back_after_the_worker_was_stopped_is_handed_back(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The lease is given up while the claim is under way: under the old id its runs may be with others soon."""
    await make_ready(database, clock, workspace)
    claim = LocalLink.claim

    async def stopped_meanwhile(*args: Any) -> Any:
        found = await claim(*args)
        desk.worker.stop_all("cannot renew")
        return found

    monkeypatch.setattr(LocalLink, "claim", stopped_meanwhile)
    await desk.worker.step()
    await desk.work_off(1)
    assert desk.gate.begun == []
    assert owner.execute("SELECT attempts, retries, losses FROM foliot.ready").fetchall() == [(1, 0, 0)]


async def test_a_cancelled_attempt_stays_cancelled_though_its_worker_stops(
    desk: Desk, database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Owner
) -> None:
    await make_ready(database, clock, workspace)
    await desk.worker.step()
    [key] = desk.worker.working_on()
    await wait_until(lambda: len(desk.gate.begun) == 1)
    desk.worker.on_beat(HeartbeatReply(is_alive=True, cancels=[key]))
    desk.worker.stop_all("cannot renew")
    await desk.work_off(1)
    assert statuses(owner) == ["cancelled"]
