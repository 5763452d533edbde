"""Explain what a job did, or will do, at one instant: one sentence, facts, and the next step.

Console, CLI, API and agent tools print this text. Times are in the job's own zone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from foliot.domain.access import name_person
from foliot.domain.explain.outages import SchedulerOutage, is_silent, outage_facts, silence
from foliot.domain.explain.reasons import AHEAD, SENTENCES, name_closed_calendars
from foliot.domain.explain.records import (
    MORE_PLACES,
    BusyWorkers,
    Explanation,
    Recorded,
    Verdict,
    explain_record,
    quote,
)
from foliot.domain.freeze import Freeze, FreezePolicy, freeze_at
from foliot.domain.ids import FreezeId
from foliot.domain.job import Job
from foliot.domain.lifecycle import STOPPED, JobStatus
from foliot.domain.planning.missed import TICK
from foliot.domain.policy import OverlapRule
from foliot.domain.schedule import (
    MOST_TIMES,
    Manual,
    PlannedTime,
    SkipReason,
    count_between,
    latest_until,
    planned_after,
)
from foliot.domain.schedule.describe.english import lasting
from foliot.domain.schedule.timetable import closed_gates, newest_due_with
from foliot.domain.schedule.work_budget import work_budget

CLOSE_ENOUGH = timedelta(minutes=1)  # people ask about 14:00, not about 14:00:00.000
LOOK_BACK = timedelta(days=366)
RELEASE = (
    "Decide about the times missed since the dump: `foliot db release --missed skip` or `--missed catch-up`."
)
LIFT = "Lift the freeze, or run the job manually with override."
START_SCHEDULER = (
    "Start a node with the scheduler role (`foliot serve`); its first tick decides by the misfire policy."
)


@dataclass(frozen=True, slots=True)
class Firing:
    """The state of the scheduler of the installation."""

    held_reason: str | None = None  # after a restore
    ticked_at: datetime | None = None  # the last tick of any scheduler
    outages: tuple[SchedulerOutage, ...] = ()
    freeze_authors: tuple[tuple[FreezeId, str], ...] = ()


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
    no_fires_until: datetime | None = None  # the quota of fires per day is used up until then
    closed_until: datetime | None = None  # a budget of the workspace is used up until then
    waits_for: str | None = (
        None  # what a fixed_delay or triggered job waits for: "run 12", "the job daily sync"
    )
    status_by: str | None = None  # who paused or disabled it
    status_at: datetime | None = None  # since when
    gate: str | None = None  # the upstream jobs whose fresh data it needs
    live_number: int | None = None  # of the run that is live now
    limit: str | None = None  # the limit that is full now
    unserved: tuple[str, str] | None = None  # why no worker would take its run now, and the remedy
    busy: BusyWorkers | None = None  # its workers, if none of them has a free place now
    firing: Firing = Firing()


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
        return with_outages(
            question.job, explain_record(question.job, record), record, question.firing.outages
        )
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


def with_outages(
    job: Job, explanation: Explanation, record: Recorded, outages: tuple[SchedulerOutage, ...]
) -> Explanation:
    """Add the outages that cover the planned times of a record."""
    if record.planned_for is None or not outages:
        return explanation
    found = outage_facts(job, outages, record.planned_for, record.planned_until)
    return replace(explanation, facts=(*explanation.facts, *found))


def _future(question: Question, planned: PlannedTime) -> Explanation:
    job, when = question.job, quote(question.job, planned.planned_for)
    refusal = _refusal(question, planned)
    if refusal is not None:
        why, next_step = refusal
        since = _stopped_since(question) if _is_stopped(question, planned) else ()
        return Explanation(
            Verdict.WILL_NOT_RUN, f"The planned time of {when} will not run: {why}.", since, next_step
        )
    facts: tuple[str, ...] = ()
    if planned.due_at != planned.planned_for:
        causes = " and ".join(_deferrals(job, planned))
        facts = (f"It goes off at {quote(job, planned.due_at)}: {causes}.",)
    hindrance = _hindrance(question, planned)
    if hindrance is not None:
        why, next_step = hindrance
        return Explanation(Verdict.WILL_WAIT, f"It is planned for {when}, but {why}.", facts, next_step)
    conditions = _conditions(question)
    if conditions:
        busy = question.busy
        return Explanation(
            Verdict.WILL_RUN,
            f"It will run, planned for {when}, if {' and '.join(conditions)}.",
            facts if busy is None else (*facts, busy.holders(job)),
            None if busy is None else MORE_PLACES,
        )
    return Explanation(Verdict.WILL_RUN, f"It will run, planned for {when}.", facts)


def _deferrals(job: Job, planned: PlannedTime) -> list[str]:
    """Name what moves a planned time to its due time: the spread, the window, calendars; and until when each is closed."""
    timetable = job.timetable
    spread = planned_after(timetable.bare, planned.planned_for - TICK)
    start = planned.planned_for if spread is None else spread.due_at
    added = start - planned.planned_for
    closed = [
        f"{name} is closed until {quote(job, until)}"
        for name, until in closed_gates(timetable, start, planned.due_at).items()
    ]
    return [*([f"its spread adds {lasting(added)}"] if added else []), *closed]


def _conditions(question: Question) -> list[str]:
    """Return what hangs on other runs, which may change until then."""
    conditions = []
    if question.live_number is not None and question.job.overlap.rule is OverlapRule.SKIP:
        conditions.append(f"run {question.live_number}, which is live now, has ended by then")
    if question.gate is not None:
        conditions.append(f"{question.gate} has delivered")
    if question.limit is not None:
        conditions.append(f"a place under its limit is free ({question.limit} now)")
    if question.busy is not None:
        conditions.append(f"a worker has a free place by then; now {question.busy.words}")
    return conditions


def _hindrance(question: Question, planned: PlannedTime) -> tuple[str, str] | None:
    """Return what keeps a planned time from running when it is due, although nothing skips it; and the next step."""
    job, firing = question.job, question.firing
    if firing.held_reason is not None:
        return f"firing is held: {firing.held_reason.removesuffix('.')}", RELEASE
    freeze = freeze_at(question.freezes, planned.due_at)
    if freeze is not None:
        return _frozen(question, freeze), LIFT
    if firing.ticked_at is not None and is_silent(firing.ticked_at, question.now):
        return f"nothing fires: {silence(job, firing.ticked_at).removesuffix('.')}", START_SCHEDULER
    if question.unserved is not None:
        why, next_step = question.unserved
        return f"its run would wait: {why}", next_step
    return None


def _refusal(question: Question, planned: PlannedTime) -> tuple[str, str] | None:
    job = question.job
    if planned.skip is not None:
        why, next_step = SENTENCES[planned.skip]
        closed = (
            name_closed_calendars(job.timetable, planned.planned_for)
            if planned.skip is SkipReason.BLACKOUT
            else None
        )
        return f"{closed} then" if closed else AHEAD.get(planned.skip, why), next_step
    if _is_stopped(question, planned):
        return _standing(question), _wake_up(question.status)
    if question.switched_off is not None:
        why, next_step = SENTENCES[SkipReason.TYPE_DISABLED]
        return why + _given(question.switched_off), next_step
    if job.shadow:
        return SENTENCES[SkipReason.SHADOW]
    if question.closed_until is not None and planned.due_at < question.closed_until:
        return AHEAD[SkipReason.BUDGET], SENTENCES[SkipReason.BUDGET][1]
    if question.no_fires_until is not None and planned.due_at < question.no_fires_until:
        return AHEAD[SkipReason.QUOTA], SENTENCES[SkipReason.QUOTA][1]
    if job.max_runs is not None and question.runs_created >= job.max_runs:
        return f"max_runs ({job.max_runs}) is reached", "Raise max_runs."
    if job.max_runs is not None and _runs_out(question, planned, job.max_runs - question.runs_created):
        return f"all runs that max_runs ({job.max_runs}) allows come before it", "Raise max_runs."
    freeze = freeze_at(question.freezes, planned.due_at)
    if freeze is not None and (freeze.after is FreezePolicy.SKIP or _gives_way(job, freeze, planned)):
        return _frozen(question, freeze), LIFT
    newest = newest_due_with(job.timetable, planned)
    if newest.planned_for != planned.planned_for:
        moved = " and ".join(_deferrals(job, planned))
        return (
            (
                f"it would go off at {quote(job, planned.due_at)}, because {moved}, and gives way to the newer"
                f" planned time of {quote(job, newest.planned_for)}"
            ),
            SENTENCES[SkipReason.WINDOW][1] if job.timetable.window else SENTENCES[SkipReason.BLACKOUT][1],
        )
    upcoming = planned_after(job.timetable, question.now)
    if question.skip_next and upcoming is not None:
        until = question.skip_until or upcoming.planned_for
        if planned.planned_for <= until:
            return SENTENCES[SkipReason.OPERATOR]
    return None


def _frozen(question: Question, freeze: Freeze) -> str:
    job = question.job
    author = dict(question.firing.freeze_authors).get(freeze.id)
    by = "" if author is None else f" by {name_person(author)}"
    end = "it is lifted" if freeze.end_at is None else f"it ends at {quote(job, freeze.end_at)}"
    then = {
        FreezePolicy.SKIP: "the planned time is skipped",
        FreezePolicy.LATEST: f"planned times are held until {end}, and then only the newest of them runs",
        FreezePolicy.ALL: f"planned times are held until {end}, and then all of them run, {freeze.per_minute} a minute",
    }[freeze.after]
    return f"a freeze{by} is in force{_given(freeze.reason)}; {then}"


def _gives_way(job: Job, freeze: Freeze, planned: PlannedTime) -> bool:
    """Return whether a newer planned time within the same freeze runs instead of this one."""
    if freeze.after is not FreezePolicy.LATEST or freeze.end_at is None:
        return False
    following = planned_after(job.timetable, planned.planned_for)
    return following is not None and following.skip is None and following.due_at < freeze.end_at


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
    by = "" if question.status_by is None else f" by {name_person(question.status_by)}"
    return sentence + by + _given(question.status_reason)


def _stopped_since(question: Question) -> tuple[str, ...]:
    since = question.status_at
    return () if since is None else (f"It is {question.status.value} since {quote(question.job, since)}.",)


def with_stop(explanation: Explanation, question: Question) -> Explanation:
    """Add to the answer about a past time that the job is stopped now: no later time runs."""
    if question.status not in STOPPED:
        return explanation
    standing = _standing(question)
    facts = (*explanation.facts, f"Now {standing}.", *_stopped_since(question))
    return replace(explanation, facts=facts, next_step=explanation.next_step or _wake_up(question.status))


def _given(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _wake_up(status: JobStatus) -> str:
    if status in (JobStatus.COMPLETED, JobStatus.EXPIRED):
        return "Give it new times: edit its schedule, end_at or max_runs."
    return "Restore it, then resume it." if status is JobStatus.ARCHIVED else "Resume it."


def _unrecorded(question: Question, planned: PlannedTime) -> Explanation:
    job, firing = question.job, question.firing
    when = quote(job, planned.planned_for)
    if question.status not in (JobStatus.ACTIVE, JobStatus.PENDING):
        sentence = f"Nothing is recorded for {when}: {_standing(question)}."
        since = _stopped_since(question)
        return Explanation(Verdict.UNRECORDED, sentence, since, _wake_up(question.status))
    if firing.held_reason is not None:
        why = f"firing is held: {firing.held_reason.removesuffix('.')}"
        return Explanation(
            Verdict.WAITING, f"The planned time of {when} is due and not recorded yet: {why}.", (), RELEASE
        )
    freeze = freeze_at(question.freezes, question.now)
    if freeze is not None and freeze.after is not FreezePolicy.SKIP and freeze.holds(planned.due_at):
        sentence = f"The planned time of {when} is held: {_frozen(question, freeze)}."
        return Explanation(Verdict.WAITING, sentence, (), LIFT)
    if firing.ticked_at is not None and is_silent(firing.ticked_at, question.now):
        sentence = f"The planned time of {when} is due and not recorded: nothing fires."
        return Explanation(Verdict.UNRECORDED, sentence, (silence(job, firing.ticked_at),), START_SCHEDULER)
    if question.now - planned.due_at < CLOSE_ENOUGH:
        return Explanation(
            Verdict.WILL_RUN, f"It is due, planned for {when}, and is being recorded about now."
        )
    return Explanation(
        Verdict.UNRECORDED,
        f"The planned time of {when} has no record.",
        (
            *outage_facts(job, firing.outages, planned.planned_for),
            "Records older than the job's retention are removed; the daily statistics remain.",
        ),
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
        sentence = (
            f"There is no planned time at {when}: this job waits for {hangs_on}."
            if job.is_chained
            else f"This job has no planned times: it waits for {hangs_on}."
        )
        if question.switched_off is None:
            next_step = None if job.is_chained else "Run it manually, or give it a schedule."
            return Explanation(Verdict.NOT_PLANNED, sentence, (), next_step)
        why, next_step = SENTENCES[SkipReason.TYPE_DISABLED]
        held = f"Meanwhile nothing of it would start: {why}{_given(question.switched_off)}."
        return Explanation(Verdict.NOT_PLANNED, sentence, (held,), next_step)
    explanation = Explanation(
        Verdict.NOT_PLANNED,
        f"There was no planned time at {when}."
        if question.at <= question.now
        else f"There is no planned time at {when}.",
        _nearest(question),
        "Preview shows the times this schedule names.",
    )
    until = question.paused_until
    is_ahead = question.at > question.now and (until is None or question.at <= until)
    return with_stop(explanation, question) if is_ahead else explanation


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
