"""How many examples a property is tried with: some of them in `./dev test`, all of them in `./dev prove`."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

IS_PROVING = "PROVE" in os.environ  # set by `./dev prove`; a name with FOLIOT_ would be a setting
DEFAULT = 100


def examples(count: int = DEFAULT, *, some: int | None = None) -> settings:
    """Try `count` examples in `./dev prove`; in `./dev test` a quarter of them, or `some` where each takes long.

    Timings belong to bench/, not to tests: a busy machine must not fail one, so there is no deadline.
    """
    fewer = max(count // 4, 10) if some is None else some
    return settings(max_examples=count if IS_PROVING else fewer, deadline=None)


def seeds(count: int) -> pytest.MarkDecorator:
    """Give the test a `seed`: 0 in `./dev test`, all below `count` in `./dev prove`."""
    others = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, count)]
    return pytest.mark.parametrize("seed", [0, *others])


def thinned(step: int, all_step: int = 1) -> pytest.MarkDecorator:
    """Give a walk over many cases a `step`: it takes every `step`th case in `./dev test`, every `all_step`th in `./dev prove`."""
    return pytest.mark.parametrize(
        "step",
        [pytest.param(step, id="some"), pytest.param(all_step, id="all", marks=pytest.mark.slow)],
    )
