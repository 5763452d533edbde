"""Hosts that register at once, and take servers over from each other."""

from __future__ import annotations

import pytest

from tests.race.hands import Hands
from tests.services.hosting import machine, somebody
from tests.services.shop import Shop

pytestmark = pytest.mark.anyio


async def test_two_hosts_that_name_the_same_servers_in_another_order_do_not_wait_in_a_ring(
    hands: Hands, shop: Shop
) -> None:
    speaker = somebody(shop.workspace)
    await machine(hands.left, speaker, "old", "pve", "pvp")
    await hands.keeper.execute("SELECT FROM foliot.server_instances WHERE name = 'pvp' FOR UPDATE")
    one = await hands.behind(machine(hands.left, speaker, "one", "pvp", "pve"))
    other = await hands.behind(machine(hands.right, speaker, "other", "pve", "pvp"))
    await hands.keeper.rollback()
    await one
    last = await other
    assert shop.sql("SELECT DISTINCT host_id FROM foliot.server_instances") == [(last.id,)]
