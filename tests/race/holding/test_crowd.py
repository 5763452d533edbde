"""Everything at the same moment: no deadlock, no run in two places, no count that is wrong."""

from __future__ import annotations

import pytest

from tests.examples import seeds
from tests.services.playing import Play
from tests.services.staging import Stage

pytestmark = pytest.mark.anyio


@seeds(2)
async def test_a_crowd_of_verbs_leaves_the_books_in_balance(stage: Stage, seed: int) -> None:
    play = Play(stage, seed)
    await play.cast()
    for _ in range(60):
        await play.crowd()
        play.check()
    await play.wind_up()
    for place in ("ready", "waiting", "leases"):
        assert stage.owner.execute(f"SELECT * FROM foliot.{place}").fetchall() == []
