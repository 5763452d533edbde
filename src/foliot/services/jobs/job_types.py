"""Types of jobs: which there are beyond those installed here, and which a workspace has switched off."""

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
from foliot.storage.queue import waiting
from foliot.storage.tx import Database, Role
from foliot.storage.workers import overview

__all__ = [
    "DisabledType",
    "JobTypeDescription",
    "JobTypesOverview",
    "look",
    "release_held_runs",
    "set_type_enabled",
]

BATCH = 200
MOST_BATCHES = 50  # a caller waits for; the sweeper does the rest


@dataclass(frozen=True, slots=True)
class JobTypesOverview:
    """What workers have told, how many of them are alive now, and what is switched off; each by the name of the type."""

    told: dict[str, JobTypeDescription] = field(default_factory=dict)
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
    """Off, nothing of such jobs starts any more. What would be made by a schedule or a dependency is recorded as skipped, what somebody
    asks for is refused, what there is already is held and goes on when the type is on again. What is under way ends as it would.
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
    """For the sweeper: what a claim still held when its type was just switched on. Answers with how many were looked at."""
    return await _let_go(database, Role.ENGINE, None, limit)


async def _let_go(database: Database, role: Role, workspace_id: WorkspaceId | None, limit: int) -> int:
    async with database.tx(role, workspace_id) as tx:
        found = await job_types.list_released_runs(tx, limit)
        if found:
            writer = await lock_for_settlement(tx, found.values())
            await writer.release(await waiting.still_waiting(tx, list(found), WaitsFor.TYPE))
            await finish_settlement(writer)
    return len(found)
