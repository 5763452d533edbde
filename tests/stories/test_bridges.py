"""One server, one Redis, and the workers of three engines: the examples of the bridges run as they stand."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from foliot import Client
from foliot.wire.runs import AttemptOut
from tests.bridges.engines import ROOT, RQ, free_port, valkey
from tests.fork_server import environ_without_foliot
from tests.stories.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.usefixtures("used_data_dir")

EXAMPLES = ROOT / "examples"
WORKERS = {
    "celery": ("celery", "-A", "bridge_celery", "worker", "--queues", "jobs-default", "--concurrency", "1"),
    "rq": ("rq.cli", "worker", "--url", "{url}", "jobs-default"),
    "bullmq": ("bridge_bullmq", "worker"),
}


@contextmanager
def running(folder: Path, command: tuple[str, ...], environ: dict[str, str]) -> Iterator[None]:
    with (folder / f"{command[0]}.log").open("wb") as said:
        process = subprocess.Popen(
            (sys.executable, "-m", *command), cwd=folder, env=environ, stdout=said, stderr=said
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


@pytest.mark.slow
def test_the_examples_of_the_bridges_run_against_real_workers(start_server: Any, data_dir: Path) -> None:
    folder = data_dir.parent
    for kind in WORKERS:
        shutil.copy(EXAMPLES / f"bridge_{kind}.py", folder)
    with ExitStack() as stack:
        url = stack.enter_context(valkey(folder / "valkey", free_port())).connection_url
        kept = environ_without_foliot()
        environ = kept | {"REDIS_URL": url, "PYTHONPATH": str(folder)}
        for command in WORKERS.values():
            said = tuple(part.format(url=url) for part in command)
            stack.enter_context(running(folder, said, environ))
        serving = start_server(
            FOLIOT_BRIDGE_REDIS_URL=url, FOLIOT_CELERY_BROKER_URL=url, FOLIOT_CELERY_RESULT_URL=url
        )
        environ |= {"FOLIOT_API_URL": serving.wait_for_url(), "FOLIOT_DATA_DIR": str(data_dir)}
        for kind in WORKERS:
            done = subprocess.run(
                (sys.executable, f"bridge_{kind}.py"),
                cwd=folder,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            assert done.returncode == 0, done.stderr
            assert "attempt 1, foliot-" in done.stdout
            assert "succeeded {" in done.stdout
            assert "'charged': 4" in done.stdout
        serving.stop()
        assert url not in serving.output


@pytest.mark.slow
def test_a_run_whose_worker_is_killed_while_it_waits_is_done_once_by_the_engine(
    start_server: Any, data_dir: Path
) -> None:
    folder, gate = data_dir.parent, data_dir.parent / "gate"
    with valkey(folder / "valkey", free_port()) as server, RQ.worker(server.connection_url, folder / "log"):
        serving = start_server(
            FOLIOT_BRIDGE_REDIS_URL=server.connection_url, FOLIOT_LOG_FORMAT="json", FOLIOT_WORKER_LEASE="3"
        )
        url = serving.wait_for(r'"server.started".*"url": "([^"]+)"')[1]
        with Client(url, (data_dir / "admin.key").read_text().strip()) as client:
            job = client.jobs.create(
                name="chore",
                type="rq",
                schedule={"kind": "manual"},
                config=dict(RQ.config),
                payload={"sink": str(folder / "sink"), "gate": str(gate), "value": 1},
            )
            run = client.jobs.run(job.id)
            wait_until((folder / "sink").exists, "the engine to begin")
            wait_until(lambda: _attempts(client, run.id)[0].external_id, "the engine's id")
            os.kill(_worker_pid(serving), signal.SIGKILL)
            wait_until(lambda: len(_attempts(client, run.id)) == 2, "the second attempt")
            gate.touch()
            wait_until(lambda: client.runs.get(run.id).finished_at, "the end")
            done = client.runs.get(run.id)
    assert (done.status, done.output) == ("succeeded", {"value": 1})
    assert [each.status for each in done.attempts or ()] == ["lost", "succeeded"]
    assert {each.external_id for each in done.attempts or ()} == {f"foliot-{run.id}-1"}
    assert (folder / "sink").read_text() == "begun\n"


def _attempts(client: Client, run_id: Any) -> list[AttemptOut]:
    return client.runs.get(run_id).attempts or []


def _worker_pid(serving: ServerProcess) -> int:
    serving.wait_for(r'"worker.started"')
    return next(int(each["pid"]) for each in serving.events() if each.get("event") == "worker.started")
