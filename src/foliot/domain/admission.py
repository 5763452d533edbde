"""Decide whether a run may start now. No other module decides it.

Planning, manual runs, dependents, the queue and the sweeper build a `StartRequest` and act on the answer: `Start`, `Wait` or `Skip`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, assert_never

from foliot.domain.dependencies import ConsumedRun, Dependencies, GateClosed, GateWaits, judge_gate
from foliot.domain.errors import ScheduleTooDear
from foliot.domain.job import Job, JobLoad
from foliot.domain.policy import Overlap, OverlapRule
from foliot.domain.run import Trigger, WaitsFor
from foliot.domain.schedule import Once, Otherwise, SkipReason, Timetable, planned_after
from foliot.domain.schedule.calendar import calendar_closes_at
from foliot.domain.schedule.window import window_closes_at
from foliot.domain.schedule.work_budget import work_budget
from foliot.domain.schedule.zone import naive_utc

_TICK = timedelta(microseconds=1)
LAST_START = timedelta(minutes=1)  # a run that is due at the end of its window has so long to start
_BOUND_BY_NO_WINDOW = frozenset({Trigger.MANUAL, Trigger.RETRY, Trigger.WEBHOOK})
_RUNS_IN_SHADOW = frozenset({Trigger.MANUAL, Trigger.RETRY, Trigger.BACKFILL})  # a person asked for these
_ASKED_AGAIN = frozenset({WaitsFor.TURN, WaitsFor.FREEZE, WaitsFor.TYPE})


class Stage(StrEnum):
    """The state of the run that asks."""

    NEW = "new"  # it does not exist yet
    QUEUED = "queued"  # what it waited for is over: its turn came, its gate, window or type opened, its freeze ended
    LATE = "late"  # a calendar closed before a worker took it


class StartRequest(NamedTuple):
    """A run that could start, and the facts that may prevent it. A tuple: a tick makes one for every run it plans."""

    job: Job
    now: datetime
    trigger: Trigger = Trigger.SCHEDULE
    stage: Stage = Stage.NEW
    not_before: datetime | None = None
    expires_at: datetime | None = None
    start_within: timedelta | None = None  # expires so long after the instant at which it may start
    load: JobLoad = JobLoad()  # of its job, without this run
    is_patient: bool = False  # waits for its turn where the overlap rule would skip it
    may_cancel_live: bool = True
    is_frozen: bool = False
    is_type_off: bool = False
    over_quota: SkipReason | None = None  # its workspace or owner has no fire left: quota or budget
    gate: Dependencies | None = None
    planned_for: datetime | None = None  # a run at a gate gives way to the planned time after this
    due_at: datetime | None = None  # of a new run that a window has let through at this instant
    waits_for: WaitsFor | None = None  # of a late run


@dataclass(frozen=True, slots=True)
class Start:
    """To `ready`. Without `not_before` it may start as soon as it is due."""

    not_before: datetime | None = None
    expires_at: datetime | None = None
    consumes: tuple[ConsumedRun, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    waits_for: WaitsFor
    not_before: datetime | None = None
    expires_at: datetime | None = None
    consumes: tuple[ConsumedRun, ...] = ()
    cancels_live: bool = False  # the live run is cancelled, and this one waits for its end


@dataclass(frozen=True, slots=True)
class Skip:
    reason: SkipReason
    note: str | None = None


Admission = Start | Wait | Skip


@dataclass(frozen=True, slots=True)
class Opening:
    """Window and calendars allow a start from `at` until `until`, the window's end.

    `closes` is when a calendar closes after `at`: a run that no worker has taken by then is late.
    """

    at: datetime
    until: datetime | None = None
    closes: datetime | None = None

    @property
    def ready_until(self) -> datetime | None:
        """The instant until which a worker may take the run."""
        return earliest(self.until, self.closes)


@dataclass(frozen=True, slots=True)
class NeverOpens:
    reason: SkipReason
    note: str | None = None


class OverlapAnswer(StrEnum):
    START = "start"
    QUEUE = "queue"
    CANCEL_AND_QUEUE = "cancel_and_queue"
    SKIP = "skip"


def admit(request: StartRequest) -> Admission:
    """Decide whether the run starts, waits or is skipped, and for which reason."""
    match request.stage:
        case Stage.NEW:
            answer = _admit_new(request)
            return Skip(request.over_quota) if request.over_quota and not isinstance(answer, Skip) else answer
        case Stage.QUEUED:
            return _admit_queued(request)
        case Stage.LATE:
            return _admit_late(request)
        case _ as never:
            assert_never(never)


def check_overlap(overlap: Overlap, load: JobLoad, *, is_patient: bool = False) -> OverlapAnswer:
    """Apply the overlap rule to a new run. A patient run (manual, catch-up) never skips."""
    rule = overlap.rule
    if rule is OverlapRule.CONCURRENT or load.is_idle:
        return OverlapAnswer.START
    if is_patient:
        return OverlapAnswer.QUEUE
    match rule:
        case OverlapRule.SKIP:
            return OverlapAnswer.SKIP
        case OverlapRule.QUEUE:
            return OverlapAnswer.QUEUE if load.waiting < overlap.max_queued else OverlapAnswer.SKIP
        case OverlapRule.QUEUE_ONE:
            return OverlapAnswer.QUEUE if load.waiting == 0 else OverlapAnswer.SKIP
        case OverlapRule.CANCEL_RUNNING:
            return OverlapAnswer.CANCEL_AND_QUEUE if load.waiting == 0 else OverlapAnswer.SKIP
        case _ as never:
            assert_never(never)


def find_opening(timetable: Timetable, at: datetime) -> Opening | NeverOpens:
    """Return when window and calendars let a run start that could start at `at`."""
    window, zone = timetable.window, timetable.schedule.timezone
    if window is None and not timetable.calendars:
        return Opening(at)
    asked = replace(timetable, schedule=Once(at, zone), start_at=None, end_at=None)
    try:
        with work_budget():
            answer = planned_after(asked, at - _TICK)
            if answer is None or answer.skip is not None:
                return NeverOpens((answer and answer.skip) or SkipReason.BLACKOUT)
            opens = naive_utc(answer.due_at)
            ends = None if window is None else window_closes_at(window, zone, opens)
            if ends is not None and ends <= opens:  # the last instant of a window leaves no time to start
                return find_opening(timetable, answer.due_at + _TICK)
            closings = [calendar_closes_at(each, opens) for each in timetable.calendars]
    except ScheduleTooDear as error:  # skip this run with its reason: the others must go on
        return NeverOpens(SkipReason.SCHEDULER_ERROR, error.message)
    closes = min((each for each in closings if each is not None), default=None)
    return Opening(
        answer.due_at,
        None if ends is None else ends.replace(tzinfo=UTC),
        None if closes is None else closes.replace(tzinfo=UTC),
    )


def find_opening_for(trigger: Trigger, timetable: Timetable, at: datetime) -> Opening | NeverOpens:
    """Return the same for what made the run: no window binds what a person requested, and a backfill waits for one to open."""
    if trigger in _BOUND_BY_NO_WINDOW:
        return Opening(at)
    if trigger is Trigger.BACKFILL:
        return find_opening(_deferring(timetable), at)
    return find_opening(timetable, at)


def expiry_reason(job: Job, expires_at: datetime) -> SkipReason:
    """Return what ended at `expires_at`: the window, a calendar's open time or the start deadline."""
    window, zone = job.timetable.window, job.timetable.schedule.timezone
    at = naive_utc(expires_at)
    if window is not None and window_closes_at(window, zone, at) == at:
        return SkipReason.WINDOW
    if _is_closing(job.timetable, at):
        return SkipReason.BLACKOUT
    if job.limits.start_deadline is not None:
        return SkipReason.DEADLINE
    if window is not None:
        return SkipReason.WINDOW
    return SkipReason.BLACKOUT if job.timetable.calendars else SkipReason.DEADLINE


