"""Previews of writes on the wire."""

from __future__ import annotations

from foliot.services.dry_run import CalendarPreview, JobPreview
from foliot.web.mapping.calendars import calendar_out
from foliot.web.mapping.jobs import job_out, times_out
from foliot.wire.dry_run import CalendarDryRunOut, DifferenceOut, DryRunOut, MovedJobOut, MovedOut

SHOWN = 5


def job_preview_out(preview: JobPreview) -> DryRunOut:
    changes = preview.difference
    job = None if preview.job is None else job_out(preview.job)
    schedule = None if preview.job is None else preview.job.definition.spec.schedule
    return DryRunOut(
        job=job,
        words=None if job is None else job.schedule.words,
        items=[] if schedule is None else times_out(schedule, preview.times[:SHOWN]),
        warnings=list(preview.warnings),
        difference=DifferenceOut(
            added=[each.due_at for each in changes.added],
            removed=[each.due_at for each in changes.removed],
            moved=[MovedOut(before=each.before.due_at, after=each.after.due_at) for each in changes.moved],
            unchanged=changes.unchanged,
            until=changes.until,
        ),
    )


def calendar_preview_out(preview: CalendarPreview) -> CalendarDryRunOut:
    return CalendarDryRunOut(
        calendar=None if preview.calendar is None else calendar_out(preview.calendar),
        jobs=preview.jobs,
        moved=[
            MovedJobOut(job_id=each.id, job_name=each.name, before=each.before, after=each.after)
            for each in preview.moved
        ],
        complete=preview.is_complete,
    )
