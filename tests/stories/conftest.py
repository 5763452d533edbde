"""Servers, databases and hosts as real processes, which end with the test."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start as start_postgres
from foliot.storage.migrate import migrate
from foliot.storage.tx import Database
from tests.stories.fleet import Fleet
from tests.stories.installation import Installation
from tests.stories.server_process import InstalledServerProcess, ServerProcess
from tests.stories.virtual_server import VirtualServer, serve_in_virtual_time
from tests.temporary import temporary_folder


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(scope="session")
def used_template() -> Iterator[Path]:
    """A data directory that a server has used; copying it costs a fifth of making one."""
    with temporary_folder() as folder:
        serving = ServerProcess(folder / "data")
        serving.wait_for_url()
        serving.stop()
        yield folder / "data"


@pytest.fixture
def used_data_dir(data_dir: Path, used_template: Path) -> Path:
    """The data directory has been used before: its database is migrated, and its keys are made."""
    shutil.copytree(used_template, data_dir)
    return data_dir


@pytest.fixture(scope="session")
def postgres_template() -> Iterator[Path]:
    """The data directory of a PostgreSQL with a migrated database."""
    with temporary_folder() as folder:
        server = start_postgres(EmbeddedConfig(folder / "data"))
        migrate(server.owner_url)
        server.stop()
        yield folder / "data"


@pytest.fixture
def start_server(data_dir: Path) -> Iterator[Any]:
    """Start `foliot serve` in a forked process."""
    yield from _starting(ServerProcess, data_dir)


@pytest.fixture
def start_installed_server(data_dir: Path) -> Iterator[Any]:
    """Start the installed program."""
    yield from _starting(InstalledServerProcess, data_dir)


def _starting(kind: type[ServerProcess], data_dir: Path) -> Iterator[Any]:
    started: list[ServerProcess] = []

    def begin(**environ: str) -> ServerProcess:
        started.append(kind(data_dir, **environ))
        return started[-1]

    yield begin
    for serving in started:
        serving.end()


@pytest.fixture
def installation(tmp_path: Path, postgres_template: Path) -> Iterator[Installation]:
    """A PostgreSQL of its own, which the servers of a test share."""
    shutil.copy(Path(__file__).with_name("job_functions.py"), tmp_path)
    shutil.copytree(postgres_template, tmp_path / "theirs")
    config = EmbeddedConfig(tmp_path / "theirs")
    made = Installation(tmp_path, config, start_postgres(config))
    yield made
    made.open_gate()
    made.server.stop()


@pytest.fixture
def fleet(tmp_path: Path, data_dir: Path, start_server: Any) -> Iterator[Fleet]:
    """A server and its hosts, all in one folder."""
    folder = tmp_path / "machine"
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("job_functions.py"), folder)
    made = Fleet(folder, start_server, data_dir)
    yield made
    made.open_gate()
    for host in made.hosts:
        host.end()


@pytest.fixture
async def virtual_server(
    database: Database, owner: psycopg.Connection[Any], tmp_path: Path
) -> AsyncIterator[VirtualServer]:
    shutil.copy(Path(__file__).with_name("job_functions.py"), tmp_path)
    async with serve_in_virtual_time(database, owner, tmp_path) as made:
        yield made
