"""Freezes, the jobs they cover, and the runs and timers they hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.freeze import Freeze
from foliot.domain.ids import FreezeId, JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.run import Trigger
from foliot.storage.filter_sql import filled
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class ScopedFreeze:
    """A freeze and its scope: the whole workspace, or the named jobs, tags and queues."""

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
    """List the freezes in force at any time from `earliest` until now."""
    return await tx.fetch_as(ScopedFreeze, _LIST_SINCE, {"since": earliest})


@dataclass(frozen=True, slots=True)
class FreezeRow:
    """A freeze with its authors."""

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
    is_ready: bool  # else it waits at a limit


@dataclass(frozen=True, slots=True)
class ReleasedRun:
    """A run that no freeze holds any more, and the freeze whose rate limits its start, if any."""

    run_id: RunId
    job_id: JobId
    freeze_id: FreezeId | None
    per_minute: int | None


@dataclass(frozen=True, slots=True)
class LiftedFreeze:
    """A freeze lifted early: its timers are due at its original end and must be reset."""

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
        },
    )


async def get(tx: Tx, freeze_id: FreezeId) -> FreezeRow | None:
    return await tx.fetch_one_as(FreezeRow, _GET, {"id": freeze_id})


async def lock(tx: Tx, freeze_id: FreezeId) -> FreezeRow | None:
    return await tx.fetch_one_as(FreezeRow, _LOCK, {"id": freeze_id})


async def page(tx: Tx, before: UUID, limit: int, *, ended: bool) -> list[FreezeRow]:
    """List freezes, newest first."""
    return await tx.fetch_as(FreezeRow, _PAGE, {"before": before, "limit": limit, "ended": ended})


async def list_owned(tx: Tx, job_ids: Iterable[str], owner_id: PrincipalId) -> frozenset[str]:
    """Return those of these jobs that the principal owns."""
    params = {"job_ids": list(job_ids), "owner_id": owner_id}
    return frozenset(await tx.fetch_as(str, sql.freezes.list_owned, params))


async def lift(tx: Tx, freeze_id: FreezeId, end_at: datetime, by: str) -> None:
    await tx.execute(sql.freezes.lift, {"id": freeze_id, "end_at": end_at, "by": by})


async def delete(tx: Tx, freeze_id: FreezeId) -> None:
    await tx.execute(sql.freezes.delete, {"id": freeze_id})


async def list_covered_with_work(tx: Tx, freeze_id: FreezeId, after: UUID, limit: int) -> list[JobId]:
    params = {"id": freeze_id, "after": after, "limit": limit}
    return await tx.fetch_as(JobId, sql.freezes.list_covered_with_work, params)


async def list_startable_while_frozen(tx: Tx, limit: int) -> list[JobId]:
    return await tx.fetch_as(JobId, sql.freezes.list_startable_while_frozen, {"limit": limit})


async def mark_started(tx: Tx) -> None:
    """Record that every run that could start under the freezes in force is waiting."""
    await tx.execute(sql.freezes.mark_started)


async def list_startable(tx: Tx, job_ids: Iterable[JobId]) -> list[StartableRun]:
    return await tx.fetch_as(StartableRun, sql.freezes.list_startable, {"job_ids": list(job_ids)})


async def list_runs_to_stop(tx: Tx, limit: int) -> list[RunId]:
    """Lock and list running runs that a freeze cancels."""
    return await tx.fetch_as(RunId, sql.freezes.lock_runs_to_stop, {"limit": limit})


async def list_runs_to_release(tx: Tx, limit: int) -> list[ReleasedRun]:
    return await tx.fetch_as(ReleasedRun, sql.freezes.list_runs_to_release, {"limit": limit})


async def reserve_slots(tx: Tx, freeze_id: FreezeId, takes: timedelta) -> datetime:
    """Reserve start times at the freeze's rate and return the first of them."""
    params = {"id": freeze_id, "takes": takes}
    return await tx.fetch_one_as(datetime, sql.freezes.reserve_slots, params) or tx.now


async def find_lifted(tx: Tx) -> LiftedFreeze | None:
    return await tx.fetch_one_as(LiftedFreeze, sql.freezes.find_lifted)


async def list_held_timers(tx: Tx, lifted: LiftedFreeze, limit: int) -> list[JobId]:
    params = {"id": lifted.id, "after": lifted.thawed_to, "limit": limit}
    return await tx.fetch_as(JobId, sql.freezes.list_held_timers, params)


async def store_thaw_progress(tx: Tx, lifted: LiftedFreeze, to: UUID, *, done: bool) -> None:
    await tx.execute(sql.freezes.store_thaw_progress, {"id": lifted.id, "to": to, "done": done})


async def count_covered_jobs(tx: Tx, frozen: ScopedFreeze, limit: int) -> tuple[list[JobId], int]:
    """Return the first active jobs that the scope covers, and how many there are."""
    params = {"scope": scope_json(frozen), "limit": limit}
    rows = await tx.fetch_pairs(JobId, int, sql.freezes.list_covered, params)
    return [job_id for job_id, _ in rows], rows[0][1] if rows else 0


async def count_affected_runs(tx: Tx, frozen: ScopedFreeze) -> tuple[int, int]:
    """Count the ready and the running runs that the scope covers."""
    params = {"scope": scope_json(frozen), "workspace_id": frozen.workspace_id}
    [counts] = await tx.fetch_pairs(int, int, sql.freezes.count_covered_runs, params)
    return counts


def scope_json(frozen: ScopedFreeze) -> Jsonb:
    named = {"jobs": frozen.jobs, "tags": frozen.tags, "queues": frozen.queues}
    return Jsonb({kind: sorted(names) for kind, names in named.items() if names})


def freeze_columns(prefix: str = "") -> str:
    """Return the select list of a `ScopedFreeze`; `prefix` nests it in another value."""
    columns = {f"freeze.{field.name}": field.name for field in fields(Freeze)} | {
        "workspace_id": "workspace_id",
        "jobs": "COALESCE(scope -> 'jobs', '[]')",
        "tags": "COALESCE(scope -> 'tags', '[]')",
        "queues": "COALESCE(scope -> 'queues', '[]')",
    }
    return ", ".join(f'{column} AS "{prefix}{name}"' for name, column in columns.items())


_LIST_SINCE = filled(sql.freezes.list_since, columns=freeze_columns())
_GET, _LOCK, _PAGE = (
    filled(query, columns=freeze_columns("scoped."))
    for query in (sql.freezes.get, sql.freezes.lock, sql.freezes.page)
)
