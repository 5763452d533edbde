"""Freezes, caps, gates, windows, deadlines and retries all at once, by chance from a seed: the books always balance."""

from __future__ import annotations

import pytest

from tests.examples import seeds
from tests.services.playing import Play
from tests.services.staging import Stage

pytestmark = pytest.mark.anyio


@seeds(4)
async def test_whatever_happens_every_run_is_in_one_place_and_every_count_is_right(
    stage: Stage, seed: int
) -> None:
    play = Play(stage, seed)
    await play.cast()
    for _ in range(150):
        await play.step()
        play.check()
    await play.wind_up()
    assert play.seen >= {"turn", "upstream", "freeze", "limit"}  # else this shows nothing
    for place in ("ready", "waiting", "leases"):
        assert stage.owner.execute(f"SELECT * FROM foliot.{place}").fetchall() == []
