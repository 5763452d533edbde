"""A day of one workspace in virtual time: the sample of the simulation that every run of the tests has."""

from __future__ import annotations

import pytest

from foliot.testing.database import Databases
from tools.simulation.run import simulate
from tools.simulation.world import Size

pytestmark = pytest.mark.anyio


async def test_a_day_of_faults_breaks_no_invariant(server: Databases) -> None:
    with server.fresh() as url:
        figures = await simulate(Size(workspaces=1, days=1, seed=11), url)
    assert figures.occurrences > 100
    assert figures.records["succeeded"] > 0
