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
from tests.sdk.conftest import Served
from tests.sdk.conftest import served as served  # noqa: PLC0414  # a fixture, handed on


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Ask = Callable[..., Awaitable[Said]]


@pytest.fixture
def clock() -> ManualClock:
    """The server's: the command line reads the real one, and both should mean the same day."""
    return ManualClock(SystemClock().now())


@pytest.fixture
async def ask(served: Served, tmp_path: Path) -> Ask:
    """`await ask("jobs", "list")`: the real command against the served API; without a terminal it prints JSON."""

    async def asked(*args: str, **environ: str) -> Said:
        known = {"FOLIOT_API_URL": served.url, "FOLIOT_API_KEY": served.key, "TZ": "UTC"}
        env = environ_without_foliot() | known | environ
        done = await asyncio.to_thread(run_foliot, *args, cwd=tmp_path, env=env, timeout=PATIENCE)
        return Said(done.returncode, done.stdout, done.stderr)

    return asked
