"""A Celery task that Foliot plans, retries and keeps the record of. This file is both the team's Celery app and the client.

pip install 'foliot[celery]'
celery -A bridge_celery worker --queues jobs-default
FOLIOT_CELERY_BROKER_URL=redis://127.0.0.1 FOLIOT_CELERY_RESULT_URL=redis://127.0.0.1 foliot serve
python bridge_celery.py
"""

import os
from threading import Event

from celery import Celery, Task

from foliot import Client

REDIS = os.environ.get("REDIS_URL", "redis://127.0.0.1")
app = Celery("shop", broker=REDIS, backend=REDIS)


@app.task(name="shop.charge", bind=True)  # type: ignore[untyped-decorator]
def charge(task: Task, currency: str, limit: int) -> dict[str, object]:
    """The run's id is the same for all attempts: the key to make repeated work harmless."""
    return {"charged": limit, "currency": currency, "run": task.request.headers["foliot_run_id"]}


if __name__ == "__main__":
    with Client() as foliot:
        job = foliot.jobs.create(
            name="charge by Celery",
            type="celery",
            schedule={"words": "every weekday at 6am", "timezone": "Europe/Paris"},
            config={
                "task": "shop.charge"
            },  # to the queue jobs-{workspace}, with the payload as keyword arguments
            payload={"currency": "EUR", "limit": 4},
            timeout="5m",
        )
        run = foliot.jobs.run(job.id)
        while foliot.runs.get(run.id).finished_at is None:
            Event().wait(0.1)
        done = foliot.runs.get(run.id)
        for attempt in done.attempts or ():
            print(f"attempt {attempt.number}, {attempt.external_id} in Celery: {attempt.status}")
        print(done.status, done.output)
