"""Freezes as rows, each with the jobs it covers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.domain.freezing import After, Freeze, Running
from foliot.domain.ids import JobId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class Scoped:
    """A freeze and what it covers: its whole workspace, or the jobs, tags and queues it names."""

    freeze: Freeze
    workspace_id: WorkspaceId
    jobs: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()

    def covers(self, workspace_id: WorkspaceId, job_id: JobId, tags: tuple[str, ...], queue: str) -> bool:
        if workspace_id != self.workspace_id:
            return False
        if not (self.jobs or self.tags or self.queues):
            return True
        return str(job_id) in self.jobs or queue in self.queues or not self.tags.isdisjoint(tags)


async def since(tx: Tx, earliest: datetime) -> list[Scoped]:
    """The freezes that touch the time from `earliest` until now."""
    rows = await tx.fetch(sql.freezes.since, {"now": tx.now, "since": earliest})
    return [scoped(row) for row in rows]


def scoped(row: Row) -> Scoped:
    scope = row["scope"]
    return Scoped(
        Freeze(
            row["id"],
            row["start_at"],
            row["end_at"],
            After(row["after"]),
            row["per_minute"],
            Running(row["running"]),
            row["reason"],
        ),
        row["workspace_id"],
        frozenset(scope.get("jobs", ())),
        frozenset(scope.get("tags", ())),
        frozenset(scope.get("queues", ())),
    )
