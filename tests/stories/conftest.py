"""Servers that end with the story."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start as start_postgres
from foliot.storage.migrate import migrate
from tests.stories.hosting import Alpha
from tests.stories.serving import InstalledServing, Serving
from tests.stories.stage import Stage
from tests.temporary import temporary_folder


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(scope="session")
def used_template() -> Iterator[Path]:
    """A data directory that a server has used; copying it costs a fifth of making one."""
    with temporary_folder() as folder:
        serving = Serving(folder / "data")
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
def serve(data_dir: Path) -> Iterator[Any]:
    """Start `foliot serve` in a forked process."""
    yield from _starting(Serving, data_dir)


@pytest.fixture
def serve_installed(data_dir: Path) -> Iterator[Any]:
    """Start the installed program."""
    yield from _starting(InstalledServing, data_dir)


def _starting(kind: type[Serving], data_dir: Path) -> Iterator[Any]:
    started: list[Serving] = []

    def begin(**environ: str) -> Serving:
        started.append(kind(data_dir, **environ))
        return started[-1]

    yield begin
    for serving in started:
        serving.end()


@pytest.fixture
def stage(tmp_path: Path, postgres_template: Path) -> Iterator[Stage]:
    shutil.copy(Path(__file__).with_name("errands.py"), tmp_path)
    shutil.copytree(postgres_template, tmp_path / "theirs")
    config = EmbeddedConfig(tmp_path / "theirs")
    made = Stage(tmp_path, config, start_postgres(config))
    yield made
    made.open_gate()
    made.server.stop()


@pytest.fixture
def alpha(tmp_path: Path, data_dir: Path, serve: Any) -> Iterator[Alpha]:
    folder = tmp_path / "machine"
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("errands.py"), folder)
    made = Alpha(folder, serve, data_dir)
    yield made
    made.open_gate()
    for host in made.hosts:
        host.end()
