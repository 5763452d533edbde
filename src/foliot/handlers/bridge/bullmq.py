"""BullMQ, for workers in Node or Python: each queue has a stream of events, and one read waits on all that have our jobs.

A job added under an id that the queue has is not added again, so a push may be repeated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from bullmq import Queue

from foliot.handlers.bridge.engine import (
    BrokerUnreachable,
    EngineNews,
    Handover,
    RedisStreams,
    ask_each,
    broker_errors,
    connect,
    forgotten,
)
from foliot.handlers.registry import HandlerResult, failed, succeeded

MOST_QUEUES = 100  # cached; each holds its scripts, a quarter of a MiB
PREFIX = "bull"
_UNRECOVERABLE = re.compile(r"^(?:[\w.]+\.)?UnrecoverableError\b", re.MULTILINE)


class BullmqEngine:
    name = "BullMQ"

    def __init__(self, url: str) -> None:
        self.redis = connect(url)
        self._streams = RedisStreams(self.redis)
        self._queues: dict[str, Queue] = {}  # by their base keys
        self._last_seen: dict[str, str] = {}  # the last known event of each queue, by its stream

    async def push(self, handover: Handover) -> None:
        events = f"{_base(handover)}:events"
        if events not in self._last_seen:  # before the push, or its end could be missed
            self._last_seen[events] = await self._streams.last(events)
        keep = {"age": handover.keep}
        options = {"jobId": handover.id, "attempts": 1, "removeOnComplete": keep, "removeOnFail": keep}
        if handover.priority > 0:  # jobs without one go first
            options["priority"] = handover.priority
        with broker_errors():
            await self._queue(handover).add(handover.config["name"], _data(handover), options)

    async def knows(self, handover: Handover, *, is_pushed: bool) -> bool:
        with broker_errors():
            found: int = await self.redis.exists(_key(handover))
        return found > 0

    async def look(self, handovers: Collection[Handover]) -> Mapping[str, HandlerResult]:
        def ask(pipe: Any, each: Handover) -> None:
            pipe.hmget(_key(each), "name", "finishedOn", "returnvalue", "failedReason", "stacktrace")

        ends: dict[str, HandlerResult] = {}
        for each, [(name, finished, value, reason, trace)] in await ask_each(self.redis, handovers, ask):
            if name is None:
                ends[each.id] = forgotten(self.name, each)
            elif finished is not None:
                ends[each.id] = _returned(value) if reason is None else _failed(reason, trace)
        return ends

    async def listen(self, handovers: Collection[Handover], seconds: float) -> Mapping[str, HandlerResult]:
        bases = {f"{_base(each)}:events" for each in handovers}
        for idle in self._last_seen.keys() - bases:
            del self._last_seen[idle]
        for new in bases - self._last_seen.keys():
            self._last_seen[new] = await self._streams.last(new)
        found = await self._streams.read({each: self._last_seen[each] for each in bases}, seconds)
        for stream, entries in found.items():
            self._last_seen[stream] = entries[-1][0]
        ended = {
            fields.get("jobId")
            for entries in found.values()
            for _, fields in entries
            if fields.get("event") in {"completed", "failed", "removed"}
        }
        return await self.look([each for each in handovers if each.id in ended])

    async def read_news(
        self, handovers: Collection[Handover], lines_read: Mapping[str, int]
    ) -> Mapping[str, EngineNews]:
        def ask(pipe: Any, each: Handover) -> None:
            pipe.hmget(_key(each), "name", "progress", "processedOn")
            pipe.lrange(f"{_key(each)}:logs", lines_read.get(each.id, 0), -1)

        return {
            each.id: EngineNews(tuple(lines), _progress(progress), taken is None)
            for each, [(name, progress, taken), lines] in await ask_each(self.redis, handovers, ask)
            if name is not None
        }

    async def wake(self) -> None:
        await self._streams.wake()

    async def revoke(self, handover: Handover) -> str | None:
        with broker_errors():
            removed = await self._queue(handover).remove(handover.id)
        if removed == 0:
            return (
                f"A worker has begun {handover.id}, and BullMQ cannot stop it; its result will not be heard."
            )
        return None

    async def close(self) -> None:
        with suppress(BrokerUnreachable), broker_errors():
            await self.redis.aclose()

    def _queue(self, handover: Handover) -> Queue:
        """Return the queue of a handover, over the shared client."""
        base = _base(handover)
        if base not in self._queues:
            if len(self._queues) >= MOST_QUEUES:
                del self._queues[next(iter(self._queues))]
            # BullMQ refuses colons in names, but not in prefixes; the keys are the same.
            prefix, _, name = base.rpartition(":")
            options: Any = {"connection": self.redis, "prefix": prefix}
            self._queues[base] = Queue(name, options)
        return self._queues[base]


def _data(handover: Handover) -> dict[str, Any]:
    given, facts = dict(handover.input), handover.facts
    match handover.config.get("data", "input"):
        case "bare":
            return given
        case "envelope":
            return {
                "jobId": facts.get("job_id"),
                "jobRunId": handover.run_id,
                "hostId": facts.get("target"),
                "type": handover.config["name"],
                "payload": given,
                "attempt": handover.attempt,
                "plannedFor": handover.planned_for,
                "trigger": facts.get("trigger"),
            }
        case _:
            return given | {"foliot": dict(facts)}


def _progress(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _prefix(handover: Handover) -> str:
    return str(handover.config.get("prefix", PREFIX))


def _base(handover: Handover) -> str:
    return f"{_prefix(handover)}:{handover.queue}"


def _key(handover: Handover) -> str:
    return f"{_base(handover)}:{handover.id}"


def _returned(value: str | None) -> HandlerResult:
    try:
        return succeeded(None if value is None else json.loads(value))
    except ValueError:
        return failed(
            "result_unreadable", "The job was done, but what it returned is not JSON.", permanent=True
        )


def _failed(reason: str, trace: str | None) -> HandlerResult:
    lines = json.loads(trace) if trace else []
    output = {"traceback": "\n".join(map(str, lines))} if lines else None
    # BullMQ stores the class of an error nowhere else.
    permanent = output is not None and _UNRECOVERABLE.search(output["traceback"]) is not None
    return failed("bullmq_failed", reason or "The job failed in BullMQ.", output, permanent=permanent)
