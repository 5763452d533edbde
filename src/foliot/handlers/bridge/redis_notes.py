"""Notes of a bridge in the engine's Redis: `foliot:{run}:{attempt}` holds the id under which an attempt was pushed.

A note is written before the push and confirmed after it. When a bridge dies, the next attempt of its run learns from the note which id to
ask the engine for. A note outlives the attempt's deadline by an hour.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from redis.asyncio import Redis

from foliot.handlers.bridge.engine import Handover, broker_errors

LOOKED_BACK = 20  # attempts; one that could not reach the broker left no note


class HandoverState(StrEnum):
    PUSHING = "pushing"  # it may or may not have reached the engine
    PUSHED = "pushed"
    OVER = "over"  # its end is reported, or it was revoked: the next attempt starts anew


@dataclass(frozen=True, slots=True)
class HandoverNote:
    id: str
    queue: str
    state: HandoverState


class HandoverNotes:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def earlier(self, run_id: str, attempt: int) -> HandoverNote | None:
        """Return the note of the newest attempt before this one, where its work is to be taken over."""
        keys = [_key(run_id, number) for number in range(attempt - 1, max(0, attempt - 1 - LOOKED_BACK), -1)]
        if not keys:
            return None
        with broker_errors():
            found = await self._redis.mget(keys)
        newest = next((_read(each) for each in found if each is not None), None)
        return None if newest is None or newest.state is HandoverState.OVER else newest

    async def open(self, handovers: Sequence[Handover]) -> list[HandoverNote | None]:
        """Write notes before the push. Return those that existed already: this very attempt is being pushed, or was."""
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
        """Mark notes as pushed."""
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
