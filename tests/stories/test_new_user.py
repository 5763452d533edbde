"""A new user's path, in an empty folder: a job of each kind is made, runs, is paused, resumed, run manually, explained and deleted.

Once by the command line, once by the Python client, once by curl, each as a user would type it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import pytest

from foliot import Client
from tests.fork_server import environ_without_foliot, run_foliot
from tests.stories.server_process import ServerProcess
from tests.temporary import temporary_folder

WITHIN = 60.0
pytestmark = pytest.mark.timeout(
    300
)  # seconds on a machine of its own; a busy one takes its time to start programs


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """An empty folder in which Foliot was started: one for all three, for they do not meet."""
    with temporary_folder() as made:
        yield made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    serving = ServerProcess(folder / ".foliot")
    try:
        yield serving.wait_for_url()
    finally:
        serving.end()


def until(holds: Callable[[], Any]) -> Any:
    """What it answers, once that is something."""
    deadline, pause = time.monotonic() + WITHIN, Event()
    while not (found := holds()):
        assert time.monotonic() < deadline, "it never came"
        pause.wait(0.05)
    return found


@pytest.mark.requirement("S1-T2", "S4-2", "S4-AC-7")
def test_a_new_user_gets_along_by_the_command_line_alone(folder: Path, url: str) -> None:
    env = environ_without_foliot() | {"FOLIOT_API_URL": url, "FOLIOT_OUTPUT": "json"}

    def foliot(*words: str) -> Any:
        done = run_foliot(*words, cwd=folder, env=env)
        assert done.returncode == 0, f"foliot {' '.join(words)}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else done.stdout

    what = ("--http", f"{url}/healthz", "--method", "GET")
    foliot("jobs", "create", "--name", "cron", "--schedule", "* * * * * *", "--seconds", *what)
    foliot("jobs", "create", "--name", "interval", "--every", "1s", *what)
    foliot("jobs", "create", "--name", "one-shot", "--at", "5s", *what)
    foliot("jobs", "create", "--name", "words", "--when", "every 2 seconds", *what)
    made = {"cron", "interval", "one-shot", "words"}
    assert {job["name"] for job in foliot("jobs", "list")["items"]} == made
    until(
        lambda: (
            made <= {run["job_name"] for run in foliot("runs", "list", "status:succeeded", "--all")["items"]}
        )
    )
    assert foliot("jobs", "history", "one-shot")["items"][0]["status"] == "succeeded"
    assert foliot("jobs", "pause", "words", "--reason", "lunch")["status"] == "paused"
    assert foliot("jobs", "resume", "words")["status"] == "active"
    assert foliot("jobs", "run", "words", "--wait")["status"] == "succeeded"
    assert "succeeded" in foliot("why", "one-shot")["sentence"]
    for name in made:
        foliot("jobs", "delete", name, "--yes")
    assert foliot("jobs", "list")["items"] == []


def succeeded(foliot: Client, job: UUID) -> list[Any]:
    return list(foliot.jobs.each_run(job, status="succeeded"))


@pytest.mark.slow
def test_a_new_user_gets_along_by_the_python_client(folder: Path, url: str) -> None:
    key = (folder / ".foliot" / "admin.key").read_text().strip()
    with Client(url, key) as foliot:
        what: dict[str, Any] = {"type": "http", "config": {"url": f"{url}/healthz", "method": "GET"}}
        soon = foliot.preview("in 1 second").items[0].planned_for
        schedules: list[Any] = [
            {"kind": "cron", "expr": "* * * * * *", "seconds": True},
            {"kind": "interval", "every": "1s"},
            {"kind": "once", "at": soon.isoformat()},
            "every second",
        ]
        jobs = [
            foliot.jobs.create(name=f"python {n}", schedule=when, **what) for n, when in enumerate(schedules)
        ]
        for job in jobs:
            until(partial(succeeded, foliot, job.id))
        job = jobs[1]
        assert foliot.jobs.pause(job.id, reason="lunch").status == "paused"
        assert foliot.jobs.resume(job.id).status == "active"
        run = foliot.jobs.run(job.id)
        ended = until(lambda: (found := foliot.runs.get(run.id)).finished_at and found)
        assert ended.status == "succeeded"
        assert "succeeded" in foliot.runs.explain(run.id).sentence
        for each in jobs:
            foliot.jobs.delete(each.id)
        assert not [job for job in foliot.jobs.each() if job.name.startswith("python ")]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="this path is curl's")
def test_a_new_user_gets_along_by_curl(folder: Path, url: str) -> None:
    key = (folder / ".foliot" / "admin.key").read_text().strip()

    def curl(path: str, body: dict[str, Any] | None = None, *flags: str) -> Any:
        data = () if body is None else ("-H", "Content-Type: application/json", "-d", json.dumps(body))
        asked = ("curl", "-sS", "--fail-with-body", "-H", f"Authorization: Bearer {key}", *flags, *data)
        done = subprocess.run(
            (*asked, f"{url}/api/v1{path}"), capture_output=True, text=True, check=False, timeout=30
        )
        assert done.returncode == 0, f"{path}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout) if done.stdout else None

    def items(path: str) -> Any:
        return curl(path)["items"]

    what = {"type": "http", "config": {"url": f"{url}/healthz", "method": "GET"}}
    soon = curl("/preview", {"words": "in 1 second"})["items"][0]["planned_for"]
    schedules = (
        {"kind": "cron", "expr": "* * * * * *", "seconds": True},
        {"kind": "interval", "every": "1s"},
        {"kind": "once", "at": soon},
        {"words": "every second"},
    )
    jobs = [
        curl("/jobs", {"name": f"curl {n}", "schedule": when, **what})["id"]
        for n, when in enumerate(schedules)
    ]
    for job in jobs:
        until(partial(items, f"/jobs/{job}/runs?status=succeeded"))
    assert curl(f"/jobs/{jobs[1]}/pause", {"reason": "lunch"})["status"] == "paused"
    assert curl(f"/jobs/{jobs[1]}/resume", {})["status"] == "active"
    run = curl(f"/jobs/{jobs[1]}/run", {"input": {"by": "hand"}})["id"]
    ended = until(lambda: (found := curl(f"/runs/{run}"))["finished_at"] and found)
    assert ended["status"] == "succeeded"
    assert "succeeded" in curl(f"/runs/{run}/explain")["sentence"]
    for job in jobs:
        curl(f"/jobs/{job}", None, "-X", "DELETE")
    assert curl("/jobs?q=curl")["items"] == []
