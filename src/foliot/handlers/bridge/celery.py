"""Celery: send tasks by name to any broker that Celery supports; read their ends from its results in Redis.

Celery publishes each result on a channel of its own, so one pattern subscribes to all. A broker cannot be asked for a task by its id.
Where the note does not tell whether a push succeeded, the task is searched among the results, in the queue (of a Redis broker), and with
the workers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from celery import Celery
from celery.states import FAILURE, REVOKED, SUCCESS
from kombu.exceptions import OperationalError
from redis.asyncio.client import PubSub

from foliot.clock import monotonic
from foliot.handlers.bridge.engine import (
    AT_ONCE,
    CONNECT_WITHIN,
    BrokerUnreachable,
    EngineNews,
    Handover,
    broker_errors,
    connect,
)
from foliot.handlers.registry import HandlerResult, failed, succeeded

T = TypeVar("T")

META = "celery-task-meta-"
OURS = f"{META}foliot-*"
PRIORITIES = (
    "",
    "\x06\x163",
    "\x06\x166",
    "\x06\x169",
)  # behind the names of the lists that one queue is made of in Redis
ENDS = frozenset({FAILURE, REVOKED, SUCCESS})
UNACKED = "unacked"  # fetched by a worker that has not begun it
ANSWER_WITHIN = 1.0  # seconds for workers to answer which tasks they have
LATE = 60  # seconds after its deadline at which a waiting task expires


class CeleryEngine:
    name = "Celery"

    def __init__(self, broker_url: str, result_url: str) -> None:
        # Without a backend: it would subscribe for each task, and one subscription serves all of them.
        self._app = Celery("foliot", broker=broker_url, backend="disabled://", set_as_current=False)
        self._app.conf.update(
            task_serializer="json",
            accept_content=["json"],
            broker_connection_timeout=CONNECT_WITHIN,
            broker_transport_options=_transport_options(broker_url),
        )
        self.redis = connect(result_url)
        self._broker = connect(broker_url) if _is_redis(broker_url) else None
        self._thread = ThreadPoolExecutor(1, "celery")  # its client blocks
        self._subscription: PubSub | None = None

    async def push(self, handover: Handover) -> None:
        try:
            await self._do(lambda: self._send(handover))
        except BrokerUnreachable:  # maybe only a stale connection: check what it did before it broke
            if not await self.knows(handover, is_pushed=False):
                await self._do(lambda: self._send(handover))

    async def knows(self, handover: Handover, *, is_pushed: bool) -> bool:
        if is_pushed:
            return True
        with broker_errors():
            if await self.redis.exists(META + handover.id) or await self._is_waiting(handover):
                return True
        answers = await self._do(
            lambda: self._app.control.inspect(timeout=ANSWER_WITHIN).query_task(handover.id)
        )
        return any(handover.id in found for found in (answers or {}).values())

    async def look(self, handovers: Collection[Handover]) -> Mapping[str, HandlerResult]:
        return {name: done async for name, text in self._texts(handovers) if (done := _end(text))}

    async def listen(self, handovers: Collection[Handover], seconds: float) -> Mapping[str, HandlerResult]:
        try:
            with broker_errors():
                if self._subscription is None:
                    self._subscription = self.redis.pubsub(ignore_subscribe_messages=True)
                    await self._subscription.psubscribe(OURS)
                    return await self.look(handovers)  # what ended before the subscription
                return await self._read_results(self._subscription, seconds)
        except BrokerUnreachable:
            await self._unsubscribe()
            raise

    async def read_news(
        self, handovers: Collection[Handover], lines_read: Mapping[str, int]
    ) -> Mapping[str, EngineNews]:
        """Return what tasks store by `update_state`."""
        return {name: news async for name, text in self._texts(handovers) if (news := _news(text))}

    async def _texts(self, handovers: Collection[Handover]) -> AsyncIterator[tuple[str, bytes | str | None]]:
        """Yield the stored state of each task, by its id."""
        ids = [each.id for each in handovers]
        for start in range(0, len(ids), AT_ONCE):
            some = ids[start : start + AT_ONCE]
            with broker_errors():
                found = await self.redis.mget([META + each for each in some])
            for name, text in zip(some, found, strict=True):
                yield name, text

    async def wake(self) -> None:
        """Do nothing: the pattern covers tasks that are sent while it waits."""

    async def revoke(self, handover: Handover) -> str | None:
        await self._do(lambda: self._app.control.revoke(handover.id, terminate=True))
        return None

    async def close(self) -> None:
        await self._unsubscribe()
        with suppress(BrokerUnreachable), broker_errors():
            await self.redis.aclose()
            if self._broker is not None:
                await self._broker.aclose()
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._app.close()

    def _send(self, handover: Handover) -> None:
        by_name = handover.config.get("arguments", "keywords") == "keywords"
        self._app.send_task(
            handover.config["task"],
            args=() if by_name else (dict(handover.input),),
            kwargs=dict(handover.input) if by_name else {},
            task_id=handover.id,
            queue=handover.queue,
            expires=handover.left + LATE,
            headers={
                "foliot_run_id": handover.run_id,
                "foliot_attempt": handover.attempt,
                "foliot_planned_for": handover.planned_for,
            },
            ignore_result=False,  # even where the task ignores its result
            retry=False,
        )

    async def _is_waiting(self, handover: Handover) -> bool:
        """Return whether it waits in its queue, or with a worker that fetched it. Only a Redis broker can be searched."""
        if self._broker is None:
            return False
        for each in PRIORITIES:
            start = 0
            while texts := await self._broker.lrange(handover.queue + each, start, start + AT_ONCE - 1):
                if any(handover.id in str(text) for text in texts):
                    return True
                start += len(texts)
        async for _, text in self._broker.hscan_iter(UNACKED, count=AT_ONCE):
            if handover.id in text:
                return True
        return False

    async def _read_results(self, subscription: PubSub, seconds: float) -> dict[str, HandlerResult]:
        """Wait for the first result and return it with all others that have come."""
        ends: dict[str, HandlerResult] = {}
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0 and len(ends) < AT_ONCE:
            message = await subscription.get_message(timeout=0 if ends else left)
            if message is not None and (done := _end(message["data"])):
                ends[message["channel"].removeprefix(META)] = done
            elif message is None and ends:
                break
        return ends

    async def _unsubscribe(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with suppress(BrokerUnreachable), broker_errors():
                await subscription.aclose()  # type: ignore[no-untyped-call]  # redis types the rest

    async def _do(self, do: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, do)
        except (OperationalError, OSError) as error:
            raise BrokerUnreachable(str(error).strip(". ") or type(error).__name__) from error


def _end(text: str | bytes | None) -> HandlerResult | None:
    """Parse the result that Celery stores of a task. Return None where it has not ended."""
    if text is None:
        return None
    try:
        meta = json.loads(text)
    except ValueError:
        return failed(
            "result_unreadable",
            "The task ended, but its result is not JSON: set result_serializer to json.",
            permanent=True,
        )
    result: Any = meta.get("result")
    match meta.get("status"):
        case str() as status if status == SUCCESS:
            return succeeded(result)
        case str() as status if status == FAILURE:
            return failed(*_error(result), output=_trace(meta))
        case str() as status if status == REVOKED:
            return failed("revoked", "Celery revoked the task before it ended.")
        case _:
            return None


def _news(text: str | bytes | None) -> EngineNews | None:
    with suppress(ValueError, AttributeError):
        meta = json.loads(text or "null") or {}
        if meta.get("status") not in ENDS and isinstance(meta.get("result"), dict):
            return EngineNews(progress=meta["result"])
    return None


def _error(result: Any) -> tuple[str, str]:
    if not isinstance(result, dict):
        return "celery_failed", str(result)
    said = result.get("exc_message", "")
    message = ", ".join(map(str, said)) if isinstance(said, list | tuple) else str(said)
    code = str(result.get("exc_type") or "celery_failed")
    return code, message or code


def _trace(meta: Mapping[str, Any]) -> dict[str, str] | None:
    return {"traceback": str(meta["traceback"])} if meta.get("traceback") else None


def _is_redis(url: str) -> bool:
    return url.startswith(("redis://", "rediss://"))


def _transport_options(url: str) -> dict[str, float]:
    return {"socket_connect_timeout": CONNECT_WITHIN, "socket_timeout": 10.0} if _is_redis(url) else {}
