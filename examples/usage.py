"""What a run used, its sum of the month, and a budget that pauses the job. `./dev serve` must be running.

The usage is reported from outside, as a service would that did the work elsewhere. Python functions call `ctx.report_usage(tokens=1200)`.
"""

from __future__ import annotations

from threading import Event

from foliot import Client

with Client() as foliot:  # FOLIOT_API_URL and FOLIOT_API_KEY, or the server of this folder
    job = foliot.jobs.create(
        name="with a budget",
        type="message",
        schedule={"kind": "interval", "every": "1h"},
        config={"text": "The models have answered."},
        budgets=[{"unit": "usd", "amount": "1", "period": "month"}],
    )
    run = foliot.jobs.run(job.id)
    while (run := foliot.runs.get(run.id)).finished_at is None:
        Event().wait(0.2)
    run = foliot.runs.report_usage(run.id, {"tokens": 120_000, "usd": "1.20"})
    print(f"the run used {run.usage}")
    print(f"this month: {foliot.usage(job=job.id).totals}")
    job = foliot.jobs.get(job.id)
    print(f"the job is {job.status} until {job.paused_until:%Y-%m-%d}: {job.status_reason}")

    foliot.jobs.delete(job.id, purge=True)
