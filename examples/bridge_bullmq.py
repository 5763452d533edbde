"""A job of BullMQ that Foliot plans, retries and keeps the record of. `worker` is the team's side; in Node it looks much the same.

pip install 'foliot[bullmq]'
python bridge_bullmq.py worker
FOLIOT_BRIDGE_REDIS_URL=redis://127.0.0.1 foliot serve
python bridge_bullmq.py
"""

import asyncio
import os
import sys
from threading import Event
from typing import Any

from bullmq import Worker

from foliot import Client

REDIS = os.environ.get("REDIS_URL", "redis://127.0.0.1")


async def charge(job: Any, token: str) -> dict[str, object]:
    """Its id holds the run's, which is the same for all attempts: foliot-{run}-{attempt}."""
    return {"charged": job.data["limit"], "currency": job.data["currency"], "as": job.name}


async def work() -> None:
    Worker("jobs-default", charge, {"connection": REDIS})
    await asyncio.Event().wait()


if __name__ == "__main__" and sys.argv[1:] == ["worker"]:
    asyncio.run(work())
elif __name__ == "__main__":
    with Client() as foliot:
        planned = foliot.jobs.create(
            name="charge by BullMQ",
            type="bullmq",
            schedule={"words": "every weekday at 6am", "timezone": "Europe/Paris"},
            config={"name": "charge"},  # to the queue jobs-{workspace}, with the payload as its data
            payload={"currency": "EUR", "limit": 4},
            timeout="5m",
        )
        run = foliot.jobs.run(planned.id)
        while foliot.runs.get(run.id).finished_at is None:
            Event().wait(0.1)
        done = foliot.runs.get(run.id)
        for attempt in done.attempts or ():
            print(f"attempt {attempt.number}, {attempt.external_id} in BullMQ: {attempt.status}")
        print(done.status, done.output)
