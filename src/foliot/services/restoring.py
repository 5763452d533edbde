"""After a restore: jobs wait until the operator has said what becomes of the times that went by."""

from __future__ import annotations

from foliot.domain.planning import plan_missed
from foliot.services import setup
from foliot.services.firing import fire
from foliot.services.loading import look_around
from foliot.services.tick import BATCH
from foliot.storage import timers
from foliot.storage.installation import MissedChoice
from foliot.storage.timers import Planned
from foliot.storage.tx import Database, Role


async def release(database: Database, choice: MissedChoice) -> None:
    """Let jobs run again. `catch_up` leaves the missed times to each job's misfire policy; `skip` records them as skipped first."""
    await setup.require_hold(database)
    if choice is MissedChoice.SKIP:
        while await _skip_some(database):
            pass
    await setup.release_hold(database, choice)


async def _skip_some(database: Database) -> int:
    async with database.tx(Role.ENGINE) as tx:
        rows = await timers.take_missed(tx, BATCH)
        if rows:
            around = await look_around(tx, rows, gates=True)
            planned = [Planned(row, plan_missed(around.due(row), tx.now)) for row in rows]
            await fire(tx, around, planned)
        return len(rows)
