"""Hosts that register at once, and take servers over from each other."""

from __future__ import annotations

import pytest

from tests.race.race_nodes import RaceNodes
from tests.services.remote_hosts import register_host, worker_principal
from tests.services.service_driver import ServiceDriver

pytestmark = pytest.mark.anyio


async def test_two_hosts_that_name_the_same_servers_in_another_order_do_not_wait_in_a_ring(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    speaker = worker_principal(driver.workspace)
    await register_host(nodes.left, speaker, "old", "pve", "pvp")
    await nodes.lock_holder.execute("SELECT FROM foliot.server_instances WHERE name = 'pvp' FOR UPDATE")
    one = await nodes.start_blocked(register_host(nodes.left, speaker, "one", "pvp", "pve"))
    other = await nodes.start_blocked(register_host(nodes.right, speaker, "other", "pve", "pvp"))
    await nodes.lock_holder.rollback()
    await one
    last = await other
    assert driver.sql("SELECT DISTINCT host_id FROM foliot.server_instances") == [(last.id,)]
