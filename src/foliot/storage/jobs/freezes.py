"""Freezes as rows, each with the jobs it covers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.freeze import Freeze, FreezePolicy, RunningPolicy
from foliot.domain.ids import FreezeId, JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.run import Trigger
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class ScopedFreeze:
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


async def list_since(tx: Tx, earliest: datetime) -> list[ScopedFreeze]:
    """The freezes that touch the time from `earliest` until now."""
    rows = await tx.fetch(sql.freezes.since, {"now": tx.now, "since": earliest})
    return [scoped(row) for row in rows]


@dataclass(frozen=True, slots=True)
class FreezeRow:
    """A freeze as people read it."""

    scoped: ScopedFreeze
    created_by: str
    created_at: datetime
    lifted_by: str | None
    lifted_at: datetime | None


@dataclass(frozen=True, slots=True)
class StartableRun:
    run_id: RunId
    job_id: JobId
    trigger: Trigger
    is_ready: bool  # else it waits for a cap


@dataclass(frozen=True, slots=True)
class ReleasedRun:
    """A run that no freeze holds any more; with the freeze whose rate it must keep to, if any."""

    run_id: RunId
    job_id: JobId
    freeze_id: FreezeId | None
    per_minute: int | None


@dataclass(frozen=True, slots=True)
class LiftedFreeze:
    """A freeze lifted early: timers were set to an end that it no longer has."""

    id: FreezeId
    thawed_to: UUID


async def insert(tx: Tx, frozen: ScopedFreeze, by: str) -> None:
    freeze = frozen.freeze
    await tx.execute(
        sql.freezes.insert,
        {
            "workspace_id": frozen.workspace_id,
            "id": freeze.id,
            "scope": scope_json(frozen),
            "start_at": freeze.start_at,
            "end_at": freeze.end_at,
            "after": freeze.after.value,
            "per_minute": freeze.per_minute,
            "running": freeze.running.value,
            "reason": freeze.reason,
            "by": by,
            "now": tx.now,
        },
    )


async def get(tx: Tx, freeze_id: FreezeId) -> FreezeRow | None:
    row = await tx.fetch_one(sql.freezes.get, {"id": freeze_id})
    return None if row is None else _freeze_row(row)


async def lock(tx: Tx, freeze_id: FreezeId) -> FreezeRow | None:
    row = await tx.fetch_one(sql.freezes.lock, {"id": freeze_id})
    return None if row is None else _freeze_row(row)


async def page(tx: Tx, before: UUID, limit: int, *, ended: bool) -> list[FreezeRow]:
    """The newest first."""
    params = {"before": before, "limit": limit, "ended": ended, "now": tx.now}
    return [_freeze_row(row) for row in await tx.fetch(sql.freezes.page, params)]


async def owned(tx: Tx, job_ids: Iterable[str], owner_id: PrincipalId) -> frozenset[str]:
    """Those of these jobs that are somebody's own."""
    params = {"job_ids": list(job_ids), "owner_id": owner_id}
    return frozenset(str(row["id"]) for row in await tx.fetch(sql.freezes.owned, params))


async def lift(tx: Tx, freeze_id: FreezeId, end_at: datetime, by: str) -> None:
    await tx.execute(sql.freezes.lift, {"id": freeze_id, "end_at": end_at, "by": by, "now": tx.now})


async def delete(tx: Tx, freeze_id: FreezeId) -> None:
    await tx.execute(sql.freezes.delete, {"id": freeze_id})


async def covered_with_work(tx: Tx, freeze_id: FreezeId, after: UUID, limit: int) -> list[JobId]:
    params = {
        "id": freeze_id,
        "workspace_id": tx.workspace_id,
        "after": after,
        "limit": limit,
        "now": tx.now,
    }
    return [row["id"] for row in await tx.fetch(sql.freezes.covered_with_work, params)]


async def startable_while_frozen(tx: Tx, limit: int) -> list[JobId]:
    rows = await tx.fetch(sql.freezes.startable_while_frozen, {"now": tx.now, "limit": limit})
    return [row["job_id"] for row in rows]


