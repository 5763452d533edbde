"""A function of RQ's workers that Foliot plans, retries and keeps the record of. This file is both their code and the client.

pip install 'foliot[rq]'
rq worker jobs-default
FOLIOT_BRIDGE_REDIS_URL=redis://127.0.0.1 foliot serve
python bridge_rq.py
"""

from threading import Event

from rq import get_current_job

from foliot import Client


def charge(currency: str, limit: int) -> dict[str, object]:
    """The run's id is the same for all attempts: the key to make repeated work harmless."""
    job = get_current_job()
    assert job is not None
    return {"charged": limit, "currency": currency, "run": job.meta["foliot_run_id"]}


if __name__ == "__main__":
    with Client() as foliot:
        planned = foliot.jobs.create(
            name="charge by RQ",
            type="rq",
            schedule={"words": "every weekday at 6am", "timezone": "Europe/Paris"},
            config={"function": "bridge_rq.charge"},  # to the queue jobs-{workspace}
            payload={"currency": "EUR", "limit": 4},
            timeout="5m",
        )
        run = foliot.jobs.run(planned.id)
        while foliot.runs.get(run.id).finished_at is None:
            Event().wait(0.1)
        done = foliot.runs.get(run.id)
        for attempt in done.attempts or ():
            print(f"attempt {attempt.number}, {attempt.external_id} in RQ: {attempt.status}")
        print(done.status, done.output)
