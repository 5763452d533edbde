"""Servers that end with the story."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stories.serving import Serving


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def serve(data_dir: Path) -> Iterator[Any]:
    started: list[Serving] = []

    def begin(**environ: str) -> Serving:
        started.append(Serving(data_dir, **environ))
        return started[-1]

    yield begin
    for serving in started:
        serving.end()
