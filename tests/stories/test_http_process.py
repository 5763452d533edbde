"""HTTP as a process of its own: it may die, hang or be one of several; the engine goes on and nobody is left behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from foliot import Client
from tests.stories.installation import EVERY_SECOND, Installation, start_node
from tests.stories.server_process import ServerProcess, get_json, wait_until, wait_until_readiness_is


def http_pids(serving: ServerProcess) -> list[int]:
    return [event["pid"] for event in serving.events() if event["event"] == "api.started"]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_killed_http_process_comes_back_and_the_engine_does_not_notice(
    start_server: Any, installation: Installation
) -> None:
    serving = start_node(start_server, installation, FOLIOT_LOG_FORMAT="json")
    url = serving.wait_for(r'"server.started", "url": "([^"]+)"')[1]
    installation.create("quickly", EVERY_SECOND)
    installation.wait_for_successes(1)
    [pid] = http_pids(serving)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(http_pids(serving)) == 2, "the next HTTP process")
    wait_until_readiness_is(200, url)
    installation.wait_for_successes(3)
    installation.check_every_second_has_its_record()
    assert serving.stop() < 15
    assert not any(map(is_alive, http_pids(serving)))


@pytest.mark.slow
def test_runs_start_while_the_http_process_is_frozen(start_server: Any, installation: Installation) -> None:
    serving = start_node(start_server, installation, FOLIOT_LOG_FORMAT="json")
    [pid] = http_pids(serving)
    os.kill(pid, signal.SIGSTOP)
    try:
        installation.create("quickly", EVERY_SECOND)
        installation.wait_for_successes(2)
        assert serving.stop() < 15  # it is killed when its time is up
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGCONT)
    assert not is_alive(pid)


@pytest.mark.slow
def test_a_killed_node_leaves_no_http_process_behind(start_server: Any, installation: Installation) -> None:
    serving = start_node(start_server, installation, FOLIOT_LOG_FORMAT="json", FOLIOT_API_PROCESSES="2")
    wait_until(lambda: len(http_pids(serving)) == 2, "two HTTP processes")
    port = serving.wait_for(r'"url": "http://127\.0\.0\.1:(\d+)"')[1]
    pids = http_pids(serving)
    os.kill(serving.process.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_alive, pids)), "the end of the HTTP processes")
    again = start_node(start_server, installation, FOLIOT_PORT=port)
    assert get_json(f"{again.wait_for_url()}/healthz") == (200, {"status": "alive"})


@pytest.mark.slow
def test_two_http_processes_serve_one_address_and_both_forget_a_revoked_key(
    start_server: Any, installation: Installation, data_dir: Path
) -> None:
    serving = start_node(start_server, installation, FOLIOT_API_PROCESSES="2")
    url, key = serving.wait_for_url(), (data_dir / "admin.key").read_text().strip()
    with Client(url, key) as client:
        made = client.keys.create("for a while")
    clients = [
        Client(url, made.secret) for _ in range(8)
    ]  # the kernel gives their connections to either process
    for each in clients:
        assert list(each.jobs.each()) == []
    with Client(url, key) as client:
        client.keys.revoke(made.id)

    def is_refused(each: Client) -> bool:
        try:
            each.jobs.list()
        except Exception as error:  # noqa: BLE001
            return "not valid" in str(error)
        return False

    wait_until(lambda: all(map(is_refused, clients)), "the refusal by both processes")
    for each in clients:
        each.close()
