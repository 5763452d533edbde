"""An edit while a freeze holds planned times for later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foliot.domain.access import Scope
from foliot.domain.freeze import FreezePolicy
from foliot.domain.schedule import Interval
from foliot.services.jobs import job_edits, jobs
from foliot.services.scheduling import freezes
from foliot.services.scheduling.freezes import NewFreeze
from foliot.testing.fixtures import ANA
from tests.services.shop import MINUTE, Shop

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("after", list(FreezePolicy))
async def test_times_held_under_the_old_schedule_are_recorded_when_a_new_one_takes_over(
    shop: Shop, after: FreezePolicy
) -> None:
    job_id = await shop.job()
    end_at = shop.clock.now() + 60 * MINUTE
    new = NewFreeze("stock-taking", everything=True, end_at=end_at, after=after)
    await freezes.turn_on(shop.database, Scope(shop.workspace, ANA), new)
    for _ in range(3):
        await shop.tick(MINUTE)
    stored = await jobs.get(shop.database, shop.workspace, job_id)
    spec = replace(stored.definition.spec, schedule=Interval(5 * MINUTE))
    await job_edits.edit(
        shop.database, Scope(shop.workspace, ANA), job_id, replace(stored.definition, spec=spec)
    )
    found = shop.sql("SELECT skip_reason, coalesce(count, 1) FROM foliot.runs WHERE schedule_rev = 1")
    assert {reason for reason, _ in found} == {"frozen"}
    assert sum(count for _, count in found) == 3
    shop.balance()
