"""A stranger starts Foliot, kills it, starts it again, and stops it: the real command, the real database."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from foliot.embedded import orphans
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start as start_postgres
from tests.stories.server_process import (
    START_WITHIN,
    STOP_WITHIN,
    get_json,
    wait_until_readiness_is,
    wait_until_warnings_are,
)


@pytest.mark.requirement("S2-43", "S4-1", "S4-AC-2")
def test_the_first_start_makes_a_key_and_is_ready(start_installed_server: Any, data_dir: Path) -> None:
    serving = start_installed_server()
    url = serving.wait_for_url()
    assert get_json(f"{url}/healthz") == (200, {"status": "alive"})
    status, ready = get_json(f"{url}/readyz")
    assert (status, ready["status"], ready["missing"]) == (200, "ready", [])
    wait_until_warnings_are(lambda warnings: not any("worker" in each for each in warnings), url)

    key_file = data_dir / "admin.key"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    (key,) = key_file.read_text().splitlines()
    assert serving.wait_for(r"admin key  kept in (\S+)")[1] == str(key_file)  # its output is no terminal
    assert key not in serving.output
    assert serving.stop() < STOP_WITHIN
    assert serving.process.returncode == 0


@pytest.mark.slow
def test_killed_with_9_it_starts_again_and_keeps_its_key(start_server: Any, data_dir: Path) -> None:
    first = start_server()
    first.wait_for_url()
    key = (data_dir / "admin.key").read_text()
    first.stop(signal.SIGKILL)

    second = start_server()
    assert get_json(f"{second.wait_for_url()}/readyz")[0] == 200
    assert (data_dir / "admin.key").read_text() == key
    assert "admin key" not in second.output
    second.stop()


@pytest.mark.usefixtures("used_data_dir")
def test_a_second_serve_on_one_directory_is_refused_by_name(start_server: Any, data_dir: Path) -> None:
    first = start_server()
    first.wait_for_url()
    second = start_server()
    assert second.process.wait(START_WITHIN) == 4
    said = second.wait_for(r"error\[conflict\]: (.*)")[1]
    assert str(data_dir) in said
    assert str(first.process.pid) in said
    assert "Traceback" not in second.output
    assert get_json(f"{first.wait_for_url()}/readyz")[0] == 200


@pytest.mark.requirement("S4-15")
@pytest.mark.usefixtures("used_data_dir")
@pytest.mark.parametrize("by", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_stops_it_in_time_with_connections_open(
    start_installed_server: Any, by: signal.Signals
) -> None:
    serving = start_installed_server()
    port = int(serving.wait_for_url().rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port)) as idle,
        socket.create_connection(("127.0.0.1", port)) as half,
    ):
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
        assert idle.recv(12) == b"HTTP/1.1 200"
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: he")
        assert serving.stop(by) < STOP_WITHIN
    assert serving.process.returncode == 0
    assert [event["event"] for event in serving.events()][-1] == "server.stopped"


@pytest.mark.slow
@pytest.mark.usefixtures("used_data_dir")
def test_it_stops_in_time_with_postgres_frozen_and_requests_open(start_server: Any, data_dir: Path) -> None:
    serving = start_server(FOLIOT_SHUTDOWN_GRACE="10", FOLIOT_WORKER_GRACE="7")
    port = int(serving.wait_for_url().rpartition(":")[2])
    cluster = data_dir / "postgres" / "data"
    with (
        socket.create_connection(("127.0.0.1", port)) as waiting,
        socket.create_connection(("127.0.0.1", port)) as half,
    ):
        for pid in orphans.running(cluster):
            os.kill(pid, signal.SIGSTOP)
        waiting.sendall(b"GET /readyz HTTP/1.1\r\nHost: here\r\n\r\n")
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: he")
        assert serving.stop() < STOP_WITHIN
    assert orphans.running(cluster) == []


@pytest.mark.slow
@pytest.mark.usefixtures("used_data_dir")
def test_a_second_signal_waits_for_nobody(start_server: Any) -> None:
    serving = start_server(FOLIOT_SHUTDOWN_GRACE="10")
    port = int(serving.wait_for_url().rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: he")
        serving.process.send_signal(signal.SIGTERM)
        serving.wait_for(r'"server.stopping".*"at_once": false')
        assert serving.stop() < 8
    assert serving.process.returncode in (0, 128 + signal.SIGTERM)


@pytest.mark.usefixtures("used_data_dir")
def test_a_postgres_that_dies_is_started_again_under_the_same_address(start_server: Any) -> None:
    serving = start_server()
    url = serving.wait_for_url()
    (started,) = (event for event in serving.events() if event["event"] == "postgres.started")
    os.kill(started["pid"], signal.SIGKILL)
    serving.wait_for(r'"event": "postgres.restarted"')
    wait_until_readiness_is(200, url)
    serving.stop()
    assert serving.process.returncode == 0


@pytest.mark.slow
@pytest.mark.usefixtures("used_data_dir")
def test_a_postgres_that_keeps_dying_ends_the_node_with_the_reason(start_server: Any) -> None:
    serving = start_server()
    serving.wait_for_url()
    killed = [serving.wait_for(r'"postgres.started".*"pid": (\d+)')[1]]
    for _ in range(3):
        os.kill(int(killed[-1]), signal.SIGKILL)
        killed.append(serving.wait_for(rf'"postgres.restarted", "pid": (?!(?:{"|".join(killed)}),)(\d+)')[1])
    os.kill(int(killed[-1]), signal.SIGKILL)
    assert serving.process.wait(START_WITHIN) == 6
    assert "died 4 times within 10 minutes" in serving.wait_for(r"error\[database_unavailable\]: .*")[0]
    assert "Traceback" not in serving.output


def test_a_taken_port_is_refused_before_anything_starts(start_server: Any, data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        serving = start_server(FOLIOT_PORT=str(taken.getsockname()[1]))
        assert serving.process.wait(START_WITHIN) == 4
    assert "is taken by another program" in serving.wait_for(r"error\[conflict\]: .*")[0]
    assert not (data_dir / "postgres").exists()


@pytest.mark.slow
def test_json_logs_are_asked_for_and_then_nothing_else_is_printed(start_server: Any, data_dir: Path) -> None:
    serving = start_server(FOLIOT_LOG_FORMAT="json")
    url = json.loads(serving.wait_for(r'.*"event": "server.started".*')[0])["url"]
    assert get_json(f"{url}/healthz")[0] == 200
    key = (data_dir / "admin.key").read_text().strip()
    serving.stop()
    assert all(line.startswith("{") for line in serving.lines if line)
    assert key not in serving.output


@pytest.mark.slow
def test_on_a_database_of_ones_own_readiness_follows_it_down_and_up(
    start_server: Any, tmp_path: Path
) -> None:
    theirs = EmbeddedConfig(tmp_path / "theirs")
    server = start_postgres(theirs)
    try:
        serving = start_server(FOLIOT_DATABASE_URL=server.owner_url)
        url = serving.wait_for_url()
        status, ready = get_json(f"{url}/readyz")
        assert status == 200
        assert any("separated once" in warning for warning in ready["warnings"])
        server.stop()
        assert wait_until_readiness_is(503, url)["missing"] == ["database"]
        server = start_postgres(replace(theirs, port=server.port))
        wait_until_readiness_is(200, url)
        assert urlsplit(server.owner_url).password not in serving.output
    finally:
        server.stop()


@pytest.mark.slow
def test_what_the_environment_says_of_other_servers_does_not_reach_ours(start_server: Any) -> None:
    serving = start_server(
        PGOPTIONS="-c default_transaction_read_only=on",
        PGTARGETSESSIONATTRS="standby",
        PGSSLMODE="verify-full",
        PGSERVICE="no-such-service",
        PGHOSTADDR="192.0.2.1",
        PGREQUIREAUTH="none",
        PGCHANNELBINDING="require",
        PGHOST="192.0.2.1",
        PGPASSWORD="other",
    )
    url = serving.wait_for_url()
    assert get_json(f"{url}/readyz")[0] == 200
    wait_until_warnings_are(lambda warnings: not any("worker" in each for each in warnings), url)
    assert "PGSERVICE" in serving.wait_for(r'"environment.ignored".*')[0]
    serving.stop()


def test_settings_that_make_no_sense_stop_the_start_with_all_reasons(start_server: Any) -> None:
    serving = start_server(FOLIOT_PORT="abc", FOLIOT_PROT="1")
    assert serving.process.wait(START_WITHIN) == 2
    serving.wait_for("FOLIOT_PORT from the environment is 'abc'")
    serving.wait_for("Did you mean FOLIOT_PORT?")


@pytest.mark.slow
@pytest.mark.usefixtures("used_data_dir")
def test_nothing_listens_after_it_has_stopped(start_server: Any) -> None:
    serving = start_server()
    url = serving.wait_for_url()
    serving.stop()
    with pytest.raises(URLError):
        urlopen(f"{url}/healthz", timeout=5)
