"""The small client of short commands: it sends what httpx2 sends, raises the same errors, and does without importing it."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from foliot.sdk import Client, NotFound, Unreachable
from foliot.sdk.connection import Connection
from tests.sdk.conftest import ScriptedServer
from tests.sdk.test_retries import BUSY, RUN

EMPTY: dict[str, object] = {"items": [], "next_cursor": None, "total": 0, "more": False}


def brief(url: str) -> Connection:
    return Connection(url, "key", is_local=True, is_brief=True)


@pytest.mark.parametrize("prefix", ["", "/behind/a/proxy"])
def test_both_clients_send_the_same_request(scripted_server: ScriptedServer, prefix: str) -> None:
    scripted_server.answers = [(200, {}, EMPTY)]
    for is_brief in (False, True):
        connection = Connection(scripted_server.url + prefix, "key", is_local=True, is_brief=is_brief)
        with Client(connection=connection, workspace="acme") as client:
            client.jobs.list(q="a b&c=d/é", tag=["x", "y z"], limit=7)
    whole, small = scripted_server.got
    assert (whole.method, whole.path.replace("%20", "+")) == (small.method, small.path.replace("%20", "+"))
    assert small.path.startswith(f"{prefix}/api/v1/jobs?")
    for name in ("Host", "Authorization", "User-Agent", "Foliot-Workspace", "Accept"):
        assert small.headers[name] == whole.headers[name]


def test_a_body_and_a_refusal_go_the_same_way(scripted_server: ScriptedServer) -> None:
    missing = {**BUSY, "status": 404, "detail": "No such job.", "code": "not_found"}
    scripted_server.answers = [(201, {}, RUN), (404, {"Content-Type": "application/problem+json"}, missing)]
    with Client(connection=brief(scripted_server.url)) as client:
        client.jobs.run(RUN["job_id"], input={"é": 1})
        with pytest.raises(NotFound, match="No such job"):
            client.jobs.list()
    assert scripted_server.got[0].body["input"] == {"é": 1}


def test_a_silent_server_and_none_at_all_are_reported_as_by_httpx2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        for connection in (brief(url), Connection(url, "key", is_local=True)):
            with (
                Client(connection=connection, timeout=0.05, retries=0) as client,
                pytest.raises(Unreachable, match="did not answer in time"),
            ):
                client.jobs.list()
    with (
        Client(connection=brief(url), retries=1) as client,
        pytest.raises(Unreachable, match="Connection refused"),
    ):
        client.jobs.list()


def test_a_short_command_does_not_load_httpx2(scripted_server: ScriptedServer) -> None:
    scripted_server.answers = [(200, {}, EMPTY)]
    code = (
        "import sys; from foliot.cli.session import Session; "
        f"session = Session({scripted_server.url!r}, None, None, None, None); session.client.jobs.list(); "
        "assert not {'httpx2', 'httpcore2', 'asyncio', 'foliot.wire.runs'} & sys.modules.keys()"
    )
    environ = {"FOLIOT_API_KEY": "key", "PATH": ""}
    subprocess.run((sys.executable, "-c", code), check=True, cwd=Path(sys.prefix), env=environ)