def earliest(*instants: datetime | None) -> datetime | None:
    return min((each for each in instants if each is not None), default=None)


def _admit_new(request: StartRequest) -> Admission:
    job, now, not_before, expires_at = request.job, request.now, request.not_before, request.expires_at
    if request.is_type_off:
        return Skip(SkipReason.TYPE_DISABLED)
    if job.shadow and request.trigger not in _RUNS_IN_SHADOW:
        return Skip(SkipReason.SHADOW)
    if expires_at is not None and expires_at <= now:
        return Skip(SkipReason.DEADLINE)
    overlap = check_overlap(job.overlap, request.load, is_patient=request.is_patient)
    if overlap is OverlapAnswer.QUEUE and request.trigger is Trigger.BACKFILL:
        # Its window is checked when its turn comes: the end of today's must not expire it.
        return Wait(WaitsFor.TURN, not_before)
    opening = _find_last_start(request) or find_opening_for(
        request.trigger, job.timetable, max(now, not_before or now)
    )
    if isinstance(opening, NeverOpens):
        return Skip(opening.reason, opening.note)
    if opening.at > now:
        not_before = opening.at
    if opening.until is not None or request.start_within is not None:
        within = None if request.start_within is None else opening.at + request.start_within
        expires_at = earliest(expires_at, opening.until, within)
    gate = None if request.gate is None else judge_gate(request.gate, now)
    if isinstance(gate, GateClosed):
        return Skip(gate.reason, gate.note)
    match overlap:
        case OverlapAnswer.SKIP:
            return Skip(SkipReason.OVERLAP)
        case OverlapAnswer.CANCEL_AND_QUEUE if not request.may_cancel_live:
            return Skip(SkipReason.OVERLAP)
        case OverlapAnswer.QUEUE | OverlapAnswer.CANCEL_AND_QUEUE:
            cancels_live = overlap is OverlapAnswer.CANCEL_AND_QUEUE
            return Wait(WaitsFor.TURN, not_before, expires_at, cancels_live=cancels_live)
        case OverlapAnswer.START:
            pass
        case _ as never:
            assert_never(never)
    if isinstance(gate, GateWaits):
        # Before freeze and window: both are asked again when the gate opens, but the gate is not asked when they open.
        return Wait(WaitsFor.UPSTREAM, not_before, earliest(expires_at, _gives_way_at(request)))
    consumes = () if gate is None else gate.consumes
    if request.is_frozen:
        return Wait(WaitsFor.FREEZE, not_before, expires_at, consumes)
    if opening.closes is not None:
        expires_at = earliest(expires_at, opening.closes)
    is_closed = opening.at > now and (job.timetable.window is not None or bool(job.timetable.calendars))
    if is_closed and request.trigger is Trigger.SCHEDULE:
        return Wait(WaitsFor.WINDOW, not_before, expires_at, consumes)
    return Start(not_before, expires_at, consumes)


