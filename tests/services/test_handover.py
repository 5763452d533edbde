"""What another engine calls a run: shown while it is under way, kept with the attempt, and never reported by a worker that lost it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.policy import Backoff, Retry
from foliot.domain.schedule import Interval
from foliot.services.runs import history
from foliot.services.workers.bridges import HandedOver, handed_over, slugs
from tests.services.workspace_harness import BROKE, WorkspaceHarness

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


async def shown(harness: WorkspaceHarness, run_id: Any) -> list[tuple[str, str | None]]:
    tried = await history.attempts_of(harness.database, Scope(harness.workspace), run_id)
    return [(each.status.value, each.external_id) for each in tried]


async def test_the_engines_id_is_shown_while_it_runs_and_kept_with_every_attempt(
    harness: WorkspaceHarness,
) -> None:
    retry = Retry(max=1, strategy=Backoff.FIXED, base=timedelta(0))
    await harness.job("handed over", Interval(MINUTE), retry=retry)
    harness.clock.advance(MINUTE)
    await harness.tick()
    [first] = await harness.claim()
    assert await shown(harness, first.run_id) == [("running", None)]
    await handed_over(harness.database, [HandedOver(first.run_id, first.fence, "theirs-1")])
    assert await shown(harness, first.run_id) == [("running", "theirs-1")]
    await harness.report(first, BROKE)
    [second] = await harness.claim()
    await handed_over(harness.database, [HandedOver(first.run_id, first.fence, "late")])
    await handed_over(harness.database, [HandedOver(second.run_id, second.fence, "theirs-2")])
    await handed_over(harness.database, [HandedOver(first.run_id, first.fence, "later")])
    await harness.report(second)
    assert await shown(harness, first.run_id) == [("failed", "theirs-1"), ("succeeded", "theirs-2")]


async def test_a_run_that_ends_with_its_first_attempt_keeps_the_id_and_others_have_no_row_for_it(
    harness: WorkspaceHarness,
) -> None:
    for name in ("handed over", "done here"):
        await harness.job(name, Interval(MINUTE))
    harness.clock.advance(MINUTE)
    await harness.tick()
    here, there = await harness.claim()
    await handed_over(harness.database, [HandedOver(there.run_id, there.fence, "theirs")])
    await harness.report(here)
    await harness.report(there)
    assert await shown(harness, there.run_id) == [("succeeded", "theirs")]
    assert await shown(harness, here.run_id) == [("succeeded", None)]
    assert harness.owner.execute("SELECT count(*) FROM foliot.attempts").fetchone() == (1,)


async def test_queues_are_named_after_the_slug(harness: WorkspaceHarness) -> None:
    assert await slugs(harness.database, {harness.workspace}) == {harness.workspace: "default"}
