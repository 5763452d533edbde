"""RQ: enqueue functions by name; each job's results are a stream of its own, and one read waits on all of them.

RQ pickles by default. We write pickles, since its workers read them, but never load one that could import anything: a result must
consist of plain values.
"""

from __future__ import annotations

import asyncio
import io
import json
import pickle
import zlib
from base64 import b64decode
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from rq import Queue
from rq.command import send_stop_job_command
from rq.exceptions import DuplicateJobError, InvalidJobOperation, NoSuchJobError
from rq.job import Job, JobStatus
from rq.results import Result

from foliot.handlers.bridge.engine import (
    ANSWER_WITHIN,
    CONNECT_WITHIN,
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

T = TypeVar("T")


class RqEngine:
    name = "RQ"

    def __init__(self, url: str) -> None:
        self.redis = connect(url)
        self._streams = RedisStreams(self.redis)
        # By stream, the last entry that was no end: the function asked RQ for a retry.
        self._seen: dict[str, str] = {}
        self._client = Redis.from_url(
            url,
            socket_connect_timeout=CONNECT_WITHIN,
            socket_timeout=ANSWER_WITHIN,
            retry=Retry(NoBackoff(), 1),
        )
        self._thread = ThreadPoolExecutor(1, "rq")  # its client blocks

    async def push(self, handover: Handover) -> None:
        await self._do(lambda: self._enqueue(handover))

    async def knows(self, handover: Handover, *, is_pushed: bool) -> bool:
        with broker_errors():
            found: int = await self.redis.exists(Job.key_for(handover.id), _results(handover.id))
        return found > 0

    async def look(self, handovers: Collection[Handover]) -> Mapping[str, HandlerResult]:
        def ask(pipe: Any, each: Handover) -> None:
            pipe.xrevrange(_results(each.id), count=1)
            pipe.hget(Job.key_for(each.id), "status")

        ends: dict[str, HandlerResult] = {}
        for each, [results, status] in await ask_each(self.redis, handovers, ask):
            if results and (done := _end(results[0][1], each)):
                ends[each.id] = done
            elif status is None:
                ends[each.id] = forgotten(self.name, each)
            elif status in {JobStatus.CANCELED, JobStatus.STOPPED}:
                ends[each.id] = failed("revoked", f"Somebody has {status} the job in RQ.")
        return ends

    async def listen(self, handovers: Collection[Handover], seconds: float) -> Mapping[str, HandlerResult]:
        by_stream = {_results(each.id): each for each in handovers}
        self._seen = {key: last for key, last in self._seen.items() if key in by_stream}
        found = await self._streams.read(dict.fromkeys(by_stream, "0-0") | self._seen, seconds)
        ends: dict[str, HandlerResult] = {}
        for key, entries in found.items():
            self._seen[key], fields = entries[-1]
            if done := _end(fields, by_stream[key]):
                ends[by_stream[key].id] = done
        return ends

    async def read_news(
        self, handovers: Collection[Handover], lines_read: Mapping[str, int]
    ) -> Mapping[str, EngineNews]:
        """Return nothing: RQ has neither progress nor log lines of a job."""
        return {}

    async def wake(self) -> None:
        await self._streams.wake()

    async def revoke(self, handover: Handover) -> str | None:
        return await self._do(lambda: self._stop(handover))

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._client.close()
        with suppress(BrokerUnreachable), broker_errors():
            await self.redis.aclose()

    def _enqueue(self, handover: Handover) -> None:
        config, given = handover.config, dict(handover.input)
        by_name = config.get("arguments", "keywords") == "keywords"
        queue = Queue(handover.queue, connection=self._client, serializer=_serializer(handover))
        with suppress(DuplicateJobError):  # it is enqueued already
            queue.enqueue_call(
                config["function"],
                args=() if by_name else (given,),
                kwargs=given if by_name else {},
                timeout=handover.keep,  # the bridge stops it at its deadline; this is for a dead bridge
                result_ttl=handover.keep,
                failure_ttl=handover.keep,
                ttl=handover.keep,
                job_id=handover.id,
                meta={
                    "foliot_run_id": handover.run_id,
                    "foliot_attempt": handover.attempt,
                    "foliot_planned_for": handover.planned_for,
                },
                unique=True,
            )

    def _stop(self, handover: Handover) -> str | None:
        try:
            job = Job.fetch(handover.id, connection=self._client, serializer=_serializer(handover))
            if job.get_status() is JobStatus.STARTED:
                send_stop_job_command(self._client, handover.id, serializer=_serializer(handover))
            else:
                job.cancel()
        except NoSuchJobError:
            pass
        except InvalidJobOperation as error:
            return f"RQ could not stop {handover.id}: {error}."
        return None

    async def _do(self, do: Callable[[], T]) -> T:
        with broker_errors():
            return await asyncio.get_running_loop().run_in_executor(self._thread, do)


def _results(job_id: str) -> str:
    return str(Result.get_key(job_id))  # type: ignore[no-untyped-call]  # RQ types the rest


def _serializer(handover: Handover) -> str:
    return str(handover.config.get("serializer", "pickle"))


def _end(fields: Mapping[str, str], handover: Handover) -> HandlerResult | None:
    """Parse a result as RQ stores it. Return None where RQ will retry the function."""
    kind = int(fields["type"])
    if kind == Result.Type.RETRIED.value:
        return None
    if kind == Result.Type.SUCCESSFUL.value:
        return _returned(fields.get("return_value"), handover)
    trace = fields.get("exc_string")
    text = zlib.decompress(b64decode(trace)).decode() if trace else ""
    last = next(
        (line for line in reversed(text.splitlines()) if line.strip()), "The job failed in RQ."
    ).strip()
    name, _, message = last.partition(": ")
    output = {"traceback": text} if text else None
    if not name.replace(".", "").replace("_", "").isalnum():  # not a traceback, but a message of RQ
        return failed("rq_failed", last, output)
    return failed(name.rpartition(".")[2], message or last, output)


def _returned(value: str | None, handover: Handover) -> HandlerResult:
    if value is None:
        return succeeded()
    raw = b64decode(value)
    try:
        return succeeded(
            json.loads(raw) if _serializer(handover) == "json" else _Plain(io.BytesIO(raw)).load()
        )
    except (ValueError, EOFError, pickle.UnpicklingError) as error:
        return failed(
            "result_unreadable", f"The job was done, but its result cannot be read: {error}.", permanent=True
        )


class _Plain(pickle.Unpickler):
    """Load numbers, text, lists and dictionaries only. An object that is looked up by name could run code."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it is or holds a {module}.{name}, not plain values")
