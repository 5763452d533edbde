"""The API on a real database and a real socket, and the command line in front of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from foliot.clock import SystemClock
from foliot.testing.clock import ManualClock
from tests.cli.test_commands import PATIENCE
from tests.fork_server import environ_without_foliot, run_foliot
from tests.sdk.conftest import ApiServer
from tests.sdk.conftest import api_server as api_server  # noqa: PLC0414  # a fixture, handed on


@dataclass(frozen=True)
class CommandResult:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


RunCommand = Callable[..., Awaitable[CommandResult]]


@pytest.fixture
def clock() -> ManualClock:
    """The server's: the command line reads the real one, and both should mean the same day."""
    return ManualClock(SystemClock().now())


@pytest.fixture
async def run_command(api_server: ApiServer, tmp_path: Path) -> RunCommand:
    """`await ask("jobs", "list")`: the real command against the served API; prints JSON unless -o says otherwise."""

    async def asked(*args: str, **environ: str) -> CommandResult:
        known = {
            "FOLIOT_API_URL": api_server.url,
            "FOLIOT_API_KEY": api_server.key,
            "FOLIOT_OUTPUT": "json",
            "TZ": "UTC",
        }
        env = environ_without_foliot() | known | environ
        done = await asyncio.to_thread(run_foliot, *args, cwd=tmp_path, env=env, timeout=PATIENCE)
        return CommandResult(done.returncode, done.stdout, done.stderr)

    return asked
