"""Explain what a job did, or will do, at one instant: one sentence, facts, and the next step.

Console, CLI, API and agent tools print this text. Times are in the job's own zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.explain.reasons import AHEAD, SENTENCES
from foliot.domain.explain.records import Explanation, Recorded, Verdict, explain_record, quote
from foliot.domain.freeze import Freeze, FreezePolicy, freeze_at
from foliot.domain.job import Job
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.missed import TICK
from foliot.domain.schedule import (
    MOST_TIMES,
    Manual,
    PlannedTime,
    SkipReason,
    count_between,
    latest_until,
    planned_after,
)
from foliot.domain.schedule.work_budget import work_budget

CLOSE_ENOUGH = timedelta(minutes=1)  # people ask about 14:00, not about 14:00:00.000
LOOK_BACK = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Question:
    """A job, an instant, and the facts about it. `job` is the definition in force at that instant."""

    job: Job
    status: JobStatus
    created_at: datetime
    at: datetime
    now: datetime
    record: Recorded | None = None  # the record of that planned time, or the gap record that covers it
    runs_created: int = 0
    skip_next: bool = False
    skip_until: datetime | None = None
    next_at: datetime | None = None  # the next time of its timer; with a fixed delay the only known time
    status_reason: str | None = None  # why it is paused, disabled or failed
    paused_until: datetime | None = None
    freezes: tuple[Freeze, ...] = ()
    switched_off: str | None = None  # the type is disabled in the workspace, for this reason
    waits_for: str | None = (
        None  # what a fixed_delay or triggered job waits for: "run 12", "the job daily sync"
    )


def explain(question: Question) -> Explanation:
    """Explain what happened, or will happen, to this job at that instant."""
    with work_budget():
        return _explain(question)


def _explain(question: Question) -> Explanation:
    if question.at < question.created_at:
        created = quote(question.job, question.created_at)
        return Explanation(
            Verdict.NOT_CREATED,
            f"The job did not exist then; it was created on {created}.",
            _nearest(question),
        )
    planned = _planned_near(question.job, question.at)
    record = question.record
    is_between = record is not None and record.planned_until is not None and planned is None
    if record is not None and not is_between:
        return explain_record(question.job, record)
    if planned is None:
        return _not_planned(question)
    if planned.due_at > question.now:
        return _future(question, planned)
    return _unrecorded(question, planned)


def nearest(job: Job, created_at: datetime, at: datetime) -> tuple[PlannedTime | None, PlannedTime | None]:
    """Return the planned times just before (or at) and just after an instant."""
    before = (
        latest_until(job.timetable, max(at - LOOK_BACK, created_at - TICK), at) if at >= created_at else None
    )
    return before, None if job.is_chained else planned_after(job.timetable, max(at, created_at))


def _future(question: Question, planned: PlannedTime) -> Explanation:
    job, when = question.job, quote(question.job, planned.planned_for)
    refusal = _refusal(question, planned)
    if refusal is not None:
        why, next_step = refusal
        return Explanation(
            Verdict.WILL_NOT_RUN, f"The planned time of {when} will not run: {why}.", (), next_step
        )
    facts: tuple[str, ...] = ()
    if planned.due_at != planned.planned_for:
        facts = (f"It goes off at {quote(job, planned.due_at)}: spread, window or calendar move it there.",)
    return Explanation(Verdict.WILL_RUN, f"It will run, planned for {when}.", facts)


def _refusal(question: Question, planned: PlannedTime) -> tuple[str, str] | None:
    job = question.job
    if planned.skip is not None:
        why, next_step = SENTENCES[planned.skip]
        return AHEAD.get(planned.skip, why), next_step
    if _is_stopped(question, planned):
        return _standing(question), _wake_up(question.status)
    if question.switched_off is not None:
        why, next_step = SENTENCES[SkipReason.TYPE_DISABLED]
        return why + _given(question.switched_off), next_step
    if job.max_runs is not None and question.runs_created >= job.max_runs:
        return f"all {job.max_runs} runs of max_runs are made", "Raise max_runs."
    if job.max_runs is not None and _runs_out(question, planned, job.max_runs - question.runs_created):
        return f"all runs that max_runs ({job.max_runs}) allows come before it", "Raise max_runs."
    freeze = freeze_at(question.freezes, planned.due_at)
    if freeze is not None:
        return _frozen(job, freeze), "Lift the freeze, or run by hand with override."
    upcoming = planned_after(job.timetable, question.now)
    if question.skip_next and upcoming is not None:
        until = question.skip_until or upcoming.planned_for
        if planned.planned_for <= until:
            return SENTENCES[SkipReason.OPERATOR]
    return None


def _frozen(job: Job, freeze: Freeze) -> str:
    reason = _given(freeze.reason)
    end = "it is lifted" if freeze.end_at is None else f"it ends at {quote(job, freeze.end_at)}"
    then = {
        FreezePolicy.SKIP: "it will be skipped",
        FreezePolicy.LATEST: f"it is held, and when {end} the newest of those held runs",
        FreezePolicy.ALL: f"it is held, and when {end} all that were held run, {freeze.per_minute} a minute",
    }[freeze.after]
    return f"a freeze is in force then{reason}; {then}"


def _runs_out(question: Question, planned: PlannedTime, left: int) -> bool:
    """Return whether earlier times use up the rest of max_runs."""
    before = count_between(
        question.job.timetable, question.now, planned.planned_for - TICK, min(left, MOST_TIMES)
    )
    return before is None or before >= left


def _is_stopped(question: Question, planned: PlannedTime) -> bool:
    """Return whether the job is stopped at the planned time. A pause that ends before it does not count.

    A time at the very end of a pause passed in it: the resume records it with the others.
    """
    if question.paused_until is not None and question.paused_until < planned.due_at:
        return False
    return question.status not in (JobStatus.ACTIVE, JobStatus.PENDING)


def _standing(question: Question) -> str:
    until = question.paused_until
    sentence = f"the job is {question.status.value}"
    sentence += "" if until is None else f" until {quote(question.job, until)}"
    return sentence + _given(question.status_reason)


def _given(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _wake_up(status: JobStatus) -> str:
    if status in (JobStatus.COMPLETED, JobStatus.EXPIRED):
        return "Give it new times: edit its schedule, end_at or max_runs."
    return "Nothing brings it back." if status is JobStatus.ARCHIVED else "Resume it."


def _unrecorded(question: Question, planned: PlannedTime) -> Explanation:
    when = quote(question.job, planned.planned_for)
    if question.status not in (JobStatus.ACTIVE, JobStatus.PENDING):
        sentence = f"Nothing is recorded for {when}: {_standing(question)}."
        return Explanation(Verdict.UNRECORDED, sentence, (), _wake_up(question.status))
    if question.now - planned.due_at < CLOSE_ENOUGH:
        return Explanation(
            Verdict.WILL_RUN, f"It is due, planned for {when}, and is being recorded about now."
        )
    return Explanation(
        Verdict.UNRECORDED,
        f"The planned time of {when} has no record.",
        ("Records older than the job's retention are removed; the daily statistics remain.",),
        "If it is recent, check that a scheduler is running.",
    )


def _not_planned(question: Question) -> Explanation:
    job = question.job
    when = quote(job, question.at)
    if job.is_chained and question.next_at is not None:
        following = quote(job, question.next_at)
        if question.at <= question.next_at < question.at + CLOSE_ENOUGH:
            return Explanation(Verdict.WILL_RUN, f"It will run, planned for {following}.")
        known = (
            f"The next is planned for {following}; those after it are known when the run before has ended."
        )
        return Explanation(Verdict.NOT_PLANNED, f"There is no planned time at {when}.", (known,))
    if job.is_chained or isinstance(job.timetable.schedule, Manual):
        hangs_on = question.waits_for or (
            "the end of its live run" if job.is_chained else "a person, a program or an upstream job"
        )
        sentence = f"There is no planned time at {when}: this job waits for {hangs_on}."
        if question.switched_off is None:
            return Explanation(Verdict.NOT_PLANNED, sentence)
        why, next_step = SENTENCES[SkipReason.TYPE_DISABLED]
        held = f"Meanwhile nothing of it would start: {why}{_given(question.switched_off)}."
        return Explanation(Verdict.NOT_PLANNED, sentence, (held,), next_step)
    return Explanation(
        Verdict.NOT_PLANNED,
        f"There was no planned time at {when}."
        if question.at <= question.now
        else f"There is no planned time at {when}.",
        _nearest(question),
        "Preview shows the times this schedule names.",
    )


def _nearest(question: Question) -> tuple[str, ...]:
    job = question.job
    before, after = nearest(job, question.created_at, question.at)
    facts = []
    if before is not None:
        facts.append(f"The nearest before is {quote(job, before.planned_for)}.")
    if after is not None:
        facts.append(f"The nearest after is {quote(job, after.planned_for)}.")
    return tuple(facts)


def _planned_near(job: Job, at: datetime) -> PlannedTime | None:
    """Return the planned time that `at` means: that instant, or the one within its minute."""
    if job.is_chained:
        return None
    planned = planned_after(job.timetable, at - TICK)
    return planned if planned is not None and planned.planned_for < at + CLOSE_ENOUGH else None
