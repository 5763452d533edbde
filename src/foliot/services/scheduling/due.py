"""How long until a timer is due."""

from __future__ import annotations

from datetime import timedelta

from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role


async def count_due(database: Database) -> int:
    """Count the timers that are due; a large number is not counted to its end."""
    async with database.tx(Role.ENGINE) as tx:
        return await timers.count_due(tx)


async def count_planned(database: Database) -> int:
    """Count the timers with a planned time; a large number is not counted to its end."""
    async with database.tx(Role.ENGINE) as tx:
        return await timers.count_planned(tx)


async def until_due(database: Database) -> timedelta | None:
    """Return the time until the first timer is due, by the database's clock. Return None when nothing is planned."""
    async with database.tx(Role.ENGINE) as tx:
        due_at = await timers.next_due(tx)
        return None if due_at is None else due_at - tx.now


async def until_next_due(database: Database) -> timedelta | None:
    """Return the time until the next timer falls due. Ignore timers that are due already: one that no scheduler takes must not keep the others waiting."""
    async with database.tx(Role.ENGINE) as tx:
        due_at = await timers.next_due_after(tx, tx.now)
        return None if due_at is None else due_at - tx.now
