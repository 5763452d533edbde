"""What Foliot records after a night of downtime, for each misfire policy. Nothing runs and no database is needed.

.venv/bin/python examples/planning.py
"""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from foliot.domain.explain.records import quote
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.job import Job, Timer
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.due_job import DueJob
from foliot.domain.planning.plan import plan
from foliot.domain.policy import Misfire, MisfireRule
from foliot.domain.run_plan import EndGateWait, NewRun, PlanRecord, SkippedRange, SkippedTime
from foliot.domain.schedule import Cron, Timetable, planned_after

STOPPED = datetime(2027, 1, 4, 22, 5, tzinfo=UTC)
BACK = datetime(2027, 1, 5, 6, 2, tzinfo=UTC)


def main() -> None:
    timetable = Timetable(Cron("*/30 * * * *", "America/Bogota"))
    for rule in MisfireRule:
        job = Job(
            JobId(UUID(int=1)), WorkspaceId(UUID(int=2)), timetable, misfire=Misfire(rule, max_catch_up=3)
        )
        first = planned_after(timetable, STOPPED)
        due_at = None if first is None else first.due_at
        made = plan(DueJob(job, JobStatus.ACTIVE, Timer(STOPPED, due_at, due_at)), BACK)
        print(f"misfire: {rule.value}")
        for record in made.records:
            print("  " + in_words(job, record))
        if made.timer.due_at is not None:
            print(f"  next: {quote(job, made.timer.due_at)}\n")


def in_words(job: Job, record: PlanRecord) -> str:
    match record:
        case NewRun():
            state = "ready" if record.waits_for is None else f"waits for its {record.waits_for.value}"
            return f"run for {quote(job, record.planned.planned_for)}, {state}"
        case SkippedTime():
            return f"skipped {quote(job, record.planned.planned_for)} ({record.reason.value})"
        case SkippedRange():
            first, last = (quote(job, end.planned_for) for end in (record.first, record.last))
            return f"one record for {record.count} times from {first} to {last} ({record.reason.value})"
        case EndGateWait():
            return f"the waiting run ends skipped ({record.reason.value})"


if __name__ == "__main__":
    main()
