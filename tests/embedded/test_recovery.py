"""Killed in every way, the database comes back with every committed row and leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from foliot.domain.errors import Conflict
from foliot.embedded import orphans
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import EmbeddedServer
from tests.embedded.conftest import notes_of

Run = Callable[..., EmbeddedServer]
Ask = Callable[..., Any]
Until = Callable[..., None]
Spawn = Callable[..., subprocess.Popen[str]]

FOLIOT = """
import json, sys
from pathlib import Path
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start
server = start(EmbeddedConfig(Path(sys.argv[1]), state_home=Path(sys.argv[2])))
print(json.dumps({"pid": server.pid, "url": server.owner_url}), flush=True)
sys.stdin.read()
"""


def test_committed_rows_outlive_a_killed_postmaster(run: Run, ask: Ask) -> None:
    server = run()
    ask(server, "CREATE TABLE kept (n int PRIMARY KEY)")
    for generation in range(3):
        acknowledged = 0
        with suppress(psycopg.OperationalError), psycopg.connect(server.owner_url, autocommit=True) as writer:
            for number in range(100_000):
                writer.execute("INSERT INTO kept VALUES (%s)", (generation * 1_000_000 + number,))
                acknowledged = number + 1
                if acknowledged == 150:
                    os.kill(server.pid, signal.SIGKILL)
        assert acknowledged >= 150
        server.stop()
        server = run()
        assert ask(server, f"SELECT count(*) FROM kept WHERE n / 1000000 = {generation}") in (
            acknowledged,
            acknowledged + 1,
        )  # the last one's answer may be lost


def test_a_killed_foliot_takes_its_server_along(
    config: EmbeddedConfig, spawn: Spawn, run: Run, ask: Ask, until: Until
) -> None:
    foliot, reported = started(spawn, config)
    ask(reported["url"], "CREATE TABLE kept AS SELECT 42 AS answer")
    foliot.kill()
    until(lambda: not orphans.running(cluster(config)))
    server = run()
    assert ask(server, "SELECT answer FROM kept") == 42
    assert notes_of(server) == ()


def test_a_new_foliot_need_not_wait_for_the_killed_ones_server(
    config: EmbeddedConfig, spawn: Spawn, run: Run, ask: Ask
) -> None:
    foliot, reported = started(spawn, config)
    ask(reported["url"], "CREATE TABLE kept AS SELECT 42 AS answer")
    foliot.kill()
    foliot.wait()
    assert ask(run(), "SELECT answer FROM kept") == 42


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "frozen"])
def test_an_orphan_on_the_directory_is_stopped_first(
    config: EmbeddedConfig, run: Run, ask: Ask, bare_server: Callable[..., int], stopped: bool
) -> None:
    orphan = bare_server()
    if stopped:
        os.kill(orphan, signal.SIGSTOP)
    server = run()
    assert server.pid != orphan
    assert orphans.running(server.cluster) != []
    assert orphan not in orphans.running(server.cluster)
    assert notes_of(server) == (f"Stopped a PostgreSQL (pid {orphan}) that an earlier Foliot left running.",)
    assert ask(server, "SELECT 1") == 1


def test_backends_of_a_dead_postmaster_are_ended(
    config: EmbeddedConfig, run: Run, ask: Ask, until: Until
) -> None:
    server = run()
    # A frozen backend cannot notice that its postmaster died, and keeps the shared memory.
    with psycopg.connect(server.owner_url) as client:
        backend = client.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: not server.is_alive())
        server._lock.release()  # as if its Foliot had died too
        again = run()
        assert backend not in orphans.running(again.cluster)
        assert ask(again, "SELECT 1") == 1
        client.close()


def test_a_stale_pid_file_that_names_a_stranger_is_no_obstacle(
    config: EmbeddedConfig, run: Run, ask: Ask, spawn: Spawn
) -> None:
    stranger = spawn("import sys; print('up', flush=True); sys.stdin.read()")
    assert stranger.stdout is not None
    stranger.stdout.readline()
    (cluster(config) / "postmaster.pid").write_text(f"{stranger.pid}\n{cluster(config)}\n1\n5432\n\n\n\n")
    assert ask(run(), "SELECT 1") == 1
    assert stranger.poll() is None


def test_a_first_start_killed_halfway_is_begun_again(
    fresh: EmbeddedConfig, spawn: Spawn, run: Run, ask: Ask, until: Until
) -> None:
    data_dir = fresh.data_dir.with_name("killed-early")
    foliot = spawn(FOLIOT, data_dir, fresh.state_home)
    until((data_dir / "postgres" / "data.new" / "PG_VERSION").exists)
    foliot.kill()
    foliot.wait()
    assert not (data_dir / "postgres" / "data").exists()
    server = run(fresh, data_dir=data_dir)
    assert ask(server, "SELECT 1") == 1
    assert not (data_dir / "postgres" / "data.new").exists()


def test_a_second_start_leaves_the_first_ones_server_alone(
    config: EmbeddedConfig, spawn: Spawn, run: Run, ask: Ask
) -> None:
    foliot, reported = started(spawn, config)
    with pytest.raises(Conflict, match=rf"{config.data_dir}.*pid {foliot.pid}"):
        run()
    assert ask(reported["url"], "SELECT 1") == 1


def test_one_killed_backend_costs_only_its_sessions(run: Run, ask: Ask, until: Until) -> None:
    server = run()
    ask(server, "CREATE TABLE kept AS SELECT 42 AS answer")
    with psycopg.connect(server.owner_url) as client:
        os.kill(client.info.backend_pid, signal.SIGKILL)

        def answers() -> bool:
            try:
                return bool(ask(server, "SELECT answer FROM kept") == 42)
            except psycopg.OperationalError:
                return False

        until(answers)
        client.close()
    assert server.is_alive()


@pytest.fixture
def bare_server(config: EmbeddedConfig, spawn: Spawn, until: Until) -> Callable[..., int]:
    """A server whose Foliot died without the kernel telling it, as where parent-death signals do not work."""

    def bare_server() -> int:
        untied = FOLIOT.replace(
            "server = start",
            "from foliot.embedded import privilege\nprivilege.PR_SET_PDEATHSIG = 0\nserver = start",
        )
        foliot, reported = started(spawn, config, untied)
        foliot.kill()
        foliot.wait()
        assert reported["pid"] in orphans.running(cluster(config))
        return int(reported["pid"])

    return bare_server


def started(
    spawn: Spawn, config: EmbeddedConfig, code: str = FOLIOT
) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    foliot = spawn(code, config.data_dir, config.state_home)
    assert foliot.stdout is not None
    reported: dict[str, Any] = json.loads(foliot.stdout.readline())
    return foliot, reported


def cluster(config: EmbeddedConfig) -> Path:
    return config.data_dir / "postgres" / "data"
