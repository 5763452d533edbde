"""Runs in an environment of its own, where procrastinate is installed and Foliot is not: no-op jobs, deferred and then drained.

`python procrastinate_worker.py <url> <jobs> <concurrency>` prints what it took as JSON.
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

from procrastinate import App, PsycopgConnector

AT_ONCE = 1_000


async def main(url: str, jobs: int, concurrency: int) -> None:
    logging.disable(logging.WARNING)
    app = App(connector=PsycopgConnector(conninfo=url))
    done = 0

    @app.task(name="noop")
    async def noop() -> None:
        nonlocal done
        done += 1

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, jobs, AT_ONCE):
            await noop.batch_defer_async(*({} for _ in range(min(AT_ONCE, jobs - start))))
        before, began = _cpu(), time.monotonic()
        await app.run_worker_async(
            wait=False, concurrency=concurrency, install_signal_handlers=False, listen_notify=False
        )
        seconds, cpu = time.monotonic() - began, _cpu() - before
    print(json.dumps({"count": done, "seconds": seconds, "cpu": cpu}))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
