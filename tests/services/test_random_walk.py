"""Freezes, caps, gates, windows, deadlines and retries all at once, by chance from a seed: the books always balance."""

from __future__ import annotations

import pytest

from tests.examples import seeds
from tests.services.random_walk import RandomWalk
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio


@seeds(4)
async def test_whatever_happens_every_run_is_in_one_place_and_every_count_is_right(
    harness: WorkspaceHarness, seed: int
) -> None:
    walk = RandomWalk(harness, seed)
    await walk.create_jobs()
    for _ in range(150):
        await walk.step()
        walk.check()
    await walk.finish_all()
    assert walk.seen >= {"turn", "upstream", "freeze", "limit"}  # else this shows nothing
    for place in ("ready", "waiting", "leases"):
        assert harness.owner.execute(f"SELECT * FROM foliot.{place}").fetchall() == []
