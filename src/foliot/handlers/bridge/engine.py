"""What a bridge asks of a queue engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from foliot.handlers.registry import HandlerResult, failed

CONNECT_WITHIN, ANSWER_WITHIN = 3.0, 10.0  # seconds
MARGIN = 3600  # seconds for which an engine and our notes remember a run beyond its deadline


class BrokerUnreachable(Exception):
    """The engine's broker did not answer, or would not. What was asked of it may have been done all the same."""


@dataclass(frozen=True, slots=True)
class Handover:
    """One attempt, as its engine is told of it. An attempt that takes up an earlier one's work has the id of that one."""

    id: str
    queue: str
    config: Mapping[str, Any]
    input: Mapping[str, Any]
    run_id: str
    attempt: int
    planned_for: str
    left: float  # seconds to its deadline

    @property
    def keep(self) -> int:
        """Seconds for which its result may be needed."""
        return int(self.left) + MARGIN


class QueueEngine(Protocol):
    """Every verb may raise Unreachable."""

    name: str
    redis: Redis  # where the bridge keeps its notes

    async def push(self, handover: Handover) -> None:
        """Under an id that the engine has, this adds nothing where the engine can tell."""
        ...

    async def knows(self, handover: Handover, *, is_pushed: bool) -> bool:
        """Whether the engine has it, waiting, under way or ended. `is_pushed`: somebody saw the push succeed."""
        ...

    async def look(self, handovers: Collection[Handover]) -> Mapping[str, HandlerResult]:
        """Those of them that have ended, by their ids: the truth."""
        ...

    async def listen(self, handovers: Collection[Handover], seconds: float) -> Mapping[str, HandlerResult]:
        """Wait until something has ended, or the time is up. What is missed here is found by `look`."""
        ...

    async def wake(self) -> None:
        """End a `listen` that is under way: there is more to listen for."""
        ...

    async def revoke(self, handover: Handover) -> str | None:
        """Stop it. A sentence says why it may go on."""
        ...

    async def close(self) -> None: ...


@contextmanager
def broker_errors() -> Iterator[None]:
    """Around whatever speaks with Redis."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise BrokerUnreachable(_why(error)) from error


def connect(url: str) -> Redis:
    """Connects when it is used first, and once more where it was cut off; who waits longer than that is told."""
    return Redis.from_url(
        url,
        decode_responses=True,
        socket_connect_timeout=CONNECT_WITHIN,
        socket_timeout=ANSWER_WITHIN,
        retry=Retry(NoBackoff(), 1),
        protocol=2,  # the older one, in whose shape streams are read here
    )


def forgotten(engine: str, handover: Handover) -> HandlerResult:
    return failed(
        "forgotten_by_engine",
        f"{engine} does not know {handover.id} any more: somebody removed it, or its data was lost.",
    )


def _why(error: BaseException) -> str:
    return str(error).strip(". ") or type(error).__name__


Entry = tuple[str, dict[str, Any]]  # its id, its fields


class RedisStreams:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._bell = f"foliot:bell:{uuid4()}"
        self._rung = "0-0"

    async def read(self, after: Mapping[str, str], seconds: float) -> dict[str, list[Entry]]:
        """What came in each behind the id we know; waits for the first of them, as long as it may."""
        asked: dict[Any, Any] = {**after, self._bell: self._rung}
        with broker_errors():
            found: Any = await self._redis.xread(asked, block=max(1, int(seconds * 1000)))
        entries: dict[str, list[Entry]] = dict(found or ())
        if rung := entries.pop(self._bell, None):
            self._rung = rung[-1][0]
        return entries

    async def wake(self) -> None:
        with broker_errors():
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.xadd(self._bell, {"more": "1"}, maxlen=1, approximate=False)
                pipe.expire(self._bell, MARGIN)
                await pipe.execute()

    async def last(self, stream: str) -> str:
        """The newest id there is."""
        with broker_errors():
            newest: Any = await self._redis.xrevrange(stream, count=1)
        return str(newest[0][0]) if newest else "0-0"
