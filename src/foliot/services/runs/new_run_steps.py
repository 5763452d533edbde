"""Runs that somebody asks for, of the one job in hand: they wait their turn and never skip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from foliot.domain.freeze import freeze_at
from foliot.domain.ids import RunId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.overlapping import Admission, admit
from foliot.domain.run import Trigger, WaitsFor
from foliot.domain.starting import MayNot, may_start_by
from foliot.services.jobs.lock_steps import InHand
from foliot.storage.queue import new_runs
from foliot.storage.queue.new_runs import Made
from foliot.storage.timers import timers
from foliot.storage.timers.timers import Told
from foliot.storage.tx import Tx

_GOING = frozenset((JobStatus.ACTIVE, JobStatus.PENDING))


@dataclass(frozen=True, slots=True)
class Asked:
    """A run to make. `planned_local` is set where it stands for a time that a schedule named."""

    trigger: Trigger
    planned_for: datetime
    by: str
    input: Any = None
    retry_of: RunId | None = None
    planned_local: datetime | None = None
    fold: int = 0
    schedule_rev: int | None = None
    override: bool = False  # start under a freeze


async def make(tx: Tx, hand: InHand, asked: list[Asked]) -> list[RunId]:
    """In the order given: the first may start at once if nothing is live, the others stand behind it."""
    row, told = hand.row, Told()
    made = []
    for each in asked:
        run = _made(tx, hand, each, told)
        told.numbers += 1
        if run.skip is not None:
            told.skips += 1
        elif run.waits_for is WaitsFor.TURN:
            told.waiting += 1
        else:
            told.live, told.live_run_id = told.live + 1, run.id
        made.append(replace(run, number=row.number + told.numbers))
    await new_runs.make(tx, made)
    await timers.settle(tx, {row.job_id: told})
    return [run.id for run in made]


def _made(tx: Tx, hand: InHand, asked: Asked, told: Told) -> Made:
    row, job, now = hand.row, hand.job, tx.now
    waits_for: WaitsFor | None = None
    at, until, skip = now, None, None
    live, waiting = row.live + told.live, row.waiting + told.waiting
    if (
        live == 0 and row.status not in _GOING
    ):  # those in line wait for the resume, and would hold this one with them
        waiting = 0
    if admit(job.overlap, live, waiting, patient=True) is Admission.WAIT:
        waits_for = WaitsFor.TURN
    elif not asked.override and freeze_at(hand.around.freezes_of(row), now) is not None:
        waits_for = WaitsFor.FREEZE
    if waits_for is not WaitsFor.TURN:
        allowed = may_start_by(asked.trigger, job.timetable, now)
        if isinstance(allowed, MayNot):  # a backfill whose calendar never opens again
            skip = allowed.reason
        else:
            at = allowed.at
            until = allowed.ready_until if waits_for is None else allowed.until
    return Made(
        id=RunId(tx.new_id()),
        workspace_id=row.workspace_id,
        job_id=row.job_id,
        number=0,
        schedule_rev=row.schedule_rev if asked.schedule_rev is None else asked.schedule_rev,
        rules=row.rules,
        trigger=asked.trigger,
        planned_for=asked.planned_for,
        available_at=at,
        waits_for=waits_for,
        expires_at=until,
        input=asked.input,
        triggered_by=asked.by,
        retry_of=asked.retry_of,
        planned_local=asked.planned_local,
        fold=asked.fold,
        skip=skip,
    )
