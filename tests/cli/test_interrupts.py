"""Ctrl-C ends what waits and what follows: exit code 130, a word where one is due, and no traceback."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.cli.conftest import RunCommand
from tests.cli.test_commands import PATIENCE
from tests.fork_server import FOLIOT, environ_without_foliot
from tests.sdk.conftest import ApiServer

pytestmark = pytest.mark.timeout(PATIENCE)


@asynccontextmanager
async def started(api_server: ApiServer, *args: str) -> AsyncIterator[asyncio.subprocess.Process]:
    kept = environ_without_foliot()
    process = await asyncio.create_subprocess_exec(
        FOLIOT,
        *args,
        env=kept | {"FOLIOT_API_URL": api_server.url, "FOLIOT_API_KEY": api_server.key, "TZ": "UTC"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def interrupted(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    process.send_signal(signal.SIGINT)
    _, reported = await process.communicate()
    return process.returncode, reported.decode()


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    return (await process.stderr.readline()).decode()


async def test_following_events_ends_without_a_word(run_command: RunCommand, api_server: ApiServer) -> None:
    async with started(api_server, "events", "-f", "-o", "table") as process:
        assert await line(process) == "Following events. Press Ctrl-C to stop.\n"
        assert await interrupted(process) == (130, "")


async def test_who_stops_following_lines_reads_that_the_run_goes_on(
    run_command: RunCommand, api_server: ApiServer
) -> None:
    await run_command("jobs", "create", "hello", "--python", "work:hello", "--manual")
    await run_command("jobs", "run", "hello")
    async with started(api_server, "runs", "logs", "-f", "hello#1", "-o", "table") as process:
        assert (await line(process)).startswith("hello#1 is ready.")
        code, reported = await interrupted(process)
    assert code == 130
    assert 'foliot runs show "hello#1"' in reported
    assert "Traceback" not in reported


async def test_who_stops_waiting_for_a_run_leaves_it_alone(
    run_command: RunCommand, api_server: ApiServer
) -> None:
    await run_command("jobs", "create", "hello", "--python", "work:hello", "--manual")
    async with started(api_server, "jobs", "run", "hello", "--wait") as process:
        while not (runs := (await run_command("runs", "list")).json["items"]):
            assert process.returncode is None
        code, reported = await interrupted(process)
    assert code == 130
    assert "Traceback" not in reported
    assert (await run_command("runs", "show", runs[0]["id"])).json["status"] == "ready"
