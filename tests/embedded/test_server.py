"""Starting, talking to and stopping the private server."""

from __future__ import annotations

import os
import signal
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded import orphans
from foliot.embedded.config import OWNER, EmbeddedConfig
from foliot.embedded.files import LogFile
from foliot.embedded.server import EmbeddedServer, start

Run = Callable[..., EmbeddedServer]
Ask = Callable[..., Any]


def test_rows_outlive_a_stop_on_every_version(
    fresh: EmbeddedConfig, run: Run, ask: Ask, bindir: Path
) -> None:
    with run(fresh, data_dir=fresh.data_dir.with_name("by-version"), bindir=bindir) as server:
        ask(server, "CREATE TABLE kept AS SELECT 42 AS answer")
    with run(fresh, data_dir=server.data_dir, bindir=bindir) as server:
        assert ask(server, "SELECT answer FROM kept") == 42
        assert server.version.split(".")[0] == ask(server, "SHOW server_version").split(".")[0]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("listen_addresses", "127.0.0.1"),
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("data_checksums", "on"),
        ("autovacuum", "on"),
        ("server_encoding", "UTF8"),
        ("timezone", "UTC"),
        ("max_connections", "100"),
        ("password_encryption", "scram-sha-256"),
    ],
)
def test_the_server_is_set_up_to_keep_promises(
    shared: EmbeddedServer, ask: Ask, setting: str, value: str
) -> None:
    assert ask(shared, f"SHOW {setting}") == value


def test_text_sorts_by_code_point_whatever_the_machine_speaks(shared: EmbeddedServer, ask: Ask) -> None:
    assert ask(shared, "SELECT string_agg(c, '' ORDER BY c) FROM unnest('{b,A,a,B,é}'::text[]) c") == "ABabé"


def test_no_password_no_entry(shared: EmbeddedServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(shared.url(OWNER, "guess"))
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(host=str(shared.sockets), port=shared.port, user=OWNER, dbname="foliot")


def test_the_owner_is_superuser_of_a_database_named_foliot(shared: EmbeddedServer, ask: Ask) -> None:
    assert ask(shared, "SELECT current_user || '@' || current_database()") == "foliot_owner@foliot"
    assert ask(shared, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is True


def test_what_holds_the_password_is_for_us_alone(shared: EmbeddedServer) -> None:
    for name in ("postgres.json", "postgres.log", "postgres.lock"):
        found = (shared.data_dir / name).stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o600, os.geteuid()), name
    assert stat.S_IMODE((shared.data_dir / "postgres").stat().st_mode) == 0o700
    left = {path.name for path in (shared.data_dir / "postgres").glob("[!.]*")}
    assert left == {"data", "made-by-foliot"}  # and no password


def test_a_special_password_and_user_survive_the_address(shared: EmbeddedServer, ask: Ask) -> None:
    ask(shared, """CREATE ROLE "o'neil@home/1" LOGIN PASSWORD 'p@ss/w:rd?%'""")
    assert ask(shared.url("o'neil@home/1", "p@ss/w:rd?%"), "SELECT current_user") == "o'neil@home/1"


def test_a_data_directory_with_an_awkward_name_works(fresh: EmbeddedConfig, run: Run, ask: Ask) -> None:
    server = run(fresh, data_dir=fresh.data_dir / 'a, "b" é')
    assert ask(server, "SELECT 1") == 1


def test_stopping_twice_and_stopping_the_dead_are_fine(run: Run) -> None:
    server = run()
    server.stop()
    server.stop()
    assert not server.is_alive()
    assert server.wait() == 0
    assert orphans.running(server.cluster) == []


def test_stopping_does_not_wait_for_clients(run: Run) -> None:
    server = run()
    with psycopg.connect(server.owner_url) as idle:
        idle.execute("SELECT 1")
        server.stop()
        assert server.wait() == 0
        idle.close()


def test_a_server_that_ignores_us_is_killed(run: Run) -> None:
    server = run()
    child = next(pid for pid in orphans.running(server.cluster) if pid != server.pid)
    os.kill(child, signal.SIGSTOP)
    os.kill(server.pid, signal.SIGSTOP)
    server.stop(timeout=0.5)
    assert orphans.running(server.cluster) == []


def test_an_unexpected_end_is_reported_and_an_asked_one_is_not(run: Run) -> None:
    reported: list[int] = []
    heard = threading.Event()

    def tell(code: int) -> None:
        reported.append(code)
        heard.set()

    asked = run()
    asked.on_lost(tell)
    asked.stop()
    killed = run()
    killed.on_lost(tell)
    os.kill(killed.pid, signal.SIGKILL)
    assert heard.wait(20)
    assert reported == [-signal.SIGKILL]
    assert not killed.is_alive()
    assert killed.wait() == -signal.SIGKILL
    killed.stop()
    run()  # takes away the shared memory that the killed one left


def test_a_restart_can_keep_its_port(run: Run, ask: Ask) -> None:
    first = run()
    first.stop()
    second = run(port=first.port)
    assert second.port == first.port
    assert ask(second, "SELECT 1") == 1


def test_a_taken_port_is_left_to_its_owner(run: Run, ask: Ask) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        server = run(port=taken)
        assert server.port != taken
        assert ask(server, "SELECT 1") == 1


def test_short_memory_gives_a_smaller_server_that_says_so(run: Run, ask: Ask) -> None:
    server = run(shared_buffers="4TB")
    assert ask(server, "SHOW shared_buffers") == "16MB"
    assert any("memory is short" in note for note in server.notes)


def test_a_refused_setting_shows_what_the_server_said(config: EmbeddedConfig, run: Run) -> None:
    with pytest.raises(DatabaseUnavailable, match="unrecognized configuration parameter"):
        run(settings={"no_such_setting": "1"})
    assert run().is_alive()


def test_a_server_that_is_not_ready_in_time_is_taken_down(config: EmbeddedConfig, run: Run) -> None:
    with pytest.raises(DatabaseUnavailable, match="not ready within"):
        run(start_timeout=0.0)
    assert orphans.running(config.data_dir / "postgres" / "data") == []


def test_it_refuses_a_thread_it_would_die_with(config: EmbeddedConfig) -> None:
    said: list[BaseException] = []

    def attempt() -> None:
        try:
            start(config)
        except RuntimeError as error:
            said.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    assert "main thread" in str(said[0])


def test_the_log_is_cut_while_the_server_writes_on(shared: EmbeddedServer, ask: Ask) -> None:
    log = LogFile(shared.data_dir / "postgres.log")
    before = log.size()
    assert before > 0
    log.trim(largest=before - 1)
    assert log.size() == 0
    assert (shared.data_dir / "postgres.log.1").stat().st_size == before
    with pytest.raises(psycopg.Error):
        ask(shared, "SELECT nonsense")
    assert "nonsense" in log.since(0)
    assert b"\0" not in log.path.read_bytes()


def test_the_server_is_out_of_reach_of_the_terminals_ctrl_c(shared: EmbeddedServer) -> None:
    assert os.getsid(shared.pid) == shared.pid != os.getsid(0)
