"""Jobs that go wrong in every way a process can: each ends with the right record, and the worker lives on for the others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from foliot import Client
from foliot.wire.runs import RunOut
from tests.stories.installation import Installation, start_node
from tests.stories.server_process import STOP_WITHIN, wait_until
from tests.worker.processes import is_alive

GIGABYTES = "import sys; print(len(bytearray(64 << 30)))"


def test_whatever_a_job_does_its_end_is_recorded_and_the_others_go_on(
    start_server: Any, installation: Installation
) -> None:
    bounds = {"FOLIOT_ALLOW_COMMANDS": "yes", "FOLIOT_CHILD_MEMORY": "1024", "FOLIOT_CHILD_PROCESSES": "200"}
    serving = start_node(start_server, installation, **bounds)
    key = (installation.folder / "data" / "admin.key").read_text().strip()
    pids, crowd = installation.folder / "pids", installation.folder / "crowd"
    with Client(serving.wait_for_url(), key) as client:
        installation.open_gate()
        installation.create("quickly", count=20)

        def started(kind: str, config: dict[str, Any], timeout: str = "1m") -> RunOut:
            wanted = {"name": str(config), "type": kind, "config": config, "timeout": timeout}
            once = {
                "schedule": {"kind": "manual"},
                "retry": {"max": 0},
                "payload": {**installation.payload, "pids": str(pids)},
            }
            return client.jobs.run(client.jobs.create(wanted | once).id)

        def python(call: str, timeout: str = "1m") -> RunOut:
            return started("python", {"call": f"job_functions:{call}"}, timeout)

        def command(*argv: str, timeout: str = "1m") -> RunOut:
            return started("command", {"argv": list(argv)}, timeout)

        began = {
            "a hand killed with -9": python("killed"),
            "a hand out of memory": python("hungry"),
            "a fork bomb in a hand": python("bomb", "3s"),
            "a flood of log lines": python("flood", "3s"),
            "a command killed with -9": command("sh", "-c", "kill -9 $$"),
            "a command out of memory": command("python3", "-c", GIGABYTES),
            "a crowd of processes": command(
                "sh", "-c", f"for n in $(seq 250); do sleep 60 & echo $! >> {crowd}; done; wait"
            ),
            "a flood on stdout": command("yes", timeout="3s"),
            "a command that will not go": command(
                "sh", "-c", "trap '' TERM; while :; do sleep 1; done", timeout="1s"
            ),
        }
        for name, run in began.items():
            wait_until(partial(_is_over, client, run), f"the end of {name}")
        ended = {name: client.runs.get(run.id) for name, run in began.items()}
        assert {name: (run.status, run.error and run.error.code) for name, run in ended.items()} == {
            "a hand killed with -9": ("failed", "process_died"),
            "a hand out of memory": ("failed", "MemoryError"),
            "a fork bomb in a hand": ("timed_out", "timed_out"),
            "a flood of log lines": ("timed_out", "timed_out"),
            "a command killed with -9": ("failed", "killed_by_signal"),
            "a command out of memory": ("failed", "exit_code"),
            "a crowd of processes": ("failed", "too_many_processes"),
            "a flood on stdout": ("timed_out", "timed_out"),
            "a command that will not go": ("timed_out", "timed_out"),
        }
        for name in ("a flood of log lines", "a flood on stdout"):
            assert client.runs.logs(ended[name].id, limit=1).truncated, name
        assert "SIGKILL" in str(ended["a hand killed with -9"].error)
        assert "MemoryError" in ended["a command out of memory"].output["stderr_tail"]
    wait_until(
        lambda: not any(map(is_alive, _written(pids) + _written(crowd))), "the end of all they started"
    )
    assert len(_written(pids)) > 60
    installation.wait_for_successes(20)
    assert '"worker.died"' not in serving.output
    assert serving.stop() < STOP_WITHIN
    assert installation.rows("SELECT count(*) FROM foliot.leases") == [(0,)]


@pytest.mark.slow
def test_a_signal_under_load_ends_commands_with_their_families_and_hands_them_back(
    start_server: Any, installation: Installation
) -> None:
    first = start_node(start_server, installation, FOLIOT_WORKER_GRACE="1", FOLIOT_ALLOW_COMMANDS="yes")
    key, pids = (installation.folder / "data" / "admin.key").read_text().strip(), installation.folder / "pids"
    script = (
        f"echo began $FOLIOT_RUN_ID $FOLIOT_ATTEMPT $FOLIOT_FENCE >> {installation.payload['sink']}; "
        f"setsid sleep 60 & echo $! >> {pids}; until test -e {installation.payload['gate']}; do sleep 0.05; done; "
        f"echo ended $FOLIOT_RUN_ID $FOLIOT_ATTEMPT $FOLIOT_FENCE >> {installation.payload['sink']}"
    )
    with Client(first.wait_for_url(), key) as client:
        config = {"argv": ["sh", "-c", script]}
        job = {"type": "command", "config": config, "schedule": {"kind": "manual"}}
        for number in range(12):
            client.jobs.run(client.jobs.create({"name": f"c{number}", **job}).id)
        wait_until(lambda: len(installation.executions("began")) == 10, "all permits in use")
    assert first.stop() < STOP_WITHIN
    assert not any(map(is_alive, _written(pids)))
    assert installation.rows("SELECT retries, losses, count(*) FROM foliot.ready GROUP BY 1, 2") == [
        (0, 0, 12)
    ]
    installation.open_gate()
    start_node(start_server, installation, FOLIOT_ALLOW_COMMANDS="yes")
    installation.wait_for_successes(12)
    assert sorted(fence for _, _, fence in installation.executions("ended")) == [1, 1, *[2] * 10]


def _is_over(client: Client, run: RunOut) -> bool:
    return client.runs.get(run.id).finished_at is not None


def _written(pids: Path) -> list[int]:
    return [int(pid) for pid in pids.read_text().split()] if pids.exists() else []