async def mark_started(tx: Tx) -> None:
    """All that could start under the freezes that are on is in line."""
    await tx.execute(sql.freezes.begin, {"now": tx.now})


async def startable_of(tx: Tx, job_ids: Iterable[JobId]) -> list[StartableRun]:
    rows = await tx.fetch(sql.freezes.startable_of, {"job_ids": list(job_ids)})
    return [
        StartableRun(row["run_id"], row["job_id"], Trigger(row["trigger"]), row["is_ready"]) for row in rows
    ]


async def list_runs_to_stop(tx: Tx, limit: int) -> list[RunId]:
    """Runs under way that a freeze wants cancelled, under their leases' locks."""
    rows = await tx.fetch(sql.freezes.to_stop, {"now": tx.now, "limit": limit})
    return [row["run_id"] for row in rows]


async def list_runs_to_release(tx: Tx, limit: int) -> list[ReleasedRun]:
    rows = await tx.fetch(sql.freezes.to_release, {"now": tx.now, "limit": limit})
    return [ReleasedRun(row["run_id"], row["job_id"], row["freeze_id"], row["per_minute"]) for row in rows]


async def reserve_slots(tx: Tx, freeze_id: FreezeId, takes: timedelta) -> datetime:
    """Reserve so much of the line that leaves at the freeze's rate; answers with where it begins."""
    row = await tx.fetch_one(sql.freezes.pace, {"id": freeze_id, "takes": takes, "now": tx.now})
    found: datetime = tx.now if row is None else row["starts_at"]
    return found


async def find_lifted(tx: Tx) -> LiftedFreeze | None:
    row = await tx.fetch_one(sql.freezes.to_thaw, {"now": tx.now})
    return None if row is None else LiftedFreeze(row["id"], row["thawed_to"])


async def held_timers(tx: Tx, lifted: LiftedFreeze, limit: int) -> list[JobId]:
    params = {"id": lifted.id, "after": lifted.thawed_to, "limit": limit}
    return [row["job_id"] for row in await tx.fetch(sql.freezes.held_timers, params)]


async def store_thaw_progress(tx: Tx, lifted: LiftedFreeze, to: UUID, *, done: bool) -> None:
    await tx.execute(sql.freezes.thawed, {"id": lifted.id, "to": to, "done": done, "now": tx.now})


async def count_covered_jobs(tx: Tx, frozen: ScopedFreeze, limit: int) -> tuple[list[JobId], int]:
    """The first of the active jobs it would cover, and how many there are."""
    rows = await tx.fetch(sql.freezes.covered, {"scope": scope_json(frozen), "limit": limit})
    return [row["id"] for row in rows], rows[0]["total"] if rows else 0


async def count_affected_runs(tx: Tx, frozen: ScopedFreeze) -> tuple[int, int]:
    """How many runs it would find ready, and how many under way."""
    params = {"scope": scope_json(frozen), "workspace_id": frozen.workspace_id}
    row = await tx.fetch_one(sql.freezes.standing, params)
    return (row["ready"], row["running"]) if row else (0, 0)


def scope_json(frozen: ScopedFreeze) -> Jsonb:
    named = {"jobs": frozen.jobs, "tags": frozen.tags, "queues": frozen.queues}
    return Jsonb({kind: sorted(names) for kind, names in named.items() if names})


def _freeze_row(row: Row) -> FreezeRow:
    return FreezeRow(scoped(row), row["created_by"], row["created_at"], row["lifted_by"], row["lifted_at"])


def scoped(row: Row) -> ScopedFreeze:
    scope = row["scope"]
    return ScopedFreeze(
        Freeze(
            row["id"],
            row["start_at"],
            row["end_at"],
            FreezePolicy(row["after"]),
            row["per_minute"],
            RunningPolicy(row["running"]),
            row["reason"],
        ),
        row["workspace_id"],
        frozenset(scope.get("jobs", ())),
        frozenset(scope.get("tags", ())),
        frozenset(scope.get("queues", ())),
    )
