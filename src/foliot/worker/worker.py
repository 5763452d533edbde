"""The worker claims runs in batches, as many at once as it has permits, executes each under a deadline and reports them all."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from random import Random, SystemRandom
from typing import Any

from foliot.clock import monotonic
from foliot.domain.errors import WorkerGone
from foliot.domain.ids import RunId, WorkerId
from foliot.domain.masking import NO_MASKS, Masks
from foliot.domain.outcomes import Cancelled, HandedBack, Outcome, Succeeded, TimedOut
from foliot.domain.usage import Usage
from foliot.handlers.registry import UNKNOWN_TYPE, Assignment, Handler, HandlerResult, failed, takes_permit
from foliot.sdk.context import Context, Upstream
from foliot.services.settlement.report import Report
from foliot.services.workers.claim import Work
from foliot.services.workers.workers import HeartbeatReply
from foliot.wire.amounts import add_usage
from foliot.worker.artifact_upload import ArtifactUpload
from foliot.worker.attempt import run_handler
from foliot.worker.deadlines import Deadlines
from foliot.worker.link import Link
from foliot.worker.log_buffer import LogBuffer
from foliot.worker.places import Places
from foliot.worker.progress import ProgressBuffer
from foliot.worker.reporter import BATCH, Reporter
from foliot.worker.task_lanes import TaskLanes

log = logging.getLogger(__name__)

# A run and its fence: the same run may be claimed again while its last report is unsent.
Key = tuple[RunId, int]
AT_ONCE = timedelta(0)
CHECK_EVERY = 1.0  # seconds between claims when no hint comes
ENDS_WITHIN = 1.5  # seconds for attempts to end once they must stop
EXTERNAL_RUNS = 1_000  # runs at once that take no permit
_usage_lock = threading.Lock()  # of all attempts: few report usage, and it is held for microseconds


@dataclass(slots=True, eq=False)
class Attempt:
    key: Key
    work: Work
    worker_id: WorkerId
    due_by: float  # on the monotonic clock
    places: Places
    end: Outcome | None = None  # the outcome to report when the attempt is ended from outside
    task: asyncio.Task[None] | None = None  # set once the attempt waits, and can be cancelled
    over: bool = False
    has_output: bool = False  # log lines, artifacts or progress
    usage: Usage | None = None

    def is_ended(self) -> bool:
        return self.end is not None

    def ended_by(self) -> Outcome | None:
        return self.end

    def add_usage(self, more: Usage) -> None:
        """Add what the handler reports, from any thread, to what the attempt has used."""
        with _usage_lock:
            if not self.over:
                self.usage = add_usage(self.usage or {}, more)

    def is_over(self) -> bool:
        """Return whether the attempt is over: later output of a thread it left behind is dropped.

        Only output asks, and leaves its mark first: either the mark is seen when the attempt ends, or the output sees that it is over.
        """
        self.has_output = True
        return self.over


class Worker:
    """A loop runs its step and sets `wake`. The reporter, the logs and the progress have loops of their own."""

    def __init__(
        self,
        link: Link,
        handlers: Mapping[str, Handler],
        permits: int,
        *,
        reserve: int = 0,
        external_runs: int = EXTERNAL_RUNS,
        logs: LogBuffer | None = None,
        chance: Random | None = None,
    ) -> None:
        """`reserve` has places beside the permits for workspaces that hold few. `external_runs` bounds the runs that only wait
        for another engine, and take no permit; a tenth of them is a reserve too.
        """
        self.wake: Callable[[], None] = lambda: None
        self.on_started: Callable[[], None] = lambda: None
        self.beat_soon: Callable[[], None] = lambda: None
        self.on_registered: Callable[[WorkerId, float], None] = lambda worker_id, at: None
        self.id: WorkerId | None = None
        self.is_draining = False
        self.reporter = Reporter(link)
        self.logs = logs or LogBuffer(link)
        self.progress = ProgressBuffer(link)
        self.artifacts = ArtifactUpload(link)
        self._link = link
        self._handlers = handlers
        self._types = sorted(each for each, handler in handlers.items() if takes_permit(handler))
        self._external_types = sorted(handlers.keys() - set(self._types))
        self._places = Places(permits, reserve)
        external = external_runs if self._external_types else 0
        self._external = Places(external - external // 10, external // 10)
        self._chance = chance or SystemRandom()
        self._attempts: dict[Key, Attempt] = {}
        self._deadlines = Deadlines(self._time_out)
        self._lanes = TaskLanes(self._run, self._on_wait)
        self._all_over = asyncio.Event()
        self._claim_lost = False  # whether the database may hold leases of this worker that it does not know

    async def step(self) -> timedelta:
        if self.is_draining:
            return self._nap()
        worker_id = self.id or await self.register()
        if self._claim_lost:
            await self._hand_back_unknown(worker_id)
        if self.reporter.unsent > 2 * BATCH:
            return self._nap()  # the next attempt to end wakes this loop
        try:
            found = await self._claim(worker_id, self._types, self._places)
            if self._external_types:
                found = await self._claim(worker_id, self._external_types, self._external) or found
        except WorkerGone:
            if self.id == worker_id:
                self.stop_all("given up for lost")
            return AT_ONCE
        return AT_ONCE if found else self._nap()

    def on_beat(self, beat: HeartbeatReply) -> None:
        """Act on the answer to a heartbeat: stop cancelled runs, or all of them."""
        if not beat.is_alive:
            self.stop_all("given up for lost")
            return
        for key in (*beat.cancels, *beat.gone):  # a report of a run that is gone is refused
            if attempt := self._attempts.get(key):
                self._end(attempt, Cancelled())
        if (
            beat.has_unknown
        ):  # a claim is under way, or one was committed after this worker had stopped waiting for it
            self._claim_lost = True
            self.wake()

    def stop_all(self, reason: str) -> None:
        """Stop every attempt, because the lease is over or soon will be, and register again under a new id."""
        if self.id is None:
            return
        log.warning(
            "worker.fenced", extra={"worker": str(self.id), "reason": reason, "runs": len(self._attempts)}
        )
        self.id = None
        for attempt in list(self._attempts.values()):
            self._end(attempt, HandedBack())
        self.wake()

    def working_on(self) -> list[Key]:
        """Return the runs held, unsent reports included. The heartbeat's thread calls it: copying to a list is atomic."""
        return [*list(self._attempts), *self.reporter.keys()]

    def under_way(self) -> tuple[list[Key], list[Key]]:
        """Return the runs that go on, and those that must stop."""
        going: list[Key] = []
        stopping: list[Key] = []
        for key, attempt in self._attempts.items():
            (going if attempt.end is None else stopping).append(key)
        return going, stopping

    def first_due(self) -> float | None:
        """Return the earliest deadline of all attempts. The heartbeat's thread calls it."""
        return min((attempt.due_by for attempt in list(self._attempts.values())), default=None)

    async def drain(self, grace: float) -> None:
        """Claim no more, let runs finish within the grace and hand back the others.

        Runs in other engines are handed back at once: they go on, and another worker waits for them.
        """
        self.is_draining = True
        for attempt in list(self._attempts.values()):
            if attempt.places is self._external:
                self._end(attempt, HandedBack())
        await self._wait_for_all(grace)
        for attempt in list(self._attempts.values()):
            self._end(attempt, HandedBack())
        await self._wait_for_all(ENDS_WITHIN)
        for handler in self._handlers.values():
            await handler.close()

    async def register(self) -> WorkerId:
        """Register under a new id. The step does so when there is none."""
        began = monotonic()
        types = sorted(self._handlers)
        self.id = await self._link.register(types, self._places.all + self._external.all)
        self.on_registered(self.id, began)
        log.info("worker.registered", extra={"worker": str(self.id), "types": types})
        return self.id

    async def _hand_back_unknown(self, worker_id: WorkerId) -> None:
        """Hand back the runs that the database leases to this worker and that it does not know.

        No claim is under way here, and what is known is read before the leases: nothing that was just claimed or reported is mistaken.
        """
        known = frozenset(self._attempts) | self.reporter.keys()
        self._claim_lost = False  # before the query: a heartbeat may set it again meanwhile
        try:
            unknown = await self._link.unknown(worker_id, known)
        except BaseException:
            self._claim_lost = True
            raise
        for report in unknown:
            log.warning("claim.unheard", extra={"worker": str(worker_id), "run": str(report.run_id)})
            self.reporter.put(report)

    async def _claim(self, worker_id: WorkerId, types: list[str], places: Places) -> bool:
        """Claim runs and start them. Return whether there were any."""
        size = places.claim_size(monotonic()) if types else None
        if size is None:
            return False  # the next attempt to end wakes this loop
        try:
            found = await self._link.claim(worker_id, types, size)
        except WorkerGone:
            raise
        except BaseException:
            self._claim_lost = True
            raise
        now = monotonic()
        if not found:
            places.found_none(now)
        attempts = [
            Attempt(
                (work.claimed.run_id, work.claimed.fence),
                work,
                worker_id,
                now + work.left.total_seconds(),
                places,
            )
            for work in found
        ]
        if self.is_draining or self.id != worker_id:  # the worker had to stop while this claim was under way
            for claimed in (work.claimed for work in found):
                report = Report(claimed.run_id, claimed.job_id, claimed.fence, worker_id, HandedBack())
                self.reporter.put(report)
        elif attempts:
            self._attempts |= {attempt.key: attempt for attempt in attempts}
            places.take(found)
            self._lanes.add(attempts)
            self.on_started()
        return bool(found)

    def _on_wait(self, attempt: Attempt, task: asyncio.Task[None]) -> None:
        attempt.task = task
        self._deadlines.add(attempt.due_by, attempt)

    async def _run(self, attempt: Attempt) -> None:
        """Execute one attempt, from its start to its report."""
        key, started = attempt.key, monotonic()
        if log.isEnabledFor(logging.DEBUG):
            log.debug("run.started", extra=_facts(attempt))
        result = await self._execute(attempt) if attempt.end is None else HandlerResult(attempt.end)
        if log.isEnabledFor(logging.DEBUG):
            outcome, took = type(result.outcome).__name__, round((monotonic() - started) * 1000)
            log.debug("run.ended", extra={**_facts(attempt), "outcome": outcome, "ms": took})
        attempt.end = attempt.end or result.outcome  # it is over: nothing need end it any more
        attempt.over = True
        if attempt.has_output:  # most have none
            self.progress.forget(key)
            if self.artifacts.has_any(key):  # kept by a thread after the last upload was waited for
                self.artifacts.drop(key)
            if self.logs.has_lines(key):
                await self.logs.finish(key)
        if attempt.task is not None:
            self._deadlines.drop(attempt.due_by, attempt)
        run_id, fence = key
        job_id, worker_id = attempt.work.claimed.job_id, attempt.worker_id
        # Before it leaves `_attempts`, so that heartbeats always name it.
        self.reporter.put(
            Report(run_id, job_id, fence, worker_id, result.outcome, result.output, attempt.usage)
        )
        del self._attempts[key]
        attempt.places.give_back(attempt.work)
        self.wake()
        if not self._attempts:
            self._all_over.set()

    async def _execute(self, attempt: Attempt) -> HandlerResult:
        key, work = attempt.key, attempt.work
        try:
            masks = Masks(work.masks) if work.masks else NO_MASKS
            handler = self._handlers.get(work.claimed.type, UNKNOWN_TYPE)
            result = await run_handler(handler, self._assignment(attempt, masks), masks)
            if attempt.has_output and self.artifacts.has_any(key):
                problem = await self.artifacts.finish(key)
                if problem is not None and isinstance(result.outcome, Succeeded):
                    message = f"The work was done, but an artifact was not kept: {masks.text(problem)}"
                    return failed("artifact_refused", message, result.output)
        except asyncio.CancelledError:
            self.artifacts.drop(key)
            return HandlerResult(attempt.end or HandedBack())
        except Exception as error:  # noqa: BLE001  # a handler may return anything; the permit must come back
            kind = type(error).__name__
            log.warning("result.rejected", extra={"run": str(key[0]), "error": kind})
            return failed("invalid_result", f"The handler's result could not be stored ({kind}).")
        return result

    def _assignment(self, attempt: Attempt, masks: Masks) -> Assignment:
        work, claimed = attempt.work, attempt.work.claimed
        ctx = Context(
            str(claimed.workspace_id),
            str(claimed.job_id),
            work.job,
            str(claimed.run_id),
            claimed.attempt,
            claimed.fence,
            claimed.trigger.value,
            claimed.planned_for,
            self.logs.writer(attempt.key, claimed.attempt, masks, attempt.is_over),
            attempt.is_ended,
            self.artifacts.uploader(attempt.key, claimed.attempt, attempt.worker_id, masks, attempt.is_over),
            self.progress.writer(attempt.key, masks, attempt.is_over),
            self._link.most_artifact_bytes,
            deadline=claimed.deadline_at,
            workspace=work.workspace,
            number=work.number,
            triggered_by=work.triggered_by,
            upstream=None if work.upstream is None else Upstream(**work.upstream),
            spend=attempt.add_usage,
        )
        return Assignment(ctx, work.config, work.input, work.left, attempt.ended_by)

    def _time_out(self, attempt: Attempt) -> None:
        self._end(attempt, TimedOut())

    def _end(self, attempt: Attempt, outcome: Outcome) -> None:
        if attempt.end is None:
            attempt.end = outcome
            if attempt.task is not None:  # else it has not started, and never will
                attempt.task.cancel()

    async def _wait_for_all(self, within: float) -> None:
        if self._attempts:
            self._all_over.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_over.wait(), within)

    def _nap(self) -> timedelta:
        seconds, now = CHECK_EVERY * self._chance.uniform(0.5, 1), monotonic()
        # A hint that came too soon after an empty claim for the reserve is followed when its pause is over.
        pauses = (each.reserve_pause(now) for each in (self._places, self._external))
        return timedelta(seconds=min([seconds, *(pause for pause in pauses if pause)]))


def _facts(attempt: Attempt) -> dict[str, Any]:
    claimed = attempt.work.claimed
    planned_for = claimed.planned_for.isoformat()
    return {
        "run": str(claimed.run_id),
        "job": str(claimed.job_id),
        "type": claimed.type,
        "planned_for": planned_for,
    }
