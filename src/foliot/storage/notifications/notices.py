"""Notices: facts that wait for the notifier, and the names of the jobs and runs they are about."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.notifications.notice import JobNames, Notice, NoticeEvent, RunNames
from foliot.storage.jobs.jobs import ENGINE
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class NewNotice:
    workspace_id: WorkspaceId
    event: NoticeEvent
    job_id: JobId | None = None
    run_id: RunId | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


async def insert(tx: Tx, notices: Sequence[NewNotice]) -> None:
    if not notices:
        return
    params = {
        "workspace_ids": [each.workspace_id for each in notices],
        "events": [each.event.value for each in notices],
        "job_ids": [each.job_id for each in notices],
        "run_ids": [each.run_id for each in notices],
        "facts": [Jsonb(each.facts) for each in notices],
    }
    await tx.execute(sql.notices.insert, params)


async def list_waiting_workspaces(tx: Tx, limit: int) -> list[WorkspaceId]:
    """List workspaces with notices, due reminders or due digests. Needs an engine transaction."""
    return await tx.fetch_as(WorkspaceId, sql.notices.list_waiting_workspaces, {"limit": limit})


async def find_next_due(tx: Tx) -> datetime | None:
    """Return when the next reminder or digest of any workspace is due."""
    return await tx.fetch_one_as(datetime, sql.notices.find_next_due)


async def lock_oldest(tx: Tx, limit: int) -> list[Notice]:
    """Lock the oldest notices of the workspace, in their order."""
    return await tx.fetch_as(Notice, sql.notices.lock_oldest, {"limit": limit})


async def delete(tx: Tx, seqs: Collection[int]) -> None:
    await tx.execute(sql.notices.delete, {"seqs": list(seqs)})


async def load_jobs(tx: Tx, job_ids: Collection[JobId]) -> dict[JobId, JobNames]:
    found = await tx.fetch_as(JobNames, sql.notices.load_jobs, {"job_ids": list(job_ids), "engine": ENGINE})
    return {each.id: each for each in found}


async def load_runs(tx: Tx, run_ids: Collection[RunId]) -> dict[RunId, RunNames]:
    found = await tx.fetch_as(RunNames, sql.notices.load_runs, {"run_ids": list(run_ids)})
    return {RunId(each.id): each for each in found}
