"""Use the client that openapi-python-client made."""

# mypy: ignore-errors
import sys

from python_client import AuthenticatedClient
from python_client.api.jobs import create_job, list_jobs, patch_job, run_job
from python_client.api.runs import get_run
from python_client.models import (
    DryRunOut,
    JobIn,
    JobInConfig,
    JobOut,
    PatchJobPatch,
    Problem,
    RunIn,
    WordsIn,
)

url, key = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key)


def draft(name: str) -> JobIn:
    config = JobInConfig.from_dict({"url": "http://127.0.0.1:1/hook"})
    return JobIn(name=name, type_="http", config=config, schedule=WordsIn(words="every day at 9am"))


job = create_job.sync(client=client, body=draft("made by openapi-python-client"))
assert isinstance(job, JobOut), job
assert job.schedule.words == "Every day at 09:00, UTC"
assert isinstance(create_job.sync(client=client, body=draft("a dry run"), dry_run=True), DryRunOut)
page = list_jobs.sync(client=client, count=True)
assert page.total >= 1
assert job.id in {each.id for each in page.items}
edited = patch_job.sync(job.id, client=client, body=PatchJobPatch.from_dict({"description": "Edited."}))
assert isinstance(edited, JobOut), edited
assert edited.description == "Edited."
run = run_job.sync(job.id, client=client, body=RunIn())
assert get_run.sync(run.id, client=client).job_id == job.id
refused = create_job.sync(client=client, body=draft(""))
assert isinstance(refused, Problem), refused
assert refused.code == "invalid"
assert refused.errors[0].pointer == "/name"
