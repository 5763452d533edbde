"""Short functions that build the arguments of decisions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.job import Job, JobLoad, Timer
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.due_job import DueJob
from foliot.domain.run_plan import EndGateWait, NewRun, Plan, SkippedRange, SkippedTime
from foliot.domain.schedule import Cron, Interval, Schedule, Timetable, planned_after

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def at(text: str) -> datetime:
    """2027-01-05 08:00, in UTC; a bare time is on that day."""
    return datetime.fromisoformat(text if "-" in text else f"2027-01-05 {text}").replace(tzinfo=UTC)


def make_uuid(number: int) -> UUID:
    return UUID(int=number)


def run_id(number: int) -> RunId:
    return RunId(make_uuid(number))


def job_id(number: int) -> JobId:
    return JobId(make_uuid(number))


def every(seconds: float, anchor: str = "00:00") -> Interval:
    return Interval(timedelta(seconds=seconds), at(anchor))


def make_job(schedule: Schedule | None = None, **rest: Any) -> Job:
    about = {
        name: rest.pop(name) for name in ("start_at", "end_at", "window", "calendars", "seed") if name in rest
    }
    timetable = Timetable(schedule or Cron("*/10 * * * *"), **about)
    return Job(job_id(1), WorkspaceId(make_uuid(9)), timetable, **rest)


def make_due_job(job: Job, cursor: datetime, **rest: Any) -> DueJob:
    """An active job whose timer stands where it should after `cursor`."""
    if "timer" not in rest:
        first = planned_after(job.timetable, cursor)
        due_at = None if first is None else first.due_at
        rest["timer"] = Timer(cursor, due_at, due_at)
    load = JobLoad(rest.pop("live", 0), rest.pop("waiting", 0))
    rest.setdefault("load", load)
    return DueJob(job, rest.pop("status", JobStatus.ACTIVE), **rest)


def describe_plan(plan: Plan) -> list[str]:
    """The records as a reader would say them: `run 08:00`, `skip 08:10 overlap`, `gap 00:00..07:50 48 misfire`."""
    return [_reported(record) for record in plan.records]


def _reported(record: NewRun | SkippedTime | SkippedRange | EndGateWait) -> str:
    match record:
        case NewRun():
            words = ["run", f"{record.planned.planned_for:%H:%M:%S}".removesuffix(":00")]
            if record.waits_for is not None:
                words.append(f"waits for {record.waits_for.value}")
            if record.catch_up:
                words.append("late")
            if record.cancels_live:
                words.append("cancels")
            return " ".join(words)
        case SkippedTime():
            return (
                f"skip {f'{record.planned.planned_for:%H:%M:%S}'.removesuffix(':00')} {record.reason.value}"
            )
        case SkippedRange():
            first, last = (
                f"{end.planned_for:%H:%M:%S}".removesuffix(":00") for end in (record.first, record.last)
            )
            return f"gap {first}..{last} {record.count} {record.reason.value}"
        case EndGateWait():
            return f"end wait {record.reason.value}"
