"""Limits on concurrent runs: of a workspace, and of each concurrency key.

Why: docs/decisions/209-limits-and-disabled-types.md
"""

from __future__ import annotations

from collections.abc import Sequence

from foliot.domain.access import Scope
from foliot.domain.errors import Invalid, NotFound
from foliot.domain.ids import WorkspaceId
from foliot.storage.identity import audit
from foliot.storage.identity.audit import AuditEntry
from foliot.storage.queue import limits, run_queue
from foliot.storage.queue.limits import WHOLE, Limit, LimitName, Permit
from foliot.storage.tx import Database, Role, Tx

__all__ = ["WHOLE", "Limit"]

BATCH = 500
MOST = 1_000_000
LONGEST_KEY = 200


async def set_limit(database: Database, scope: Scope, key: str, cap: int | None) -> None:
    """Set the limit of the workspace (empty key) or of a concurrency key; None removes it."""
    if cap is not None and not 1 <= cap <= MOST:
        raise Invalid(
            f"A limit is between 1 and {MOST:,}.", pointer="/cap", hint="None takes the limit away."
        )
    if len(key) > LONGEST_KEY:
        raise Invalid(f"A concurrency key has at most {LONGEST_KEY} characters.", pointer="/key")
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        before = await limits.get(tx, key)
        if cap is None:
            await limits.remove(tx, scope.workspace_id, key)
        else:
            await limits.put(tx, scope.workspace_id, key, cap)
        action = "limit.removed" if cap is None else "limit.set"
        was = None if before is None else {"cap": before.cap}
        entry = AuditEntry(action, "limit", key or "workspace", scope.actor, before=was, after={"cap": cap})
        await audit.append(tx, tx.new_id(), entry)
    # A second transaction: claims that did not know the limit have ended when it counts their leases.
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await limits.lock(tx, [Permit(scope.workspace_id, key)])
        await _recount(tx, list(found.values()))
        await run_queue.promote_uncapped(tx, BATCH)


async def take_away(database: Database, scope: Scope, key: str) -> None:
    """Remove the limit. Refused when there is none."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        if await limits.get(tx, key) is None:
            raise _no_such()
    await set_limit(database, scope, key, None)


async def list_limits(database: Database, workspace_id: WorkspaceId) -> list[Limit]:
    """List limits: the workspace first, then by key."""
    async with database.tx(Role.APP, workspace_id) as tx:
        return await limits.list_limits(tx, workspace_id)


async def get(database: Database, workspace_id: WorkspaceId, key: str) -> Limit:
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await limits.get(tx, key)
    if found is None:
        raise _no_such()
    return found


async def recount(database: Database, limit: int = BATCH) -> int:
    """Set every count to the number of leases and promote waiting runs. Return how many counts were wrong.

    The sweeper calls this to repair counts after a crash, a purge or a limit set during runs.
    """
    wrong = 0
    after: LimitName | None = None
    while True:
        async with database.tx(Role.ENGINE) as tx:
            found = await limits.lock_from(tx, after, limit)
            wrong += await _recount(tx, found)
            if len(found) < limit:
                await run_queue.promote_uncapped(tx, limit)
                return wrong
            after = found[-1].name


async def _recount(tx: Tx, found: Sequence[Limit]) -> int:
    names = [limit.name for limit in found]
    wrong = await limits.recount(tx, names)
    await run_queue.promote_freed(tx, await limits.count_free(tx, names))
    return wrong


def _no_such() -> NotFound:
    return NotFound("There is no such limit.", hint="List the limits to see their keys.")
