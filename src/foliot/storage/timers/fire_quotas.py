"""Quotas of fires: how many runs the schedules of a workspace, or of the jobs of one member, may start in a day (UTC).

Why: docs/decisions/702-rates-and-quotas.md
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from uuid import UUID

from foliot.domain.ids import JobId, PrincipalId, WorkspaceId
from foliot.domain.run_plan import NewRun, Plan
from foliot.storage.queries import sql
from foliot.storage.timers.fires import PlannedTimer
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx

Subject = tuple[WorkspaceId, UUID]


@dataclass(slots=True)
class FireQuotas:
    """The fires that are left today, by subject. Planning takes from it, so that the jobs of a batch share what is left."""

    left: dict[Subject, int] = field(default_factory=dict)
    closed: frozenset[WorkspaceId] = frozenset()  # a budget of theirs is used up
    owners: Mapping[JobId, PrincipalId] = field(default_factory=dict)

    @property
    def workspace_ids(self) -> frozenset[WorkspaceId]:
        return self.closed.union(workspace_id for workspace_id, _ in self.left)

    def left_for(self, row: TimerRow) -> int | None:
        """Return how often the job may still fire today; None without a quota."""
        if row.workspace_id in self.closed:
            return 0
        return min((self.left[each] for each in self.subjects(row)), default=None)

    def take(self, row: TimerRow, plan: Plan) -> None:
        fires = count_fires(plan)
        for subject in self.subjects(row):
            self.left[subject] -= fires

    def subjects(self, row: TimerRow) -> list[Subject]:
        if not self.left:
            return []
        both = (row.workspace_id, row.workspace_id), (row.workspace_id, self.owners.get(row.job_id))
        return [
            (workspace_id, subject)
            for workspace_id, subject in both
            if (workspace_id, subject) in self.left and subject
        ]


def count_fires(plan: Plan) -> int:
    return sum(isinstance(record, NewRun) for record in plan.records)


async def lock(tx: Tx, workspaces: Iterable[WorkspaceId], job_ids: Collection[JobId]) -> FireQuotas:
    """Lock the quotas of these workspaces and load who owns the jobs. Needs the locks of their timers."""
    params = {"workspace_ids": list(workspaces), "today": tx.now.astimezone(UTC).date()}
    rows = await tx.fetch(sql.fire_quotas.lock, params)
    if not rows:
        return FireQuotas()
    owners = await tx.fetch_pairs(JobId, PrincipalId, sql.fire_quotas.owners, {"job_ids": list(job_ids)})
    left = {
        (row["workspace_id"], row["subject_id"]): max(0, row["per_day"] - row["used"])
        for row in rows
        if row["per_day"] is not None
    }
    return FireQuotas(left, frozenset(row["workspace_id"] for row in rows if row["is_closed"]), dict(owners))


async def spend(tx: Tx, quotas: FireQuotas, planned: Iterable[PlannedTimer]) -> None:
    """Count the fires of plans that are written in this transaction."""
    if not quotas.left:
        return
    spent: dict[Subject, int] = {}
    for each in planned:
        for subject in quotas.subjects(each.row):
            spent[subject] = spent.get(subject, 0) + count_fires(each.plan)
    if spent:
        params = {
            "workspace_ids": [workspace_id for workspace_id, _ in spent],
            "subject_ids": [subject for _, subject in spent],
            "fires": list(spent.values()),
            "today": tx.now.astimezone(UTC).date(),
        }
        await tx.execute(sql.fire_quotas.spend, params)


async def used_up_until(tx: Tx, job_ids: Collection[JobId]) -> dict[JobId, datetime]:
    """Return when those of the jobs may fire again whose workspace or owner has no fire left today."""
    today = tx.now.astimezone(UTC).date()
    tomorrow = datetime.combine(today, time.min, UTC) + timedelta(days=1)
    params = {"job_ids": list(job_ids), "today": today}
    return {JobId(row["id"]): tomorrow for row in await tx.fetch(sql.fire_quotas.list_used_up, params)}


async def close(tx: Tx, workspace_id: WorkspaceId, until: datetime) -> None:
    """Stop all schedules of the workspace at least until then, because a budget is used up."""
    await tx.execute(sql.fire_quotas.close, {"workspace_id": workspace_id, "until": until})


async def set_closed_until(tx: Tx, workspace_id: WorkspaceId, until: datetime | None) -> None:
    """Stop them exactly until then, as all budgets together say; None opens them."""
    await tx.execute(sql.fire_quotas.set_closed_until, {"workspace_id": workspace_id, "until": until})


async def closed_until(tx: Tx) -> datetime | None:
    """Return until when a used-up budget stops the schedules of the workspace."""
    return await tx.fetch_one_as(datetime, sql.fire_quotas.load_closed_until)


async def put(tx: Tx, workspace_id: WorkspaceId, subject_id: UUID, per_day: int | None) -> None:
    """Set the quota of a workspace, named by its own id, or of a member; None removes it."""
    params = {"workspace_id": workspace_id, "subject_id": subject_id}
    if per_day is None:
        await tx.execute(sql.fire_quotas.remove, params)
    else:
        await tx.execute(sql.fire_quotas.put, {**params, "per_day": per_day})
