"""A worker of BullMQ for the benchmark: `python -m bench.worker.bullmq_worker URL`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from bullmq import Worker

CONCURRENCY = 100


async def noop(job: Any, token: str) -> None:
    """Its end is stored all the same."""


async def main(url: str) -> None:
    Worker("bench", noop, {"connection": url, "concurrency": CONCURRENCY})
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
