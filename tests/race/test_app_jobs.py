"""Two workers that load one app at the same time create each of its jobs once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict
from foliot.services.jobs import jobs
from foliot.testing.fixtures import ANA, BEN
from tests.race.race_nodes import RaceNodes
from tests.services.service_driver import ServiceDriver, definition

pytestmark = pytest.mark.anyio
IN_SHOP = replace(definition(name="sync"), external_ref={"source": "code", "app": "shop"})
IN_BANK = replace(IN_SHOP, external_ref={"source": "code", "app": "bank"})


async def test_of_two_workers_that_load_one_app_one_creates_its_job(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    async with nodes.paused_at_table(
        jobs.create(nodes.left, Scope(driver.workspace, ANA), IN_SHOP), at="audit"
    ) as first:
        second = await nodes.start_blocked(jobs.create(nodes.right, Scope(driver.workspace, BEN), IN_SHOP))
    await first
    with pytest.raises(Conflict):
        await second
    await jobs.create(nodes.right, Scope(driver.workspace, BEN), IN_BANK)
    assert driver.sql("SELECT count(*) FROM foliot.jobs") == [(2,)]
