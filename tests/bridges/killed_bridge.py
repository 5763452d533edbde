"""A bridge that dies between its push and the confirming note: `python -m tests.bridges.killed_bridge DATABASE BROKER TYPE`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta
from typing import Any

from foliot.handlers.bridge.redis_notes import HandoverNotes
from foliot.handlers.dependencies import QueueEngineUrls
from foliot.storage.tx import Database
from tests.bridges.engines import celery_broker
from tests.bridges.in_process_worker import run_in_process_worker


async def die(self: HandoverNotes, handovers: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main(database_url: str, broker: str, kind: str) -> None:
    HandoverNotes.confirm = die  # type: ignore[method-assign]
    async with (
        Database(database_url) as database,
        run_in_process_worker(
            database, kind, QueueEngineUrls(broker, celery_broker(broker), broker), timedelta(seconds=1)
        ),
    ):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
