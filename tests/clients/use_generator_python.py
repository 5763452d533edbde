"""Use the client that openapi-generator made for Python."""

# mypy: ignore-errors
import sys

import generator_client as made

url, key = sys.argv[1:]
client = made.ApiClient(made.Configuration(host=url, access_token=key))
jobs, runs = made.JobsApi(client), made.RunsApi(client)
draft = {
    "name": "made by openapi-generator",
    "type": "http",
    "config": {"url": "http://127.0.0.1:1/hook"},
    "schedule": {"words": "every day at 9am"},
}
job = jobs.create_job(made.JobIn.from_dict(draft))
assert isinstance(job, made.JobOut), job
assert isinstance(
    jobs.create_job(made.JobIn.from_dict(draft | {"name": "a dry run"}), dry_run=True), made.DryRunOut
)
page = jobs.list_jobs(count=True)
assert job.id in {each.id for each in page.items}
run = jobs.run_job(job.id, run_in=made.RunIn())
assert runs.get_run(run.id).job_id == job.id
try:
    jobs.get_job(run.id)
except made.ApiException as error:
    refused = error
assert refused.status == 404
assert refused.data.code == "not_found"
