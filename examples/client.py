"""A first job with the Python client: make it, see what it means, watch it run. `./dev serve` must be running."""

from __future__ import annotations

from threading import Event

from foliot import Client

with Client() as foliot:  # FOLIOT_API_URL and FOLIOT_API_KEY, or the server of this folder
    job = foliot.jobs.create(
        name="first job",
        type="http",
        schedule="every 2 seconds",
        max_runs=3,
        config={"method": "GET", "url": f"{foliot.url}/healthz"},
    )
    print(f"{job.schedule.words}; next at {job.next_run_at}")

    while foliot.jobs.get(job.id).status != "completed":
        Event().wait(0.5)

    for run in foliot.jobs.each_run(job.id):
        print(f"run {run.number} planned for {run.planned_for}: {run.status}")
