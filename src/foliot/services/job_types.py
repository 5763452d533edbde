"""Types of jobs: which there are beyond those installed here, and which a workspace has switched off."""

from __future__ import annotations

from dataclasses import dataclass, field

from foliot.domain.access import Actor
from foliot.domain.ids import WorkspaceId
from foliot.services.in_hand import note
from foliot.storage import fleet, job_types
from foliot.storage.job_types import SwitchedOff, TypeTold
from foliot.storage.tx import Database, Role

__all__ = ["Seen", "SwitchedOff", "TypeTold", "look", "switch", "told"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What workers have told, how many of them are alive now, and what is switched off; each by the name of the type."""

    told: dict[str, TypeTold] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    off: dict[str, SwitchedOff] = field(default_factory=dict)


async def look(database: Database, workspace_id: WorkspaceId) -> Seen:
    async with database.tx(Role.APP, workspace_id) as tx:
        return Seen(await job_types.known(tx), await fleet.types(tx), await job_types.off(tx))


async def told(database: Database, workspace_id: WorkspaceId, name: str) -> TypeTold | None:
    """What a worker has said of this type, also one that is not alive now."""
    async with database.tx(Role.APP, workspace_id) as tx:
        return (await job_types.known(tx, name)).get(name)


async def switch(
    database: Database, workspace_id: WorkspaceId, name: str, by: Actor, *, enabled: bool, reason: str = ""
) -> None:
    """Off, planned times of such jobs are skipped, and nobody can run one by hand. What is under way, or stands in line, goes on."""
    async with database.tx(Role.APP, workspace_id) as tx:
        before = (await job_types.off(tx)).get(name)
        if enabled:
            await job_types.switch_on(tx, name)
        else:
            await job_types.switch_off(tx, name, reason)
        if enabled == (before is not None) or (before is not None and before.reason != reason):
            was = {"enabled": before is None, "reason": "" if before is None else before.reason}
            now = {"enabled": enabled, "reason": "" if enabled else reason}
            action = "job_type.enabled" if enabled else "job_type.disabled"
            await note(tx, action, ("job_type", name), by, before=was, after=now)
