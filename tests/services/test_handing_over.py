"""What another engine calls a run: shown while it is under way, kept with the attempt, and never told by somebody who lost it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.policy import Backoff, Retry
from foliot.domain.schedule import Interval
from foliot.services.runs import history
from foliot.services.workers.bridges import HandedOver, handed_over, slugs
from tests.services.staging import BROKE, Stage

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


async def shown(stage: Stage, run_id: Any) -> list[tuple[str, str | None]]:
    tried = await history.attempts_of(stage.database, Scope(stage.workspace), run_id)
    return [(each.status.value, each.external_id) for each in tried]


async def test_the_engines_id_is_shown_while_it_runs_and_kept_with_every_attempt(stage: Stage) -> None:
    retry = Retry(max=1, strategy=Backoff.FIXED, base=timedelta(0))
    await stage.job("handed over", Interval(MINUTE), retry=retry)
    stage.clock.advance(MINUTE)
    await stage.tick()
    [first] = await stage.claim()
    assert await shown(stage, first.run_id) == [("running", None)]
    await handed_over(stage.database, [HandedOver(first.run_id, first.fence, "theirs-1")])
    assert await shown(stage, first.run_id) == [("running", "theirs-1")]
    await stage.report(first, BROKE)
    [second] = await stage.claim()
    await handed_over(stage.database, [HandedOver(first.run_id, first.fence, "late")])
    await handed_over(stage.database, [HandedOver(second.run_id, second.fence, "theirs-2")])
    await handed_over(stage.database, [HandedOver(first.run_id, first.fence, "later")])
    await stage.report(second)
    assert await shown(stage, first.run_id) == [("failed", "theirs-1"), ("succeeded", "theirs-2")]


async def test_a_run_that_ends_with_its_first_attempt_keeps_the_id_and_others_have_no_row_for_it(
    stage: Stage,
) -> None:
    for name in ("handed over", "done here"):
        await stage.job(name, Interval(MINUTE))
    stage.clock.advance(MINUTE)
    await stage.tick()
    here, there = await stage.claim()
    await handed_over(stage.database, [HandedOver(there.run_id, there.fence, "theirs")])
    await stage.report(here)
    await stage.report(there)
    assert await shown(stage, there.run_id) == [("succeeded", "theirs")]
    assert await shown(stage, here.run_id) == [("succeeded", None)]
    assert stage.owner.execute("SELECT count(*) FROM foliot.attempts").fetchone() == (1,)


async def test_queues_are_named_after_the_slug(stage: Stage) -> None:
    assert await slugs(stage.database, {stage.workspace}) == {stage.workspace: "default"}
