"""How long until a timer is due."""

from __future__ import annotations

from datetime import timedelta

from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role


async def until_due(database: Database) -> timedelta | None:
    """By the database's clock, read in the same transaction: a node's own clock has no say. None: nothing is planned."""
    async with database.tx(Role.ENGINE) as tx:
        due_at = await timers.next_due(tx)
        return None if due_at is None else due_at - tx.now


async def until_next_due(database: Database) -> timedelta | None:
    """The same for those that are still to come: what has been due for long and is taken by nobody has no say either."""
    async with database.tx(Role.ENGINE) as tx:
        due_at = await timers.next_due_after(tx, tx.now)
        return None if due_at is None else due_at - tx.now
