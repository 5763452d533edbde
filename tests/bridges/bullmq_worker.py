"""A worker of BullMQ for these tests: `python -m tests.bridges.bullmq_worker URL QUEUE`."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from bullmq import UnrecoverableError, Worker

from tests.bridges import engine_functions


async def process(job: Any, token: str) -> Any:
    assert job.name == "work"
    given = {name: value for name, value in job.data.items() if name != "foliot"}
    if given.pop("unrecoverable", False):
        raise UnrecoverableError("never again")
    if given.pop("talk", False):
        await job.updateProgress(40)
        await job.log("half of it")
    return await asyncio.to_thread(engine_functions.work, **given)


async def main(url: str, queue: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    worker = Worker(queue, process, {"connection": url, "concurrency": 2})
    await stop.wait()
    await worker.close(force=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
