"""Job types: those that workers describe, and those that a workspace has disabled.

Why: docs/decisions/209-limits-and-disabled-types.md
"""

from __future__ import annotations

from dataclasses import dataclass, field

from foliot.domain.access import Scope
from foliot.domain.ids import WorkspaceId
from foliot.domain.run import WaitsFor
from foliot.services.identity.audit_steps import append_audit
from foliot.services.settlement.dependent_steps import finish_settlement
from foliot.services.settlement.settle_steps import lock_for_settlement
from foliot.storage.jobs import job_types
from foliot.storage.jobs.job_types import DisabledType, JobTypeDescription
from foliot.storage.queue import unclaimed_runs
from foliot.storage.tx import Database, Role
from foliot.storage.workers import overview

__all__ = ["DisabledType", "JobTypeDescription"]

BATCH = 200
MOST_BATCHES = 50  # in one call; the sweeper does the rest


@dataclass(frozen=True, slots=True)
class JobTypesOverview:
    """By type name: descriptions from workers, the number of live workers, and disabled types."""

    described: dict[str, JobTypeDescription] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    off: dict[str, DisabledType] = field(default_factory=dict)


async def look(database: Database, workspace_id: WorkspaceId) -> JobTypesOverview:
    async with database.tx(Role.APP, workspace_id) as tx:
        return JobTypesOverview(
            await job_types.list_known(tx),
            await overview.count_by_type(tx),
            await job_types.list_disabled(tx),
        )


async def set_type_enabled(
    database: Database, scope: Scope, name: str, *, enabled: bool, reason: str = ""
) -> None:
    """Enable or disable a type. While it is disabled, no run of it starts: planned and triggered runs are recorded as skipped,
    manual ones are refused, and existing ones wait until it is enabled. Runs under way continue.
    """
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        before = (await job_types.list_disabled(tx)).get(name)
        if enabled:
            await job_types.enable(tx, name)
        else:
            await job_types.disable(tx, name, reason)
        if enabled == (before is not None) or (before is not None and before.reason != reason):
            was = {"enabled": before is None, "reason": "" if before is None else before.reason}
            now = {"enabled": enabled, "reason": "" if enabled else reason}
            action = "job_type.enabled" if enabled else "job_type.disabled"
            await append_audit(tx, action, ("job_type", name), scope.actor, before=was, after=now)
    if enabled and before is not None:
        for _ in range(MOST_BATCHES):
            if await _let_go(database, Role.APP, scope.workspace_id, BATCH) < BATCH:
                break


async def release_held_runs(database: Database, limit: int = BATCH) -> int:
    """Release runs that a claim held just before their type was enabled. Return how many were checked."""
    return await _let_go(database, Role.ENGINE, None, limit)


async def _let_go(database: Database, role: Role, workspace_id: WorkspaceId | None, limit: int) -> int:
    async with database.tx(role, workspace_id) as tx:
        found = await job_types.list_released_runs(tx, limit)
        if found:
            writer = await lock_for_settlement(tx, found.values())
            await writer.release(await unclaimed_runs.still_waiting(tx, list(found), WaitsFor.TYPE))
            await finish_settlement(writer)
    return len(found)
