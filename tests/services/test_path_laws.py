"""Every fast path leaves the rows that its full path leaves, over generated histories."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.examples import examples
from tests.services.service_driver import ServiceDriver
from tests.services.twin_histories import JobHistory, Player, Way, histories

pytestmark = pytest.mark.anyio
OTHER_WAYS = {
    "each timer planned by itself": Way(plans_alone=True),
    "each success decided by itself": Way(decides_alone=True),
    "each report in a transaction of its own": Way(reports_alone=True),
    "claims under a cap": Way(is_capped=True),
}


@settings(examples(60, some=3), suppress_health_check=list(HealthCheck))  # each example empties the database
@given(history=histories())
async def test_every_way_of_firing_claiming_and_settling_leaves_the_same_rows(
    driver: ServiceDriver, history: JobHistory
) -> None:
    player = Player(driver)
    rows = await player.play(history, Way())
    for name, way in OTHER_WAYS.items():
        assert await player.play(history, way) == rows, name
