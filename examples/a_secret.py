"""A secret in a job: kept, named in its config, used, and masked in what comes back. `./dev serve` must be running.

The job asks the server itself, which refuses a key that is none: 401 is what it hopes for.
"""

from __future__ import annotations

import sys
from threading import Event

from foliot import Client

with Client() as foliot:  # FOLIOT_API_URL and FOLIOT_API_KEY, or the server of this folder
    value = sys.stdin.readline().strip() or "Bearer not-a-real-key"
    kept = foliot.secrets.set("example-key", value)
    print(f"{kept.name} is at version {kept.version}")

    job = foliot.jobs.create(
        name="with a secret",
        type="http",
        schedule={"kind": "manual"},
        config={
            "method": "POST",
            "url": f"{foliot.url}/api/v1/preview",
            "headers": {"authorization": {"secret": kept.name}},
            "body": {"words": "every day at 9am"},
            "success": [401],
        },
    )
    print(f"its config says {job.config['headers']}")
    run = foliot.jobs.run(job.id)
    while (run := foliot.runs.get(run.id)).finished_at is None:
        Event().wait(0.2)
    print(f"the run {run.status} with {run.output['status'] if run.output else run.error}")

    foliot.jobs.delete(job.id, purge=True)
    foliot.secrets.delete(kept.id)
