"""The worker: as many runs at once as it has permits, claimed in batches, each with a deadline, all of them reported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from random import Random, SystemRandom

from foliot.clock import monotonic
from foliot.domain.errors import WorkerGone
from foliot.domain.ids import RunId, WorkerId
from foliot.domain.masking import NO_MASKS, Masks
from foliot.domain.outcomes import Cancelled, HandedBack, Outcome, Succeeded, TimedOut
from foliot.handlers.registry import UNKNOWN_TYPE, Handler, HandlerResult, failed, takes_permit
from foliot.services.settlement.report import Report
from foliot.services.workers.claim import Work
from foliot.services.workers.workers import Beat
from foliot.worker.artifact_upload import ArtifactUpload
from foliot.worker.attempt import AttemptCallbacks, run_handler
from foliot.worker.deadlines import Deadlines
from foliot.worker.link import Link
from foliot.worker.log_buffer import LogBuffer
from foliot.worker.progress import ProgressBuffer
from foliot.worker.reporter import BATCH, Reporter
from foliot.worker.task_lanes import TaskLanes

log = logging.getLogger(__name__)

Key = tuple[
    RunId, int
]  # a run under its fence: the same run may come again while the last word on it is still owed
AT_ONCE = timedelta(0)
LOOK_EVERY = 1.0  # seconds between looks for work when no hint comes
ENDS_WITHIN = 1.5  # seconds for work that was told to stop
MOST_AT_ONCE = 500  # runs in one claim: the next is on its way while these are begun
BESIDE = 1_000  # runs at once that take no permit


@dataclass(slots=True, eq=False)
class Attempt:
    key: Key
    work: Work
    worker_id: WorkerId
    due_by: float  # on the monotonic clock
    takes_permit: bool
    why: Outcome | None = None  # what to report when it is ended from outside
    task: asyncio.Task[None] | None = None  # once it waits for something, and can be ended from outside
    over: bool = False

    def is_ended(self) -> bool:
        return self.why is not None

    def ended_by(self) -> Outcome | None:
        return self.why

    def is_over(self) -> bool:
        """What its code still writes or keeps, from a thread of its own, goes nowhere."""
        return self.over


class Worker:
    """Its step is run by a loop; `wake` is set by whoever puts the parts together."""

    def __init__(
        self,
        link: Link,
        handlers: Mapping[str, Handler],
        reporter: Reporter,
        permits: int,
        chance: Random | None = None,
        logbook: LogBuffer | None = None,
        meter: ProgressBuffer | None = None,
        keeping: ArtifactUpload | None = None,
        beside: int = BESIDE,
    ) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.when_begun: Callable[[], None] = lambda: None
        self.beat_soon: Callable[[], None] = lambda: None
        self.when_registered: Callable[[WorkerId, float], None] = lambda worker_id, at: None
        self.id: WorkerId | None = None
        self.is_draining = False
        self._link = link
        self._handlers = handlers
        self._types = sorted(each for each, handler in handlers.items() if takes_permit(handler))
        self._types_beside = sorted(
            handlers.keys() - set(self._types)
        )  # which only wait for work done elsewhere
        self._reporter = reporter
        self._permits = permits
        self._beside = beside if self._types_beside else 0
        self._running_beside = 0
        self._logbook = logbook or LogBuffer(link)
        self._meter = meter or ProgressBuffer(link)
        self._keeping = keeping or ArtifactUpload(link)
        self._chance = chance or SystemRandom()
        self._attempts: dict[Key, Attempt] = {}
        self._deadlines = Deadlines(self._time_out)
        self._lanes = TaskLanes(self._attempt, self._waits)
        self._all_over = asyncio.Event()
        self._is_unsure = False  # whether a claim's answer was lost

    async def step(self) -> timedelta:
        if self.is_draining:
            return self._nap()
        worker_id = self.id or await self.register()
        if self._is_unsure:
            await self._hand_back_unknown(worker_id)
        if self._reporter.owed > 2 * BATCH:
            return self._nap()  # the next attempt to end wakes us
        free = self._permits + self._running_beside - len(self._attempts)
        try:
            found = await self._claim(worker_id, self._types, free)
            if self._types_beside:
                room = self._beside - self._running_beside
                found = await self._claim(worker_id, self._types_beside, room) or found
        except WorkerGone:
            if self.id == worker_id:
                self.stop_all("given up for lost")
            return AT_ONCE
        return AT_ONCE if found else self._nap()

    def heard(self, beat: Beat) -> None:
        """What the heartbeat learned."""
        if not beat.is_alive:
            self.stop_all("given up for lost")
            return
        for key in (*beat.cancels, *beat.gone):  # what is reported of those that are gone is refused
            if attempt := self._attempts.get(key):
                self._end(attempt, Cancelled())

    def stop_all(self, why: str) -> None:
        """This worker's lease is over or soon will be: stop everything, and come again under a new id."""
        if self.id is None:
            return
        log.warning("worker.fenced", extra={"worker": str(self.id), "why": why, "runs": len(self._attempts)})
        self.id = None
        for attempt in list(self._attempts.values()):
            self._end(attempt, HandedBack())
        self.wake()

    def working_on(self) -> list[Key]:
        """What it has still to report included. Called from the heart's thread; making a list is one step that no other can interrupt."""
        return [*list(self._attempts), *self._reporter.keys()]

    def under_way(self) -> tuple[list[Key], list[Key]]:
        """What runs on, and what was told to stop."""
        going: list[Key] = []
        stopping: list[Key] = []
        for key, attempt in self._attempts.items():
            (going if attempt.why is None else stopping).append(key)
        return going, stopping

    def first_due(self) -> float | None:
        """The earliest moment by which some attempt should have ended. Called from the heart's thread."""
        return min((attempt.due_by for attempt in list(self._attempts.values())), default=None)

    async def drain(self, grace: float) -> None:
        """Claim no more, let what runs finish, hand back what does not. What is done elsewhere goes on without us, and is handed back
        at once, so that another worker waits for it.
        """
        self.is_draining = True
        for attempt in list(self._attempts.values()):
            if not attempt.takes_permit:
                self._end(attempt, HandedBack())
        await self._wait_for_all(grace)
        for attempt in list(self._attempts.values()):
            self._end(attempt, HandedBack())
        await self._wait_for_all(ENDS_WITHIN)
        for handler in self._handlers.values():
            await handler.close()

    async def register(self) -> WorkerId:
        """Under a new id; the step does it where there is none."""
        began = monotonic()
        types = sorted(self._handlers)
        self.id = await self._link.register(types, self._permits + self._beside)
        self.when_registered(self.id, began)
        log.info("worker.registered", extra={"worker": str(self.id), "types": types})
        return self.id

    async def _hand_back_unknown(self, worker_id: WorkerId) -> None:
        known = frozenset(self._attempts) | self._reporter.keys()
        for report in await self._link.unknown(worker_id, known):
            self._reporter.put(report)
        self._is_unsure = False

    async def _claim(self, worker_id: WorkerId, types: list[str], free: int) -> bool:
        """Whether there was anything."""
        if free <= 0 or not types:
            return False  # the next attempt to end wakes us
        try:
            found = await self._link.claim(worker_id, types, min(free, MOST_AT_ONCE))
        except WorkerGone:
            raise
        except BaseException:
            self._is_unsure = True
            raise
        now = monotonic()
        attempts = [self._attempt_at(work, worker_id, now) for work in found]
        if self.is_draining or self.id != worker_id:  # the end came while this was under way
            for attempt in attempts:
                self._report(attempt, HandlerResult(HandedBack()))
        else:
            self._begin(attempts)
            if attempts:
                self.when_begun()
        return bool(found)

    def _attempt_at(self, work: Work, worker_id: WorkerId, now: float) -> Attempt:
        claimed = work.claimed
        key, due_by = (claimed.run_id, claimed.fence), now + work.left.total_seconds()
        return Attempt(key, work, worker_id, due_by, claimed.type not in self._types_beside)

    def _begin(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            self._attempts[attempt.key] = attempt
            self._running_beside += not attempt.takes_permit
        self._lanes.add(attempts)

    def _waits(self, attempt: Attempt, task: asyncio.Task[None]) -> None:
        attempt.task = task
        self._deadlines.add(attempt.due_by, attempt)

    async def _attempt(self, attempt: Attempt) -> None:
        key = attempt.key
        done = await self._perform(attempt) if attempt.why is None else HandlerResult(attempt.why)
        attempt.why = attempt.why or done.outcome  # it is over: nobody need end it any more
        attempt.over = True
        self._meter.forget(*key)
        if self._keeping.has_some_of(key):  # after the last was waited for
            self._keeping.drop(key)
        if self._logbook.has_lines_of(key):
            await self._logbook.finish(*key)
        if attempt.task is not None:
            self._deadlines.drop(attempt.due_by, attempt)
        self._report(attempt, done)  # first, so that at every moment it is known of
        del self._attempts[key]
        self._running_beside -= not attempt.takes_permit
        self.wake()
        if not self._attempts:
            self._all_over.set()

    async def _perform(self, attempt: Attempt) -> HandlerResult:
        work, key, number = attempt.work, attempt.key, attempt.work.claimed.attempt
        try:
            masks = Masks(work.masks) if work.masks else NO_MASKS
            ways = AttemptCallbacks(
                self._logbook.writer(*key, number, masks, attempt.is_over),
                self._meter.teller(*key, masks),
                self._keeping.keeper(*key, number, attempt.worker_id, masks, attempt.is_over),
                self._keeping.most_bytes,
                attempt.is_ended,
                attempt.ended_by,
            )
            handler = self._handlers.get(work.claimed.type, UNKNOWN_TYPE)
            done = await run_handler(handler, work, ways, masks)
            if self._keeping.has_some_of(key):
                done = await self._with_artifacts(key, done, masks)
        except asyncio.CancelledError:
            self._keeping.drop(key)
            return HandlerResult(attempt.why or HandedBack())
        except Exception as error:  # noqa: BLE001  # what code says of its end may be anything; its permit must come back
            kind = type(error).__name__
            log.warning("attempt.untold", extra={"run": str(key[0]), "error": kind})
            return failed("untold", f"It ended, but what it says of its end cannot be stored ({kind}).")
        return done

    async def _with_artifacts(self, key: Key, done: HandlerResult, masks: Masks) -> HandlerResult:
        problem = await self._keeping.finish(key)
        if problem is None or not isinstance(done.outcome, Succeeded):
            return done
        sentence = f"The work was done, but an artifact was not kept: {masks.text(problem)}"
        return failed("artifact_refused", sentence, done.output)

    def _report(self, attempt: Attempt, done: HandlerResult) -> None:
        claimed = attempt.work.claimed
        self._reporter.put(
            Report(
                claimed.run_id, claimed.job_id, claimed.fence, attempt.worker_id, done.outcome, done.output
            )
        )

    def _end(self, attempt: Attempt, why: Outcome) -> None:
        if attempt.why is None:
            attempt.why = why
            if attempt.task is not None:  # else it has not begun, and never will
                attempt.task.cancel()

    async def _wait_for_all(self, within: float) -> None:
        if self._attempts:
            self._all_over.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_over.wait(), within)

    def _time_out(self, attempt: Attempt) -> None:
        self._end(attempt, TimedOut())

    def _nap(self) -> timedelta:
        return timedelta(seconds=LOOK_EVERY * self._chance.uniform(0.5, 1))
