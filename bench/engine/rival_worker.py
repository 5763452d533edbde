"""Runs in an environment of its own, where pgqueuer is installed and Foliot is not: no-op jobs, enqueued and then drained.

`python rival_worker.py <url> <jobs> <batch>` prints what it took as JSON.
"""

# mypy: ignore-errors
# What it imports is not installed where types are checked.
from __future__ import annotations

import asyncio
import json
import logging
import resource
import sys
import time

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

AT_ONCE = 10_000


async def main(url: str, jobs: int, batch: int) -> None:
    logging.disable(logging.WARNING)
    connection = await asyncpg.connect(url)
    driver = AsyncpgDriver(connection)
    queries = Queries(driver)
    await queries.install()
    for start in range(0, jobs, AT_ONCE):
        count = min(AT_ONCE, jobs - start)
        await queries.enqueue(["noop"] * count, [None] * count, [0] * count)
    await connection.execute("VACUUM (ANALYZE)")
    rival = PgQueuer(driver)
    done = 0

    @rival.entrypoint("noop")
    async def noop(_: Job) -> None:
        nonlocal done
        done += 1

    before, began = _cpu(), time.monotonic()
    await rival.run(batch_size=batch, mode=QueueExecutionMode.drain)
    seconds, cpu = time.monotonic() - began, _cpu() - before
    print(json.dumps({"count": done, "seconds": seconds, "cpu": cpu}))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
