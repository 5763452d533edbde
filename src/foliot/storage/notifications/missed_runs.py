"""Find what should have happened and did not: timers that nobody fired, runs that do not start or end, and ends that are near."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.notifications.notice import NoticeEvent
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class UnservedQueue:
    """Runs that wait since `since`, because no live worker serves their queue and type."""

    queue: str
    type: str
    runs: int
    since: datetime

    @property
    def subject(self) -> str:
        return f"queue:{self.queue}/{self.type}"


@dataclass(frozen=True, slots=True)
class RunTrouble:
    """A run that is late, slow or stuck since `since`. `usual` is the usual length of its job's runs, in seconds."""

    event: NoticeEvent
    job_id: JobId
    run_id: RunId
    since: datetime
    waits_for: str | None = None
    usual: float | None = None

    @property
    def subject(self) -> str:
        return f"{self.event.value}:{self.job_id}"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The instants before which a run is late, slow, stuck, or silent; slow is also `times` as long as usual."""

    late: datetime
    slow: datetime
    stuck: datetime
    silent: datetime
    times: float


async def list_overdue_workspaces(tx: Tx, by: datetime, limit: int) -> list[WorkspaceId]:
    """List workspaces with something overdue, or with a queue that was. Needs an engine transaction."""
    params = {"by": by, "limit": limit}
    found = await tx.fetch_as(WorkspaceId, sql.missed_runs.list_overdue_workspaces, params)
    known = await tx.fetch_as(WorkspaceId, sql.missed_runs.list_workspaces_with_open_queues, {"limit": limit})
    return list(dict.fromkeys([*found, *known]))


async def count_overdue(tx: Tx, by: datetime, limit: int) -> int:
    """Count overdue timers of all workspaces, up to the limit."""
    return await tx.fetch_value(int, sql.missed_runs.count_overdue, {"by": by, "limit": limit})


async def insert_missed(tx: Tx, by: datetime, limit: int) -> int:
    """Write a notice for each overdue job of the workspace that has no open incident; return how many."""
    params = {"by": by, "limit": limit}
    written = await tx.execute(sql.missed_runs.insert_missed, params)
    await tx.execute(sql.missed_runs.mark_overdue, params)
    return written


async def list_unserved(tx: Tx, by: datetime, limit: int) -> list[UnservedQueue]:
    return await tx.fetch_as(UnservedQueue, sql.missed_runs.list_unserved, {"by": by, "limit": limit})


async def list_open_queues(tx: Tx) -> set[str]:
    """Return the subjects of open incidents about queues, and of those that wait for the notifier."""
    found = await tx.fetch_as(str, sql.missed_runs.list_open_queues)
    waiting = await tx.fetch_as(str, sql.missed_runs.list_waiting_queues)
    return {*found, *waiting}


async def insert_scheduler_error(tx: Tx, workspace_id: WorkspaceId, job_id: JobId, reason: str) -> None:
    """Write the notice and the audit entry of a job that could not be planned. The caller has locked its timer."""
    params = {"workspace_id": workspace_id, "job_id": job_id, "id": tx.new_id(), "reason": reason}
    await tx.execute(sql.missed_runs.insert_scheduler_error, params)


async def list_workspaces_with_open_runs(tx: Tx, limits: RunLimits, limit: int) -> list[WorkspaceId]:
    """List workspaces whose runs may be in trouble. Needs an engine transaction."""
    params = {"late": limits.late, "slow": limits.slow, "stuck": limits.stuck, "limit": limit}
    return await tx.fetch_as(WorkspaceId, sql.missed_runs.list_workspaces_with_open_runs, params)


async def list_run_troubles(tx: Tx, limits: RunLimits, limit: int) -> list[RunTrouble]:
    params = {"limit": limit}
    late = await tx.fetch_as(RunTrouble, sql.missed_runs.list_late, {**params, "late": limits.late})
    slow = await tx.fetch_as(
        RunTrouble, sql.missed_runs.list_slow, {**params, "slow": limits.slow, "times": limits.times}
    )
    stuck = await tx.fetch_as(
        RunTrouble, sql.missed_runs.list_stuck, {**params, "stuck": limits.stuck, "silent": limits.silent}
    )
    return [*late, *slow, *stuck]


async def list_open_run_troubles(tx: Tx) -> set[str]:
    """Return the subjects of open incidents about late, slow and stuck runs, and of those that wait for the notifier."""
    return set(await tx.fetch_as(str, sql.missed_runs.list_open_run_troubles))


async def insert_expiring(tx: Tx, within: timedelta, limit: int) -> int:
    """Write a notice for each job and key of the workspace that ends soon and has none yet; return how many."""
    until = tx.now + within
    params = {
        "until": until,
        "within": within,
        "from_text": tx.now.isoformat(),
        "until_text": until.isoformat(),
        "limit": limit,
    }
    await tx.execute(sql.missed_runs.forget_expiries)
    return await tx.execute(sql.missed_runs.insert_expiring, params)


async def list_workspaces_after(tx: Tx, after: UUID, limit: int) -> list[WorkspaceId]:
    """List workspaces that are not archived, by id. Needs an engine transaction."""
    params = {"after": after, "limit": limit}
    return await tx.fetch_as(WorkspaceId, sql.missed_runs.list_workspaces_after, params)
