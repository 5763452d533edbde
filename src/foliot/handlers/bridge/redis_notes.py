"""A bridge's notes, in the Redis of the engine: `foliot:{run}:{attempt}` says under which id an attempt was pushed.

A note is made before the push and confirmed after it, so that whoever takes up the run of a bridge that died knows what to ask the engine
for. It outlives the attempt's deadline by an hour.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from redis.asyncio import Redis

from foliot.handlers.bridge.engine import Handover, broker_errors

LOOKED_BACK = 20  # attempts; those that could not reach the broker left no note


class HandoverState(StrEnum):
    PUSHING = "pushing"  # it may or may not have reached the engine
    PUSHED = "pushed"
    OVER = "over"  # its end has been told, or it was taken back: the next attempt begins anew


@dataclass(frozen=True, slots=True)
class HandoverNote:
    id: str
    queue: str
    state: HandoverState


class HandoverNotes:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def earlier(self, run_id: str, attempt: int) -> HandoverNote | None:
        """What the newest attempt before this one left, where its work is to be taken up."""
        keys = [_key(run_id, number) for number in range(attempt - 1, max(0, attempt - 1 - LOOKED_BACK), -1)]
        if not keys:
            return None
        with broker_errors():
            found = await self._redis.mget(keys)
        newest = next((_read(each) for each in found if each is not None), None)
        return None if newest is None or newest.state is HandoverState.OVER else newest

    async def open(self, handovers: Sequence[Handover]) -> list[HandoverNote | None]:
        """Before the push. What it answers was there already: somebody pushes, or has pushed, this very attempt."""
        with broker_errors():
            async with self._redis.pipeline(transaction=False) as pipe:
                for each in handovers:
                    note = HandoverNote(each.id, each.queue, HandoverState.PUSHING)
                    pipe.set(_key(each.run_id, each.attempt), _text(note), nx=True, ex=each.keep)
                made = await pipe.execute()
            taken = [each for each, is_made in zip(handovers, made, strict=True) if not is_made]
            if not taken:
                return [None] * len(handovers)
            found = dict(
                zip(
                    (each.id for each in taken),
                    await self._redis.mget([_key(each.run_id, each.attempt) for each in taken]),
                    strict=True,
                )
            )
        return [_read(text) if (text := found.get(each.id)) else None for each in handovers]

    async def confirm(self, handovers: Sequence[Handover]) -> None:
        """After the push."""
        await self._mark(handovers, HandoverState.PUSHED)

    async def close(self, handover: Handover) -> None:
        await self._mark([handover], HandoverState.OVER)

    async def _mark(self, handovers: Sequence[Handover], state: HandoverState) -> None:
        with broker_errors():
            async with self._redis.pipeline(transaction=False) as pipe:
                for each in handovers:
                    text = _text(HandoverNote(each.id, each.queue, state))
                    pipe.set(_key(each.run_id, each.attempt), text, ex=each.keep)
                await pipe.execute()


def _key(run_id: str, attempt: int) -> str:
    return f"foliot:{run_id}:{attempt}"


def _text(note: HandoverNote) -> str:
    return json.dumps(asdict(note))


def _read(text: str | bytes) -> HandoverNote:
    note = HandoverNote(**json.loads(text))
    return replace(note, state=HandoverState(note.state))
