"""Servers that end with the story."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start as start_postgres
from tests.stories.hosting import Alpha
from tests.stories.serving import InstalledServing, Serving
from tests.stories.stage import Stage


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


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
def stage(tmp_path: Path) -> Iterator[Stage]:
    shutil.copy(Path(__file__).with_name("errands.py"), tmp_path)
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
