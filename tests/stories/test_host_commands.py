"""Programs on a host: allowed there or not at all, their lines as they come, how they ended, and nothing of them left when they are
stopped. The processes are real, and so are those that they start.
"""

from __future__ import annotations

from typing import Any

import pytest

from foliot import Client
from foliot.wire.jobs import JobOut
from tests.stories.fleet import Fleet, HostProcess, wait_for
from tests.stories.server_process import wait_until
from tests.worker.processes import is_alive

pytestmark = pytest.mark.usefixtures("used_data_dir")

LONG = {"FOLIOT_WORKER_LEASE": "600"}  # a heartbeat every 200 s: what is heard sooner came another way
# Two processes below the program: one in its group, one that has gone off on its own.
FAMILY = """
echo $$ >> {pids}
sh -c 'echo $$ >> {pids}; sleep 1000' &
setsid sh -c 'echo $$ >> {pids}; sleep 1000' &
echo begun
wait
"""


def ready(fleet: Fleet, **environ: str) -> HostProcess:
    fleet.open(**environ)
    host = fleet.start("--name", "h1", "--allow-command")
    host.wait_for(r'"worker.registered"')
    return host


def command(client: Client, script: str, **fields: Any) -> JobOut:
    least = {"type": "command", "schedule": {"kind": "manual"}, "target": {"host": "h1"}, "retry": {"max": 0}}
    return client.jobs.create({"name": "c", "config": {"argv": ["sh", "-c", script]}, **least, **fields})


def texts(client: Client, run_id: Any) -> list[tuple[str, str]]:
    return [(line.stream, line.text) for line in client.runs.logs(run_id).items]


def family(fleet: Fleet) -> list[int]:
    pids = fleet.folder / "pids"
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 3, "three processes")
    return [int(word) for word in pids.read_text().split()]


def test_lines_of_a_command_are_there_while_it_runs_and_its_exit_code_or_signal_when_it_has_ended(
    fleet: Fleet,
) -> None:
    ready(fleet)
    gate = fleet.folder / "gate"
    with fleet.client() as client:
        script = f"echo out; echo err >&2; until [ -e {gate} ]; do sleep 0.05; done; echo more; exit 3"
        run = client.jobs.run(command(client, script).id)
        wait_until(lambda: len(texts(client, run.id)) == 2, "the lines of a command that still runs")
        assert sorted(texts(client, run.id)) == [("stderr", "err"), ("stdout", "out")]
        assert client.runs.get(run.id).status == "running"
        fleet.open_gate()
        ended = wait_for(client, run.id, "failed")
        assert (ended.error.code, ended.output["exit_code"], ended.output["signal"]) == ("exit_code", 3, None)
        assert ended.output["stdout_tail"] == "out\nmore\n"
        assert texts(client, run.id)[-1] == ("stdout", "more")
        assert (ended.host, ended.attempts[0].host) == ("h1", "h1")
        killed = client.jobs.run(command(client, "kill -9 $$", name="killed").id)
        ended = wait_for(client, killed.id, "failed")
        assert (ended.error.code, ended.output["signal"]) == ("killed_by_signal", "SIGKILL")
        done = client.jobs.run(command(client, "cat", name="fine", payload={"n": 1}).id)
        assert wait_for(client, done.id, "succeeded").output["stdout_tail"] == '{"n": 1}'


@pytest.mark.slow
def test_a_host_that_was_not_set_to_allow_commands_does_none_and_its_runs_say_why(fleet: Fleet) -> None:
    fleet.open()
    host = fleet.start("--name", "h1", FOLIOT_ALLOW_COMMANDS="yes")  # a setting for workers, not for hosts
    host.wait_for(r'"worker.registered"')
    with fleet.client() as client:
        run = client.jobs.run(command(client, f"touch {fleet.folder}/done").id)
        reported = client.runs.explain(run.id)
        assert "command" in reported.sentence
        assert any("--allow-command" in each for each in reported.what_next), reported
        [seen] = client.hosts.list().items
        assert "command" not in seen.types
        assert "http" in seen.types
        assert not (fleet.folder / "done").exists()
        host.stop()
        fleet.start("--name", "h1", "--allow-command")
        wait_for(client, run.id, "succeeded")
    assert (fleet.folder / "done").exists()


@pytest.mark.slow
def test_a_command_past_its_timeout_is_ended_with_all_it_has_started(fleet: Fleet) -> None:
    host = ready(fleet)
    with fleet.client() as client:
        script = FAMILY.format(pids=fleet.folder / "pids")
        run = client.jobs.run(command(client, script, timeout="3s").id)
        pids = family(fleet)
        wait_for(client, run.id, "timed_out")
        wait_until(lambda: not any(map(is_alive, pids)), "the end of the whole family")
        assert texts(client, run.id) == [("stdout", "begun")]
    assert host.process.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize("force", [False, True])
def test_a_cancel_reaches_the_host_at_once_and_ends_a_command_with_all_it_has_started(
    fleet: Fleet, *, force: bool
) -> None:
    ready(fleet, **LONG)
    with fleet.client() as client:
        run = client.jobs.run(command(client, FAMILY.format(pids=fleet.folder / "pids")).id)
        pids = family(fleet)
        client.runs.cancel(run.id, force=force)
        wait_until(lambda: not any(map(is_alive, pids)), "the end of the whole family", within=20)
        wait_for(client, run.id, "cancelled")
        again = client.jobs.run(command(client, "echo again", name="next").id)
        wait_for(client, again.id, "succeeded")


@pytest.mark.slow
def test_a_host_that_is_killed_takes_its_commands_along(fleet: Fleet) -> None:
    host = ready(fleet)
    with fleet.client() as client:
        job = command(client, FAMILY.format(pids=fleet.folder / "pids"), on_lost="fail")
        run = client.jobs.run(job.id)
        pids = family(fleet)
        host.process.kill()
        host.process.wait()
        wait_until(lambda: not any(map(is_alive, pids)), "the end of the whole family")
        assert wait_for(client, run.id, "interrupted").error.code == "worker_lost"
