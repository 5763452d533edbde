"""Load what decisions read beside the timers of locked jobs: calendars, freezes, gates, disabled types. Most jobs have none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from foliot.domain.dependencies import Dependencies
from foliot.domain.freeze import Freeze, freeze_holding
from foliot.domain.ids import JobId, RunId
from foliot.domain.job import Job
from foliot.domain.planning.due_job import DueJob
from foliot.domain.run import Trigger, asked_at
from foliot.domain.schedule import Calendar
from foliot.domain.settlement.attempt_end import JobState
from foliot.storage.jobs import calendars, dependencies, freezes, job_types
from foliot.storage.jobs.calendars import NO_CALENDARS, JobCalendars
from foliot.storage.jobs.freezes import ScopedFreeze
from foliot.storage.jobs.job_types import DisabledTypes
from foliot.storage.timers.fire_quotas import FireQuotas
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class JobContext:
    """Calendars, freezes, gates and disabled types of a batch of jobs."""

    calendars: JobCalendars = NO_CALENDARS
    freezes: tuple[ScopedFreeze, ...] = ()
    gates: dict[JobId, Dependencies] = field(default_factory=dict)
    off: DisabledTypes = frozenset()
    fire_quotas: FireQuotas = field(default_factory=FireQuotas)

    def job(self, row: TimerRow) -> Job:
        return row.rules.job(row.job_id, row.workspace_id, row.schedule_rev, self.calendars_of(row))

    def calendars_of(self, row: TimerRow) -> tuple[Calendar, ...]:
        return self.calendars.of(row.workspace_id, row.rules.spec)

    def freezes_of(self, row: TimerRow) -> tuple[Freeze, ...]:
        if not self.freezes:
            return ()
        spec = row.rules.spec
        covering = (
            each for each in self.freezes if each.covers(row.workspace_id, row.job_id, spec.tags, spec.queue)
        )
        return tuple(each.freeze for each in covering)

    def is_frozen(self, row: TimerRow, run_id: RunId, trigger: Trigger, now: datetime) -> bool:
        """Return whether a freeze holds this run. A run that a person requested during a freeze is not held by it."""
        found = self.freezes_of(row)
        return bool(found) and freeze_holding(found, now, asked_at(run_id, trigger)) is not None

    def is_off(self, row: TimerRow) -> bool:
        return bool(self.off) and (row.workspace_id, row.rules.spec.type) in self.off

    def state(self, row: TimerRow) -> JobState:
        return JobState(
            job=self.job(row),
            status=row.status,
            timer=row.timer,
            load=row.load,
            failures_in_a_row=row.failures_in_a_row,
        )

    def due(self, row: TimerRow) -> DueJob:
        job = self.job(row)
        return DueJob(
            job=job,
            status=row.status,
            timer=row.timer,
            runs_created=row.runs_created,
            load=row.load,
            live_until=row.live_until,
            skip_next=row.skip_next is not None,
            skip_until=row.skip_until,
            freezes=self.freezes_of(row),
            gate=self.gates.get(row.job_id),
            is_type_off=self.is_off(row),
            fires_left=self.fire_quotas.left_for(row),
            is_over_budget=row.workspace_id in self.fire_quotas.closed,
            rules=row.rules if row.is_fast_path and not job.timetable.calendars else None,
        )


async def load_job_context(
    tx: Tx,
    rows: Iterable[TimerRow],
    *,
    gates: bool = False,
    frozen: Sequence[ScopedFreeze] | None = None,
    off: DisabledTypes | None = None,
    quotas: FireQuotas | None = None,
) -> JobContext:
    """Load the context of locked timers. `frozen` (freezes since the earliest cursor) and `off` are given where they are known already.
    `quotas` bind planned times alone, so only a tick gives them.

    Planning needs `gates`; decisions about existing runs do not.
    """
    rows = list(rows)
    gated = {row.job_id: row.rules.spec.depends_when for row in rows if row.has_gate} if gates else {}
    if frozen is None:
        earliest = min((row.timer.cursor for row in rows), default=tx.now)
        frozen = await freezes.list_since(tx, min(earliest, tx.now))
    return JobContext(
        calendars=await calendars.load(
            tx, {row.workspace_id for row in rows}, (row.rules.spec for row in rows)
        ),
        freezes=tuple(frozen),
        gates=await dependencies.load_facts(tx, gated),
        off=await _switched_off(tx, rows) if off is None and gates else off or frozenset(),
        fire_quotas=FireQuotas() if quotas is None else quotas,
    )


async def _switched_off(tx: Tx, rows: Sequence[TimerRow]) -> DisabledTypes:
    return await job_types.disabled_in(tx, {row.workspace_id for row in rows})