def _find_last_start(request: StartRequest) -> Opening | None:
    """Return the opening of a run that was due within its window, or at its end, which closes before a worker could take the run.

    Firing and claiming take a moment: 17:00 is within a window until 17:00, and the run starts a little later.
    """
    timetable, due_at, now = request.job.timetable, request.due_at, request.now
    if timetable.window is None or due_at is None or request.not_before is not None:
        return None
    last = due_at + LAST_START
    ends = window_closes_at(timetable.window, timetable.schedule.timezone, naive_utc(due_at))
    if ends is None or not due_at <= now < last or ends.replace(tzinfo=UTC) >= last:
        return None
    # Calendars are asked at this instant, as ever.
    opening = find_opening(replace(timetable, window=None), now)
    if isinstance(opening, NeverOpens) or opening.at > now:
        return None
    return Opening(now, last, opening.closes)


def _admit_queued(request: StartRequest) -> Admission:
    job, now = request.job, request.now
    gate = None if request.gate is None else judge_gate(request.gate, now)
    if isinstance(gate, GateClosed):
        return Skip(gate.reason, gate.note)
    if isinstance(gate, GateWaits):
        return Wait(WaitsFor.UPSTREAM, expires_at=_gives_way_at(request) or request.expires_at)
    expires_at = _without_closing(job, request.expires_at)
    opening = find_opening_for(request.trigger, job.timetable, max(now, request.not_before or now))
    if isinstance(opening, NeverOpens):
        return Skip(opening.reason, opening.note)
    if expires_at is not None and expires_at <= now:
        return Skip(expiry_reason(job, expires_at))
    consumes = () if gate is None else gate.consumes
    if request.is_frozen:
        return Wait(WaitsFor.FREEZE, None, expires_at, consumes)
    return Start(opening.at, earliest(expires_at, opening.ready_until), consumes)


def _admit_late(request: StartRequest) -> Admission:
    if request.waits_for in _ASKED_AGAIN:
        return Wait(request.waits_for)
    opening = find_opening_for(request.trigger, request.job.timetable, request.now)
    if isinstance(opening, NeverOpens):
        return Skip(opening.reason, opening.note)
    within = None if request.start_within is None else opening.at + request.start_within
    return Wait(WaitsFor.WINDOW, opening.at, earliest(opening.ready_until, within))


def _gives_way_at(request: StartRequest) -> datetime | None:
    """Return the next planned time of the job: a run still at its gate then is replaced by that one."""
    # Without window and calendars: they do not move the planned time itself.
    following = planned_after(
        request.job.timetable.bare, max(request.planned_for or request.now, request.now)
    )
    return None if following is None else following.planned_for


def _is_closing(timetable: Timetable, at: datetime) -> bool:
    """Return whether a calendar closes at this instant."""
    try:
        return any(calendar_closes_at(each, at - _TICK) == at for each in timetable.calendars)
    except ScheduleTooDear:
        return False


def _without_closing(job: Job, expires_at: datetime | None) -> datetime | None:
    """Drop an expiry that a calendar's closing has set: it binds runs in `ready` alone."""
    if expires_at is None or not job.timetable.calendars:
        return expires_at
    return None if expiry_reason(job, expires_at) is SkipReason.BLACKOUT else expires_at


def _deferring(timetable: Timetable) -> Timetable:
    window = timetable.window
    return replace(
        timetable,
        window=None if window is None else replace(window, otherwise=Otherwise.DEFER),
        calendars=tuple(each.deferring() for each in timetable.calendars),
    )
