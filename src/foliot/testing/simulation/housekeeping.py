"""Chores of the sweeper: runs that may no longer start, and runs whose window has opened."""

from __future__ import annotations

from foliot.domain.outcomes import Expired
from foliot.services.dependents import wake_dependents
from foliot.services.loading import look_around
from foliot.services.settling import Settling
from foliot.storage import runs, timers, waiting
from foliot.storage.queries import Query
from foliot.storage.tx import Database, Role
from foliot.storage.waiting import Waiting

MOST = 500
_OPEN = Query(
    "open_windows",
    b"SELECT run_id, job_id, available_at, expires_at FROM waiting"
    b" WHERE waits_for = 'window' AND available_at <= %(now)s ORDER BY position",
)


async def end_expired(database: Database) -> int:
    async with database.tx(Role.ENGINE) as tx:
        found = await runs.expired(tx, MOST)
        if not found:
            return 0
        rows = await timers.lock_with_dependents(tx, {job_id for _, job_id in found})
        settling = Settling(tx, rows, await look_around(tx, rows.values()))
        ended = await settling.end_standing([run_id for run_id, _ in found], Expired())
        await settling.write()
        await wake_dependents(settling)
        return len(ended)


async def open_windows(database: Database) -> int:
    async with database.tx(Role.ENGINE) as tx:
        rows = await tx.fetch(_OPEN, {"now": tx.now})
        found = [
            Waiting(row["run_id"], row["job_id"], row["available_at"], row["expires_at"]) for row in rows
        ]
        await timers.lock(tx, {run.job_id for run in found})
        await waiting.promote(tx, found)
        return len(found)
