"""The examples of the client, against `foliot serve` with no address or key given but the data directory's."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fork_server import environ_without_foliot
from tests.stories.server_process import ServerProcess
from tests.temporary import temporary_folder

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True)
class ExampleServer:
    """One server for all examples: they do not meet."""

    url: str
    data_dir: Path

    def run(self, name: str, folder: Path, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run the example, which finds the key in the data directory."""
        environ = {"FOLIOT_API_URL": self.url, "FOLIOT_DATA_DIR": str(self.data_dir)}
        return subprocess.run(
            (sys.executable, EXAMPLES / name),
            env=environ_without_foliot() | environ,
            cwd=folder,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )


@pytest.fixture(scope="module")
def example_server() -> Iterator[ExampleServer]:
    with temporary_folder() as folder:
        serving = ServerProcess(folder / "data")
        try:
            yield ExampleServer(serving.wait_for_url(), folder / "data")
        finally:
            serving.end()


def test_the_example_of_the_client_makes_a_job_and_sees_its_three_runs(
    example_server: ExampleServer, tmp_path: Path
) -> None:
    done = example_server.run("client.py", tmp_path)
    assert done.returncode == 0, done.stderr
    reported, *runs = done.stdout.splitlines()
    assert reported.startswith("Every 2 seconds; next at 2")
    ends = Counter(line.rpartition(": ")[2] for line in runs)
    # A planned time that came while the worker was still starting is on record as skipped: it overlapped.
    assert ends.pop("succeeded") == 3, done.stdout
    assert set(ends) <= {"skipped"}


def test_the_example_of_rooms_asks_twice_and_is_answered(
    example_server: ExampleServer, tmp_path: Path
) -> None:
    done = example_server.run("rooms.py", tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert sum("What is on today?" in line for line in said) == 2
    assert sum(line.endswith(": Three tickets and the release.") for line in said) == 2
    assert [line.partition(" left message ")[1] for line in said[-2:]] == [" left message "] * 2


def test_the_example_of_a_webhook_receives_both_messages_and_finds_them_genuine(
    example_server: ExampleServer, tmp_path: Path
) -> None:
    done = example_server.run("webhook_receiver.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "received: What is on today?",
        "received: Three tickets and the release.",
        "both were genuine",
    ]


@pytest.mark.requirement("S3-22")
def test_the_example_of_usage_pauses_its_job_at_the_budget(
    example_server: ExampleServer, tmp_path: Path
) -> None:
    done = example_server.run("usage.py", tmp_path)
    assert done.returncode == 0, done.stderr
    used, month, status = done.stdout.splitlines()
    assert "120000" in used
    assert "1.2" in month
    assert status.startswith("the job is paused until ")
    assert status.endswith("Its budget is used up: 1.2 of 1 usd used this month (UTC).")


def test_the_example_of_secrets_uses_one_and_shows_it_nowhere(
    example_server: ExampleServer, tmp_path: Path
) -> None:
    done = example_server.run("a_secret.py", tmp_path, "Bearer kanari-8c1e0f\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "example-key is at version 1",
        "its config says {'authorization': {'secret': 'example-key'}}",
        "the run succeeded with 401",
    ]
    assert "kanari" not in done.stdout + done.stderr


def test_the_example_of_a_remote_worker_does_its_two_runs_over_http(
    example_server: ExampleServer, tmp_path: Path
) -> None:
    done = example_server.run("remote_worker.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "greet Ada: succeeded, {'said': 'Hello, Ada!'}" in done.stdout


def test_the_example_of_notifications_hears_of_a_failure_and_of_its_end(
    example_server: ExampleServer, tmp_path: Path
) -> None:
    done = example_server.run("notifications.py", tmp_path)
    assert done.returncode == 0, done.stderr
    failure, recovery = done.stdout.splitlines()
    assert failure == "open: [default] check the shop failed: The target answered 404 Not Found."
    assert recovery.startswith("closed: [default] check the shop recovered")


def test_the_example_of_imports_names_the_line_it_rejects_and_switches_the_others_over(
    example_server: ExampleServer, tmp_path: Path
) -> None:
    done = example_server.run("import_crontab.py", tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["imported", "imported", "rejected"]
    assert lines[3].endswith("['unchanged', 'unchanged', 'rejected']")
    assert lines[4].startswith("Every day at 02:30, Europe/Madrid; shadow mode: True; next: ")
    assert lines[-1] == "switched over: 2"


def test_the_example_of_mcp_sets_a_reminder_and_reads_it(
    example_server: ExampleServer, tmp_path: Path
) -> None:
    pytest.importorskip("mcp")
    done = example_server.run("mcp_client.py", tmp_path)
    assert done.returncode == 0, done.stderr
    meaning, made, came, reason = done.stdout.splitlines()
    assert meaning.startswith("Every weekday at 09:00, Europe/Madrid. First: ")
    assert "next run" in made
    assert came == "it came: Water the plants."
    assert "succeeded" in reason
