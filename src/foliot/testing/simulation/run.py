"""A whole simulation: the world, the drive through its time, the judge at the end of each day and over everything at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import psycopg

from foliot.clock import monotonic
from foliot.storage.leases import Claimed
from foliot.testing.simulation.drive import Drive
from foliot.testing.simulation.figures import Figures, figures
from foliot.testing.simulation.invariants import Judge
from foliot.testing.simulation.world import Size

HOT = "foliot.timers, foliot.ready, foliot.waiting, foliot.leases, foliot.workers"


def _quiet(day: datetime) -> None:
    pass


async def simulate(size: Size, owner_url: str, on_day: Callable[[datetime], None] = _quiet) -> Figures:
    """Raises `Broken` where an invariant does not hold. The database is left as it was at that moment."""
    began = monotonic()
    with psycopg.connect(owner_url, autocommit=True) as owner:

        async def end_of_day() -> None:
            # Throw-away servers have no autovacuum, and a month of dead rows would slow the nodes down.
            owner.execute(f"VACUUM {HOT}")
            owner.execute("ANALYZE foliot.runs, foliot.attempts")
            judge.look(drive.clock.now())
            on_day(drive.clock.now())

        def claimed(runs: Sequence[Claimed], now: datetime) -> None:
            judge.look_at_claims(runs, now)

        drive = Drive(size, owner_url, owner, end_of_day, claimed)
        judge = Judge(owner, drive.chronicle)
        await drive.run()
        judge.look(drive.clock.now())
        judge.drained(drive.clock.now())
        judge.look_at_every_job()
        return figures(owner, size, drive.stage.counts, judge.checked, monotonic() - began)
