"""The interface of a queue engine, as a bridge uses it, and its access to Redis."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from foliot.handlers.registry import HandlerResult, failed

CONNECT_WITHIN, ANSWER_WITHIN = 3.0, 10.0  # seconds
AT_ONCE = 500  # handovers in one request
MARGIN = 3600  # seconds that an engine and our notes keep a run beyond its deadline


class BrokerUnreachable(Exception):
    """The engine's broker did not answer, or refused. It may have carried out the request all the same."""


@dataclass(frozen=True, slots=True)
class Handover:
    """One attempt, as the engine gets it. An attempt that takes over the work of an earlier one has the id of that one."""

    id: str
    queue: str
    config: Mapping[str, Any]
    input: Mapping[str, Any]
    run_id: str
    attempt: int
    planned_for: str
    left: float  # seconds to its deadline
    facts: Mapping[str, Any] = field(default_factory=dict)  # about the run, for the worker of the engine
    priority: int = 0  # smaller goes first

    @property
    def keep(self) -> int:
        """Return the seconds for which its result may be needed."""
        return int(self.left) + MARGIN


@dataclass(frozen=True, slots=True)
class EngineNews:
    """The news of a handover that has not ended, or has just ended."""

    lines: tuple[str, ...] = ()  # logged since the last time
    progress: Any = None  # in the words of the engine's worker
    is_waiting: bool = False  # no worker has taken it yet


class QueueEngine(Protocol):
    """Every method may raise BrokerUnreachable."""

    name: str
    redis: Redis  # where the bridge keeps its notes

    async def push(self, handover: Handover) -> None:
        """Push the handover. An engine that can detect it adds an id only once."""
        ...

    async def knows(self, handover: Handover, *, is_pushed: bool) -> bool:
        """Return whether the engine has it, waiting, running or ended. `is_pushed` means that the push succeeded."""
        ...

    async def look(self, handovers: Collection[Handover]) -> Mapping[str, HandlerResult]:
        """Return the results of the handovers that have ended, by their ids."""
        ...

    async def listen(self, handovers: Collection[Handover], seconds: float) -> Mapping[str, HandlerResult]:
        """Wait until some handover has ended, or the time is up. `look` finds an end that is missed here."""
        ...

    async def read_news(
        self, handovers: Collection[Handover], lines_read: Mapping[str, int]
    ) -> Mapping[str, EngineNews]:
        """Return progress and log lines by ids. `lines_read` counts the lines known of each."""
        ...

    async def wake(self) -> None:
        """End a `listen` that is under way: there are new handovers."""
        ...

    async def revoke(self, handover: Handover) -> str | None:
        """Stop the handover. Return a message where it may go on."""
        ...

    async def close(self) -> None: ...


@contextmanager
def broker_errors() -> Iterator[None]:
    """Raise BrokerUnreachable for errors of Redis."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise BrokerUnreachable(_reason(error)) from error


def connect(url: str) -> Redis:
    """Return a client that connects on first use and retries a broken connection once."""
    return Redis.from_url(
        url,
        decode_responses=True,
        socket_connect_timeout=CONNECT_WITHIN,
        socket_timeout=ANSWER_WITHIN,
        retry=Retry(NoBackoff(), 1),
        protocol=2,  # the answers of streams are parsed in the shape of version 2
    )


async def ask_each(
    redis: Redis, handovers: Collection[Handover], ask: Callable[[Any, Handover], None]
) -> list[tuple[Handover, list[Any]]]:
    """Return the answers for each handover to the commands that `ask` adds to a pipeline, always the same number of them."""
    answered: list[tuple[Handover, list[Any]]] = []
    every = list(handovers)
    for start in range(0, len(every), AT_ONCE):
        some = every[start : start + AT_ONCE]
        with broker_errors():
            async with redis.pipeline(transaction=False) as pipe:
                for each in some:
                    ask(pipe, each)
                answers = await pipe.execute()
        size = len(answers) // len(some)
        answered += [(each, answers[at * size : (at + 1) * size]) for at, each in enumerate(some)]
    return answered


def forgotten(engine: str, handover: Handover) -> HandlerResult:
    return failed(
        "forgotten_by_engine",
        f"{engine} does not know {handover.id} any more: it was removed, or its data was lost.",
    )


def _reason(error: BaseException) -> str:
    return str(error).strip(". ") or type(error).__name__


Entry = tuple[str, dict[str, Any]]  # its id, its fields


class RedisStreams:
    """Listen to many streams at once. A stream of our own among them ends a wait when there are new handovers."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._wake_stream = f"foliot:bell:{uuid4()}"
        self._last_wake = "0-0"

    async def read(self, after: Mapping[str, str], seconds: float) -> dict[str, list[Entry]]:
        """Return the entries of each stream behind the known id; wait for the first."""
        streams: dict[Any, Any] = {**after, self._wake_stream: self._last_wake}
        with broker_errors():
            found: Any = await self._redis.xread(streams, block=max(1, int(seconds * 1000)))
        entries: dict[str, list[Entry]] = dict(found or ())
        if woken := entries.pop(self._wake_stream, None):
            self._last_wake = woken[-1][0]
        return entries

    async def wake(self) -> None:
        with broker_errors():
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.xadd(self._wake_stream, {"more": "1"}, maxlen=1, approximate=False)
                pipe.expire(self._wake_stream, MARGIN)
                await pipe.execute()

    async def last(self, stream: str) -> str:
        """Return the newest id of a stream."""
        with broker_errors():
            newest: Any = await self._redis.xrevrange(stream, count=1)
        return str(newest[0][0]) if newest else "0-0"
