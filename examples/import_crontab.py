"""A crontab becomes jobs: look at the plan, import them in shadow mode, compare, switch. `./dev serve` must be running."""

from __future__ import annotations

from foliot import Client

CRONTAB = """\
# m h dom mon dow command
30 2 * * *   /usr/local/bin/backup --all
*/15 * * * * curl -fsS https://example.com/poll
61 * * * *   /usr/local/bin/never
"""

with Client() as foliot:  # FOLIOT_API_URL and FOLIOT_API_KEY, or the server of this folder
    given = {"source": "crontab", "text": CRONTAB, "time_zone": "Europe/Madrid", "shadow": True}
    plan = foliot.import_jobs(given, dry_run=True)
    for item in plan.records:
        print(f"{item.result}: {item.name}")

    made = [item.job_id for item in foliot.import_jobs(given).records if item.job_id]
    again = foliot.import_jobs(given)
    print(f"a second import changes nothing: {[item.result.value for item in again.records]}")

    for job_id in made:
        job, times = foliot.jobs.get(job_id), foliot.jobs.next(job_id, n=1)
        print(f"{job.schedule.words}; shadow mode: {job.shadow}; next: {times.items[0].planned_local}")
    for job_id in made:  # the old scheduler is switched off, so they run for real from now on
        foliot.jobs.patch(job_id, {"shadow": False})
    print(f"switched over: {len(made)}")
    for job_id in made:
        foliot.jobs.delete(job_id, purge=True)
