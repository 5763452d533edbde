"""Everything at the same moment: no deadlock, no run in two places, no count that is wrong."""

from __future__ import annotations

import pytest

from tests.examples import seeds
from tests.services.random_walk import RandomWalk
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio


@seeds(2)
async def test_a_crowd_of_verbs_leaves_the_books_in_balance(harness: WorkspaceHarness, seed: int) -> None:
    walk = RandomWalk(harness, seed)
    await walk.create_jobs()
    for _ in range(60):
        await walk.step_together()
        walk.check()
    await walk.finish_all()
    for place in ("ready", "waiting", "leases"):
        assert harness.owner.execute(f"SELECT * FROM foliot.{place}").fetchall() == []
