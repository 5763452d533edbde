"""The bridge passes many attempts to one queue engine: one task pushes them, one waits for their ends.

A run whose bridge dies is repeated under a new attempt. That attempt finds the note of the one before and, where the engine knows the
id, waits for the work that is already there; it pushes again only where the engine does not. So a run is done once, unless the bridge
dies at the very moment of the push and the engine cannot be asked; it is never lost.

Why: docs/decisions/905-bridges.md
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from random import SystemRandom
from typing import Any
from uuid import UUID

from foliot.clock import Clock, SystemClock, monotonic
from foliot.domain.bridge_policy import DEFAULT_QUEUE, BridgePolicy, queue_name
from foliot.domain.errors import FoliotError
from foliot.domain.ids import RunId, WorkspaceId
from foliot.domain.outcomes import HandedBack, Succeeded, TimedOut
from foliot.handlers.bridge.engine import BrokerUnreachable, EngineNews, Handover, QueueEngine
from foliot.handlers.bridge.redis_notes import HandoverNote, HandoverNotes, HandoverState
from foliot.handlers.placeholders import FilledTextTooLarge, fill, needed_values
from foliot.handlers.registry import Assignment, HandlerResult, failed
from foliot.services import Database
from foliot.services.workers.bridges import HandedOver, handed_over, priorities, slugs

log = logging.getLogger(__name__)


class Outage:
    """Remember since when a broker is unreachable."""

    def __init__(self, engine: str, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock or SystemClock()
        self._since: datetime | None = None
        self._reason = ""

    @property
    def message(self) -> str | None:
        """None while the broker answers."""
        if self._since is None:
            return None
        since = self._since.strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"The broker of {self._engine} is unreachable since {since}: {self._reason}."

    def begin(self, error: BrokerUnreachable) -> bool:
        """Record an outage and return whether it is new."""
        is_new = self._since is None
        self._since, self._reason = self._since or self._clock.now(), str(error)
        if is_new:
            log.warning("broker.unreachable", extra={"engine": self._engine, "reason": self._reason})
        return is_new

    def end(self) -> None:
        if self._since is not None:
            log.info("broker.reached", extra={"engine": self._engine, "since": self._since.isoformat()})
            self._since = None


BATCH = 100
LISTEN_FOR = 1.0  # seconds
CHECK_EVERY = 5.0  # seconds between checks of all pending handovers, should a signal get lost
NEWS_EVERY = 1.0  # seconds between readings of progress and log lines
RETRY_AFTER = 1.0  # seconds, while the broker cannot be reached
REVOKE_WITHIN = 3.0  # seconds


@dataclass(slots=True, eq=False)
class PendingHandover:
    assignment: Assignment
    ended: asyncio.Future[HandlerResult]
    handover: Handover | None = None  # None until it is about to be pushed
    input: Mapping[str, Any] = field(default_factory=dict)  # with the facts of the run filled in
    priority: int = 0
    lines_read: int = 0
    progress: Any = None  # as the engine reported it last
    is_waiting: bool = False  # no worker of the engine has taken it, as the run's progress says
    is_pushed: bool = False
    is_unwanted: bool = False  # its attempt has ended for good
    is_from_engine: bool = False  # the engine itself reported its end
    # Set once people can see the handover, or never will: its end may be reported.
    is_shown: asyncio.Event = field(default_factory=asyncio.Event)


class Bridge:
    def __init__(self, engine: QueueEngine, database: Database, bridge_policy: BridgePolicy) -> None:
        self._engine = engine
        self._database = database
        self._bridge_policy = bridge_policy
        self._notes = HandoverNotes(engine.redis)
        self._outage = Outage(engine.name)
        self._slugs: dict[WorkspaceId, str] = {}
        self._to_push: deque[PendingHandover] = deque()
        self._pending: dict[str, PendingHandover] = {}  # by the engine's id
        self._may_push, self._may_watch = asyncio.Event(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._chance = SystemRandom()

    async def run(self, assignment: Assignment) -> HandlerResult:
        """Push the attempt and wait for the engine's result."""
        if not self._tasks:
            steps = (self._keep_pushing(), self._keep_watching())
            self._tasks = [asyncio.create_task(step) for step in steps]
        pending = PendingHandover(assignment, asyncio.get_running_loop().create_future())
        self._to_push.append(pending)
        self._may_push.set()
        try:
            done = await pending.ended
        except asyncio.CancelledError:
            ended_by, unreachable = assignment.ended_by(), self._outage.message
            if isinstance(ended_by, HandedBack):  # the work goes on, and the next worker waits for it
                raise
            pending.is_unwanted = True
            await self._revoke_within(pending)
            if isinstance(ended_by, TimedOut) and unreachable:
                return failed("broker_unreachable", f"No result came in time. {unreachable}")
            if isinstance(ended_by, TimedOut) and pending.is_waiting:
                return failed("not_taken", f"No worker took it in time: {self._waits(pending)}")
            raise
        finally:
            self._forget(pending)
        # The end may come before the push has returned. The note is closed after it is confirmed, or the next attempt would find
        # it open, take over this end and fail with it again.
        await pending.is_shown.wait()
        if pending.is_from_engine:
            with suppress(BrokerUnreachable):
                await self._hear([pending])
            if not isinstance(done.outcome, Succeeded):
                await self._close_note(pending)
        return done

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._engine.close()

    async def _keep_pushing(self) -> None:
        while True:
            await self._may_push.wait()
            self._may_push.clear()
            while self._to_push:
                taken = [self._to_push.popleft() for _ in range(min(BATCH, len(self._to_push)))]
                batch = [each for each in taken if not each.ended.done()]
                try:
                    await self._push(batch)
                except Exception as error:  # these fail; the others go on
                    log.exception("bridge.failed", extra={"engine": self._engine.name})
                    self._fail(batch, type(error).__name__, str(error) or repr(error))
                finally:
                    for pending in batch:
                        pending.is_shown.set()

    async def _push(self, batch: Sequence[PendingHandover]) -> None:
        try:
            await self._learn_slugs(batch)
            await self._learn_priorities(batch)
            batch = self._refuse(batch)
            notes = await self._write_notes(batch)
        except (BrokerUnreachable, FoliotError) as error:
            self._fail_unreachable(batch, error)
            return
        handed: list[PendingHandover] = []
        for index, (pending, note) in enumerate(zip(batch, notes, strict=True)):
            try:
                await self._hand_over(pending, note)
            except BrokerUnreachable as error:  # the rest would not get through either
                self._fail_unreachable(batch[index:], error)
                break
            handed.append(pending)
        if handed:
            self._outage.end()
            with suppress(BrokerUnreachable):  # then the next attempt, if any, asks the engine
                await self._notes.confirm([_handover(each) for each in handed])
                await self._engine.wake()
            await self._show(handed)

    async def _write_notes(self, batch: Sequence[PendingHandover]) -> list[HandoverNote | None]:
        """Write the notes, and return those of earlier attempts whose work this attempt takes over."""
        notes: list[HandoverNote | None] = []
        for pending in batch:
            ctx = pending.assignment.ctx
            note = await self._notes.earlier(ctx.run_id, ctx.attempt)
            pending.handover = self._handover_of(pending, note)
            notes.append(note)
        there = await self._notes.open([_handover(each) for each in batch])
        return [ours or before for ours, before in zip(there, notes, strict=True)]

    def _handover_of(self, pending: PendingHandover, note: HandoverNote | None) -> Handover:
        assignment = pending.assignment
        ctx, config = assignment.ctx, assignment.config
        named = str(config.get("queue") or DEFAULT_QUEUE)
        return Handover(
            id=f"foliot-{ctx.run_id}-{ctx.attempt}" if note is None else note.id,
            queue=queue_name(named, self._slug(assignment)) if note is None else note.queue,
            config=config,
            input=pending.input,
            run_id=ctx.run_id,
            attempt=ctx.attempt,
            planned_for=ctx.planned_for.isoformat(),
            left=max(1.0, assignment.left.total_seconds()),
            facts={
                "run_id": ctx.run_id,
                "job_id": ctx.job_id,
                "job": ctx.job,
                "workspace_id": ctx.workspace_id,
                "workspace": self._slug(assignment),
                "planned_for": ctx.planned_for.isoformat(),
                "trigger": ctx.trigger,
                "attempt": ctx.attempt,
                "fence": ctx.fence,
                "target": config.get("target"),
            },
            priority=pending.priority,
        )

    def _refuse(self, batch: Sequence[PendingHandover]) -> list[PendingHandover]:
        """Fail the handovers that the operator does not allow, for good, and return the others."""
        allowed = []
        for pending in batch:
            assignment = pending.assignment
            refused = self._bridge_policy.refusal(assignment.config, self._slug(assignment))
            code, message = "handover_refused", "" if refused is None else f"{refused.message} {refused.hint}"
            try:
                given = dict(assignment.input)
                pending.input = fill(given, needed_values(given, assignment))
            except FilledTextTooLarge as error:
                code, message = "config_invalid", str(error)
            if not message:
                allowed.append(pending)
            elif not pending.ended.done():
                pending.ended.set_result(failed(code, message, permanent=True))
        return allowed

    def _slug(self, assignment: Assignment) -> str:
        workspace_id = assignment.ctx.workspace_id
        return self._slugs.get(WorkspaceId(UUID(workspace_id)), workspace_id)

    async def _hand_over(self, pending: PendingHandover, note: HandoverNote | None) -> None:
        handover = _handover(pending)
        self._pending[handover.id] = pending  # before the push: the end may come before it returns
        self._may_watch.set()
        is_pushed = note is not None and note.state is HandoverState.PUSHED
        if note is not None and await self._engine.knows(handover, is_pushed=is_pushed):
            pending.assignment.ctx.write(
                "system",
                f"An earlier attempt handed this run to {self._engine.name} as {handover.id}; waiting for that.",
            )
            self._deliver(await self._engine.look([handover]))
        else:
            await self._engine.push(handover)
        pending.is_pushed = True
        if pending.is_unwanted:
            await self._engine.revoke(handover)

    async def _show(self, handed: Sequence[PendingHandover]) -> None:
        """Record the engine's ids with the runs, for people. The protocol does not need it: it uses the notes."""
        shown = [
            HandedOver(RunId(UUID(each.assignment.ctx.run_id)), each.assignment.ctx.fence, _handover(each).id)
            for each in handed
        ]
        try:
            await handed_over(self._database, shown)
        except FoliotError as error:
            log.warning("handover.not_shown", extra={"runs": len(shown), "reason": error.message})

    async def _keep_watching(self) -> None:
        check_at, news_at = 0.0, 0.0
        while True:
            if not self._pending:
                self._may_watch.clear()
                await self._may_watch.wait()
            try:
                if monotonic() >= check_at:
                    pushed = [_handover(each) for each in self._pending.values() if each.is_pushed]
                    self._deliver(await self._engine.look(pushed))
                    check_at = monotonic() + CHECK_EVERY * self._chance.uniform(0.75, 1)
                else:
                    every = [_handover(each) for each in self._pending.values()]
                    self._deliver(await self._engine.listen(every, LISTEN_FOR))
                if monotonic() >= news_at:
                    await self._hear([each for each in self._pending.values() if each.is_pushed])
                    news_at = monotonic() + NEWS_EVERY
                self._outage.end()
            except BrokerUnreachable as error:
                self._announce_outage(error)
                await asyncio.sleep(RETRY_AFTER)
            except Exception:
                log.exception("bridge.failed", extra={"engine": self._engine.name})
                await asyncio.sleep(RETRY_AFTER)

    def _deliver(self, ends: Mapping[str, HandlerResult]) -> None:
        for external_id, done in ends.items():
            pending = self._pending.pop(external_id, None)
            if pending is not None and not pending.ended.done():
                pending.is_from_engine = True
                pending.ended.set_result(done)

    async def _hear(self, handed: Sequence[PendingHandover]) -> None:
        """Pass on the progress and the log lines of handovers."""
        by_id = {_handover(each).id: each for each in handed}
        read = {external_id: each.lines_read for external_id, each in by_id.items()}
        found = await self._engine.read_news([_handover(each) for each in handed], read)
        for external_id, news in found.items():
            self._pass_on(by_id[external_id], news)

    def _pass_on(self, pending: PendingHandover, news: EngineNews) -> None:
        ctx = pending.assignment.ctx
        for line in news.lines:
            ctx.write("log", line)
        pending.lines_read += len(news.lines)
        if news.is_waiting != pending.is_waiting:
            pending.is_waiting = news.is_waiting
            ctx.tell(0.0, 100.0, self._waits(pending) if news.is_waiting else "")
        if news.progress is not None and news.progress != pending.progress:
            pending.progress = news.progress
            done, total, note = _progress(news.progress)
            if total:
                ctx.progress(done, total, note)
            else:
                ctx.write("log", note)

    def _waits(self, pending: PendingHandover) -> str:
        return f"It waits in the queue {_handover(pending).queue} of {self._engine.name}, and no worker there has taken it."

    def _announce_outage(self, error: BrokerUnreachable) -> None:
        if self._outage.begin(error):
            for pending in self._pending.values():
                pending.assignment.ctx.write("system", f"{self._outage.message} Waiting for it.")

    def _fail_unreachable(
        self, batch: Sequence[PendingHandover], error: BrokerUnreachable | FoliotError
    ) -> None:
        if isinstance(error, FoliotError):
            self._fail(batch, error.code, error.message)
            return
        self._outage.begin(error)
        self._fail(batch, "broker_unreachable", self._outage.message or str(error))

    def _fail(self, batch: Sequence[PendingHandover], code: str, message: str) -> None:
        for pending in batch:
            if not pending.ended.done():
                pending.ended.set_result(failed(code, message))

    async def _revoke_within(self, pending: PendingHandover) -> None:
        """Revoke within a time limit, in a task of its own: the worker may cancel this attempt again."""
        if pending.handover is not None:
            await asyncio.wait(
                [asyncio.create_task(self._revoke(pending, pending.handover))], timeout=REVOKE_WITHIN
            )

    async def _revoke(self, pending: PendingHandover, handover: Handover) -> None:
        try:
            problem = await self._engine.revoke(handover)
            await self._notes.close(handover)
        except BrokerUnreachable as error:
            problem = f"{handover.id} could not be revoked: {error}."
        if problem is not None:
            pending.assignment.ctx.write("system", problem)

    async def _close_note(self, pending: PendingHandover) -> None:
        """Let the next attempt start anew. Where this fails, it gets this end again, and the one after it starts anew."""
        with suppress(BrokerUnreachable):
            await self._notes.close(_handover(pending))

    def _forget(self, pending: PendingHandover) -> None:
        if pending.handover is not None and self._pending.get(pending.handover.id) is pending:
            del self._pending[pending.handover.id]

    async def _learn_priorities(self, batch: Sequence[PendingHandover]) -> None:
        runs = [RunId(UUID(each.assignment.ctx.run_id)) for each in batch]
        found = await priorities(self._database, runs) if runs else {}
        for pending, run_id in zip(batch, runs, strict=True):
            pending.priority = found.get(run_id, 0)

    async def _learn_slugs(self, batch: Sequence[PendingHandover]) -> None:
        wanted = {WorkspaceId(UUID(each.assignment.ctx.workspace_id)) for each in batch} - self._slugs.keys()
        if wanted:
            self._slugs |= await slugs(self._database, wanted)


def _handover(pending: PendingHandover) -> Handover:
    assert pending.handover is not None
    return pending.handover


def _progress(reported: Any) -> tuple[float, float, str]:
    """Read progress as workers write it: a percentage, or a number of so many. The total of anything else is 0, and it is only a note."""
    if isinstance(reported, int | float):
        return float(reported), 100.0, ""
    if isinstance(reported, dict):
        done = next(
            (reported[name] for name in ("current", "done", "progress", "percent") if name in reported), None
        )
        total = reported.get("total", 100)
        if isinstance(done, int | float) and isinstance(total, int | float) and total > 0:
            note = next(
                (str(reported[name]) for name in ("note", "status", "message") if name in reported), ""
            )
            return float(done), float(total), note
    return 0.0, 0.0, reported if isinstance(reported, str) else json.dumps(reported)
