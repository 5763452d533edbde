"""An app in a folder, a server that loads it, and a worker that dies in the middle of a decorated function."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from foliot import Client
from foliot.sdk import Invalid
from tests.fork_server import environ_without_foliot, run_foliot
from tests.stories.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.usefixtures("used_data_dir")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "app.py"
SLOW = """
from pathlib import Path
from foliot import Context, Foliot
from foliot.clock import pause

app = Foliot("slow")

@app.job(timeout="1m")
def work(ctx: Context, gate: str) -> dict[str, int]:
    Path(f"{gate}.{ctx.attempt}").touch()
    while not Path(gate).exists():
        pause(0.01)
    return {"attempt": ctx.attempt, "fence": ctx.fence}
"""


def worker_pid(serving: ServerProcess, past: int = 0) -> int:
    serving.wait_for(r'"worker.started"')
    pids = [event["pid"] for event in serving.events() if event.get("event") == "worker.started"]
    return int(pids[past]) if len(pids) > past else 0


def test_the_example_of_an_app_runs_and_a_second_start_changes_nothing(
    start_server: Any, data_dir: Path
) -> None:
    shutil.copy(EXAMPLE, data_dir.parent)
    reported = {"FOLIOT_APP": "app:app", "FOLIOT_LOG_FORMAT": "json"}
    serving = start_server(**reported)
    url = serving.wait_for(r'"server.started".*"url": "([^"]+)"')[1]
    serving.wait_for(r'"app.synced".*"made": \["charge", "heartbeat", "remind", "refund"\]')
    kept = environ_without_foliot()
    done = subprocess.run(
        (sys.executable, "app.py"),
        cwd=data_dir.parent,
        env=kept | {"FOLIOT_API_URL": url, "FOLIOT_DATA_DIR": str(data_dir)},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("on a worker: succeeded") == 2, done.stdout
    assert "charged 4 invoices in EUR" in done.stdout
    serving.stop()
    again = start_server(**reported)
    again.wait_for(r'"app.synced".*"made": \[\], "changed": \[\], "same": 4')


@pytest.mark.slow
@pytest.mark.requirement("S1-FR-002")
def test_the_example_of_job_types_runs_and_its_configurations_are_checked(
    start_server: Any, data_dir: Path
) -> None:
    shutil.copy(EXAMPLE.with_name("job_types.py"), data_dir.parent)
    serving = start_server(FOLIOT_APP="job_types:app", FOLIOT_LOG_FORMAT="json")
    url = serving.wait_for(r'"server.started".*"url": "([^"]+)"')[1]
    serving.wait_for(r'"worker.registered"')
    kept = environ_without_foliot()
    env = kept | {"FOLIOT_API_URL": url, "FOLIOT_DATA_DIR": str(data_dir)}

    def ran(*command: str) -> str:
        done = subprocess.run(
            command, cwd=data_dir.parent, env=env, capture_output=True, text=True, check=False, timeout=90
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = ran(sys.executable, "job_types.py")
    assert said.splitlines() == [
        "DATA_SYNC: succeeded, {'from': 'crm', 'copied': 2}",
        "AI_GENERATION: succeeded, hello hello hello",
        "REPORT_GENERATION: succeeded, sales",
        "ALERT_CHECK: succeeded, {'alert': True}",
        "OUTCOME_CALCULATION: succeeded, 3",
        "CUSTOM: succeeded, {'x': 1, 'y': 2}",
    ]
    foliot = str(Path(sys.executable).with_name("foliot"))
    assert "sales.csv" in ran(foliot, "runs", "artifacts", "list", "report_generation#1")
    assert (
        ran(foliot, "runs", "artifacts", "get", "report_generation#1", "sales.csv", "--to", "-")
        == "day,sales\nmon,12\n"
    )
    with Client(url, (data_dir / "admin.key").read_text().strip()) as client:
        types = {each.name: each for each in client.job_types().items}
        assert types["DATA_SYNC"].config_schema is not None
        assert (types["DATA_SYNC"].active, types["DATA_SYNC"].known_to) == (True, ["workers"])
        wanted = {"name": "wrong", "type": "DATA_SYNC", "schedule": {"kind": "manual"}}
        with pytest.raises(Invalid) as refused:
            client.jobs.create({**wanted, "config": {"source": 1, "tables": ["a", 2]}})
        assert [each.pointer for each in refused.value.errors] == ["/config/source", "/config/tables/1"]
        assert client.jobs.create({**wanted, "config": {"source": "crm"}}).warnings == []
        serving.stop()


@pytest.mark.slow
def test_a_decorated_function_whose_worker_is_killed_runs_again_under_the_same_run(
    start_server: Any, data_dir: Path
) -> None:
    (data_dir.parent / "slow.py").write_text(SLOW)
    serving = start_server(FOLIOT_APP="slow:app", FOLIOT_LOG_FORMAT="json", FOLIOT_WORKER_LEASE="3")
    url = serving.wait_for(r'"server.started".*"url": "([^"]+)"')[1]
    serving.wait_for(r'"worker.registered"')
    gate = data_dir.parent / "gate"
    with Client(url, (data_dir / "admin.key").read_text().strip()) as client:
        [job] = client.jobs.each()
        run = client.jobs.run(job.id, input={"gate": str(gate)})
        wait_until(Path(f"{gate}.1").exists, "the first attempt")
        os.kill(worker_pid(serving), signal.SIGKILL)
        wait_until(Path(f"{gate}.2").exists, "the second attempt")
        gate.touch()
        wait_until(lambda: client.runs.get(run.id).status == "succeeded", "the run's end")
        done = client.runs.get(run.id)
        assert done.output == {"attempt": 2, "fence": 2}
        assert [each.status for each in done.attempts or ()] == ["lost", "succeeded"]
        assert client.jobs.get(job.id).revision == 1


def test_a_server_does_not_start_with_an_app_that_does_not_exist(start_server: Any) -> None:
    serving = start_server(FOLIOT_APP="nowhere:app", FOLIOT_LOG_FORMAT="json")
    serving.wait_for(r"nowhere:app cannot be loaded: there is no module named nowhere\.")
    assert serving.process.wait(60) != 0


@pytest.mark.slow
def test_an_app_that_cannot_be_loaded_is_reported_by_name(start_server: Any, data_dir: Path) -> None:
    (data_dir.parent / "broken.py").write_text("import nowhere\n")
    serving = start_server(FOLIOT_APP="broken:app", FOLIOT_LOG_FORMAT="json")
    serving.wait_for(r'"worker.failed".*broken:app cannot be loaded: ModuleNotFoundError')
    serving.wait_for(r'"worker.died", "exit_code": 1,')  # it left by itself; an abort would be -6


def test_a_worker_of_its_own_needs_a_database_that_others_can_reach(tmp_path: Path) -> None:
    done = run_foliot("worker", "app:app", cwd=tmp_path)
    assert done.returncode == 2
    assert "FOLIOT_DATABASE_URL" in done.stderr
    assert "foliot serve --app" in done.stderr
