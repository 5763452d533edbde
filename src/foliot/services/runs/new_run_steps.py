"""Create runs that a person or a backfill requests: they wait for their turn and never skip."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foliot.domain.admission import StartRequest, admit
from foliot.domain.freeze import freeze_at
from foliot.domain.ids import RunId
from foliot.domain.job import JobLoad
from foliot.domain.lifecycle import JobStatus
from foliot.domain.run import Trigger
from foliot.domain.settlement.job_settlement import JobSettlement
from foliot.services.jobs.lock_steps import LockedJob
from foliot.storage.queue import run_queue
from foliot.storage.queue.run_queue import UnscheduledRun
from foliot.storage.tx import Tx

_RUNNING = frozenset((JobStatus.ACTIVE, JobStatus.PENDING))


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run to create. `planned_local` is set where it stands for a time that a schedule named."""

    trigger: Trigger
    planned_for: datetime
    by: str
    input: Any = None
    retry_of: RunId | None = None
    planned_local: datetime | None = None
    fold: int = 0
    schedule_rev: int | None = None
    override: bool = False  # start under a freeze


async def create_runs(tx: Tx, locked: LockedJob, asked: list[RunRequest]) -> list[RunId]:
    """Create the runs in the order given. The first may start at once if no run is live; the others wait behind it."""
    writer = locked.writer(tx)
    job = writer.job(locked.row.job_id)
    made = []
    for each in asked:
        run = _new_run(tx, locked, each, job)
        made.append(run)
        if run.skip is not None:
            job.add_skip()
        else:
            job.add_run(run.id, run.waits_for)
    await run_queue.insert_runs(tx, made)
    await writer.write()
    return [run.id for run in made]


def _new_run(tx: Tx, locked: LockedJob, asked: RunRequest, job: JobSettlement) -> UnscheduledRun:
    row, now, load = locked.row, tx.now, job.state.load
    if load.live == 0 and row.status not in _RUNNING:  # waiting runs wait for the resume; this one need not
        load = JobLoad()
    request = StartRequest(
        job.state.job,
        now,
        asked.trigger,
        not_before=now,
        load=load,
        is_patient=True,
        is_frozen=not asked.override and freeze_at(locked.context.freezes_of(row), now) is not None,
    )
    return UnscheduledRun(
        id=RunId(tx.new_id()),
        workspace_id=row.workspace_id,
        job_id=row.job_id,
        number=job.next_number(),
        schedule_rev=row.schedule_rev if asked.schedule_rev is None else asked.schedule_rev,
        rules=row.rules,
        trigger=asked.trigger,
        planned_for=asked.planned_for,
        available_at=now,
        input=asked.input,
        triggered_by=asked.by,
        retry_of=asked.retry_of,
        planned_local=asked.planned_local,
        fold=asked.fold,
    ).admitted(admit(request))
