"""Since when an engine's broker cannot be reached, and what is said of it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from random import SystemRandom
from uuid import UUID

from foliot.clock import Clock, SystemClock, monotonic
from foliot.domain.bridge_policy import DEFAULT_QUEUE, Handing, queue_name
from foliot.domain.errors import FoliotError
from foliot.domain.ids import RunId, WorkspaceId
from foliot.domain.outcomes import HandedBack, Succeeded, TimedOut
from foliot.handlers.bridge.engine import BrokerUnreachable, Handover, QueueEngine
from foliot.handlers.bridge.redis_notes import HandoverNote, HandoverNotes, HandoverState
from foliot.handlers.registry import Assignment, HandlerResult, failed
from foliot.services import Database
from foliot.services.workers.bridges import HandedOver, handed_over, slugs

log = logging.getLogger(__name__)


class Outage:
    def __init__(self, engine: str, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock or SystemClock()
        self._since: datetime | None = None
        self._why = ""

    @property
    def sentence(self) -> str | None:
        """None while the broker answers."""
        if self._since is None:
            return None
        since = self._since.strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"The broker of {self._engine} is unreachable since {since}: {self._why}."

    def noticed(self, error: BrokerUnreachable) -> bool:
        """Whether this is news."""
        is_news = self._since is None
        self._since, self._why = self._since or self._clock.now(), str(error)
        if is_news:
            log.warning("broker.unreachable", extra={"engine": self._engine, "reason": self._why})
        return is_news

    def is_over(self) -> None:
        if self._since is not None:
            log.info("broker.reached", extra={"engine": self._engine, "since": self._since.isoformat()})
            self._since = None


BATCH = 100
LISTEN_FOR = 1.0  # seconds
LOOK_EVERY = 5.0  # seconds between looks at everything under way, should a signal have been missed
AGAIN_AFTER = 1.0  # seconds, while the broker cannot be reached
REVOKED_WITHIN = 3.0  # seconds


@dataclass(slots=True, eq=False)
class PendingHandover:
    assignment: Assignment
    ended: asyncio.Future[HandlerResult]
    handover: Handover | None = None  # None until it is about to be pushed
    is_pushed: bool = False
    is_unwanted: bool = False  # its attempt has ended for good
    is_told: bool = False  # the engine itself said how it ended
    is_shown: asyncio.Event = field(
        default_factory=asyncio.Event
    )  # or never will be: its end may be reported


class Bridge:
    def __init__(self, engine: QueueEngine, database: Database, handing: Handing) -> None:
        self._engine = engine
        self._database = database
        self._handing = handing
        self._notes = HandoverNotes(engine.redis)
        self._outage = Outage(engine.name)
        self._slugs: dict[WorkspaceId, str] = {}
        self._to_push: deque[PendingHandover] = deque()
        self._pending: dict[str, PendingHandover] = {}  # by the engine's id
        self._may_push, self._may_watch = asyncio.Event(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._chance = SystemRandom()

    async def carry(self, assignment: Assignment) -> HandlerResult:
        """From the push to the engine's last word."""
        if not self._tasks:
            steps = (self._keep_pushing(), self._keep_watching())
            self._tasks = [asyncio.create_task(step) for step in steps]
        parcel = PendingHandover(assignment, asyncio.get_running_loop().create_future())
        self._to_push.append(parcel)
        self._may_push.set()
        try:
            done = await parcel.ended
        except asyncio.CancelledError:
            why, unreachable = assignment.ended_by(), self._outage.sentence
            if isinstance(why, HandedBack):  # the work goes on, and whoever claims the run next waits for it
                raise
            parcel.is_unwanted = True
            await self._take_back(parcel)
            if isinstance(why, TimedOut) and unreachable:
                return failed("broker_unreachable", f"No result came in time. {unreachable}")
            raise
        finally:
            self._forget(parcel)
        if parcel.is_told and not isinstance(done.outcome, Succeeded):
            await self._close_note(parcel)
        await parcel.is_shown.wait()
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
                except Exception as error:  # these fail, and the others go on
                    log.exception("bridge.failed", extra={"engine": self._engine.name})
                    self._fail(batch, type(error).__name__, str(error) or repr(error))
                finally:
                    for parcel in batch:
                        parcel.is_shown.set()

    async def _push(self, batch: Sequence[PendingHandover]) -> None:
        try:
            await self._learn_slugs(batch)
            batch = self._refuse(batch)
            notes = await self._noted(batch)
        except (BrokerUnreachable, FoliotError) as error:
            self._cannot(batch, error)
            return
        handed: list[PendingHandover] = []
        for place, (parcel, note) in enumerate(zip(batch, notes, strict=True)):
            try:
                await self._hand_over(parcel, note)
            except BrokerUnreachable as error:  # nor would the rest of them get through
                self._cannot(batch[place:], error)
                break
            handed.append(parcel)
        if handed:
            self._outage.is_over()
            with suppress(
                BrokerUnreachable
            ):  # then the next attempt, should there be one, has to ask the engine
                await self._notes.confirm([_handover(each) for each in handed])
                await self._engine.wake()
            await self._tell(handed)

    async def _noted(self, batch: Sequence[PendingHandover]) -> list[HandoverNote | None]:
        """The notes are made; answers with those of earlier attempts whose work is to be taken up."""
        notes: list[HandoverNote | None] = []
        for parcel in batch:
            ctx = parcel.assignment.ctx
            note = await self._notes.earlier(ctx.run_id, ctx.attempt)
            parcel.handover = self._addressed(parcel.assignment, note)
            notes.append(note)
        there = await self._notes.open([_handover(each) for each in batch])
        return [ours or before for ours, before in zip(there, notes, strict=True)]

    def _addressed(self, assignment: Assignment, note: HandoverNote | None) -> Handover:
        ctx, config = assignment.ctx, assignment.config
        named = str(config.get("queue") or DEFAULT_QUEUE)
        return Handover(
            id=f"foliot-{ctx.run_id}-{ctx.attempt}" if note is None else note.id,
            queue=queue_name(named, self._slug(assignment)) if note is None else note.queue,
            config=config,
            input=assignment.input,
            run_id=ctx.run_id,
            attempt=ctx.attempt,
            planned_for=ctx.planned_for.isoformat(),
            left=max(1.0, assignment.left.total_seconds()),
        )

    def _refuse(self, batch: Sequence[PendingHandover]) -> list[PendingHandover]:
        """Without those that the operator does not allow, or no longer does: they fail for good."""
        allowed = []
        for parcel in batch:
            why = self._handing.refusal(parcel.assignment.config, self._slug(parcel.assignment))
            if why is None:
                allowed.append(parcel)
            elif not parcel.ended.done():
                parcel.ended.set_result(
                    failed("handover_refused", f"{why.message} {why.hint}", permanent=True)
                )
        return allowed

    def _slug(self, assignment: Assignment) -> str:
        workspace_id = assignment.ctx.workspace_id
        return self._slugs.get(WorkspaceId(UUID(workspace_id)), workspace_id)

    async def _hand_over(self, parcel: PendingHandover, note: HandoverNote | None) -> None:
        handover = _handover(parcel)
        self._pending[handover.id] = parcel  # before the push: the end may come sooner than we are back
        self._may_watch.set()
        is_pushed = note is not None and note.state is HandoverState.PUSHED
        if note is not None and await self._engine.knows(handover, is_pushed=is_pushed):
            parcel.assignment.ctx.write(
                "system",
                f"An earlier attempt handed this run to {self._engine.name} as {handover.id}; waiting for that.",
            )
            self._deliver(await self._engine.look([handover]))
        else:
            await self._engine.push(handover)
        parcel.is_pushed = True
        if parcel.is_unwanted:
            await self._engine.revoke(handover)

    async def _tell(self, handed: Sequence[PendingHandover]) -> None:
        """Where people look. It is no part of the protocol: the notes are."""
        told = [
            HandedOver(RunId(UUID(each.assignment.ctx.run_id)), each.assignment.ctx.fence, _handover(each).id)
            for each in handed
        ]
        try:
            await handed_over(self._database, told)
        except FoliotError as error:
            log.warning("handover.not_shown", extra={"runs": len(told), "reason": error.message})

    async def _keep_watching(self) -> None:
        look_at = 0.0
        while True:
            if not self._pending:
                self._may_watch.clear()
                await self._may_watch.wait()
            try:
                if monotonic() >= look_at:
                    pushed = [_handover(each) for each in self._pending.values() if each.is_pushed]
                    self._deliver(await self._engine.look(pushed))
                    look_at = monotonic() + LOOK_EVERY * self._chance.uniform(0.75, 1)
                else:
                    every = [_handover(each) for each in self._pending.values()]
                    self._deliver(await self._engine.listen(every, LISTEN_FOR))
                self._outage.is_over()
            except BrokerUnreachable as error:
                self._wait_on(error)
                await asyncio.sleep(AGAIN_AFTER)
            except Exception:
                log.exception("bridge.failed", extra={"engine": self._engine.name})
                await asyncio.sleep(AGAIN_AFTER)

    def _deliver(self, ends: Mapping[str, HandlerResult]) -> None:
        for external_id, done in ends.items():
            parcel = self._pending.pop(external_id, None)
            if parcel is not None and not parcel.ended.done():
                parcel.is_told = True
                parcel.ended.set_result(done)

    def _wait_on(self, error: BrokerUnreachable) -> None:
        if self._outage.noticed(error):
            for parcel in self._pending.values():
                parcel.assignment.ctx.write("system", f"{self._outage.sentence} Waiting for it.")

    def _cannot(self, batch: Sequence[PendingHandover], error: BrokerUnreachable | FoliotError) -> None:
        if isinstance(error, FoliotError):
            self._fail(batch, error.code, error.message)
            return
        self._outage.noticed(error)
        self._fail(batch, "broker_unreachable", self._outage.sentence or str(error))

    def _fail(self, batch: Sequence[PendingHandover], code: str, message: str) -> None:
        for parcel in batch:
            if not parcel.ended.done():
                parcel.ended.set_result(failed(code, message))

    async def _take_back(self, parcel: PendingHandover) -> None:
        """Within bounds, and in a task of its own: whoever ended this attempt may lose patience."""
        if parcel.handover is not None:
            await asyncio.wait(
                [asyncio.create_task(self._revoke(parcel, parcel.handover))], timeout=REVOKED_WITHIN
            )

    async def _revoke(self, parcel: PendingHandover, handover: Handover) -> None:
        try:
            problem = await self._engine.revoke(handover)
            await self._notes.close(handover)
        except BrokerUnreachable as error:
            problem = f"{handover.id} could not be revoked: {error}."
        if problem is not None:
            parcel.assignment.ctx.write("system", problem)

    async def _close_note(self, parcel: PendingHandover) -> None:
        """So that the next attempt begins anew. Where this fails it is told this end again, and the one after that begins anew."""
        with suppress(BrokerUnreachable):
            await self._notes.close(_handover(parcel))

    def _forget(self, parcel: PendingHandover) -> None:
        if parcel.handover is not None and self._pending.get(parcel.handover.id) is parcel:
            del self._pending[parcel.handover.id]

    async def _learn_slugs(self, batch: Sequence[PendingHandover]) -> None:
        wanted = {WorkspaceId(UUID(each.assignment.ctx.workspace_id)) for each in batch} - self._slugs.keys()
        if wanted:
            self._slugs |= await slugs(self._database, wanted)


def _handover(parcel: PendingHandover) -> Handover:
    assert parcel.handover is not None
    return parcel.handover
