"""Explain one record of the run history. `instants.py` explains instants without a record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from foliot.domain.explain.reasons import BY_ITSELF, SENTENCES, name_closed_calendars
from foliot.domain.ids import RunId
from foliot.domain.job import Job
from foliot.domain.lifecycle import AttemptStatus, RunStatus
from foliot.domain.run import RunError, WaitsFor
from foliot.domain.schedule import SkipReason
from foliot.domain.schedule.zone import load_zone

Try = tuple[int, AttemptStatus, datetime, RunError | None]  # number, result, end, error


class Verdict(StrEnum):
    RAN = "ran"
    RUNNING = "running"
    WAITING = "waiting"
    SKIPPED = "skipped"
    NOT_PLANNED = "not_planned"
    NOT_CREATED = "not_created"
    UNRECORDED = "unrecorded"  # planned, but no record exists (any more)
    WILL_RUN = "will_run"
    WILL_NOT_RUN = "will_not_run"
    WILL_WAIT = "will_wait"  # planned, but held, or without a worker that would take its run


@dataclass(frozen=True, slots=True)
class Explanation:
    verdict: Verdict
    sentence: str
    facts: tuple[str, ...] = ()
    next_step: str | None = None
    place: QueuePosition | None = None  # of a waiting run


@dataclass(frozen=True, slots=True)
class Recorded:
    """The columns of a run record that explanations read. A gap record has `planned_until` and, if known, `count`."""

    run_id: RunId
    number: int
    status: RunStatus
    planned_for: datetime | None = None
    planned_until: datetime | None = None
    count: int | None = None
    skip_reason: SkipReason | None = None
    note: str | None = None  # the run in the way, the reason of the freeze, the operator
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempt_count: int = 0
    error: RunError | None = None
    retry_at: datetime | None = None
    opens_at: datetime | None = None  # of a run before its first attempt: it may not start earlier
    closed_by: str | None = None  # what keeps it until then
    tries: tuple[Try, ...] = ()
    progress_note: str = ""  # what it reports while it runs
    blocking: BlockingRun | None = None  # of a planned time that was skipped as overlap


@dataclass(frozen=True, slots=True)
class BlockingRun:
    """The earlier run that a planned time would have overlapped."""

    number: int
    started_at: datetime | None
    waits: Explanation | None = None  # if it has not started even now
    attempt: BlockingAttempt | None = None


@dataclass(frozen=True, slots=True)
class BlockingAttempt:
    """The attempt of the blocking run that was under way at the planned time, or the last that had ended before it."""

    number: int
    status: AttemptStatus
    ended_at: datetime | None
    worker: str
    error: RunError | None = None
    is_overdue: bool = False  # under way even now, and its worker is silent


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of a waiting run within its own workspace."""

    waits_for: WaitsFor
    position: int | None = None
    of: int | None = None
    behind: str | None = None  # the run, job, freeze or limit it waits for
    until: datetime | None = None


def explain_record(job: Job, record: Recorded, place: QueuePosition | None = None) -> Explanation:
    """Explain one record of the run history."""
    match record.status:
        case RunStatus.SKIPPED:
            return _skipped(job, record)
        case RunStatus.WAITING if place is not None:
            return _waiting(job, record, place)
        case RunStatus.READY | RunStatus.WAITING:
            return _ready(job, record, place)
        case RunStatus.RUNNING:
            since = "" if record.started_at is None else f" since {quote(job, record.started_at)}"
            return Explanation(
                Verdict.RUNNING,
                f"Run {record.number} is running{since}, attempt {record.attempt_count}.",
                (*_notes(record), *((record.progress_note,) if record.progress_note else ())),
            )
        case _:
            return _ran(job, record)


@dataclass(frozen=True, slots=True)
class RunningRun:
    """A run that holds a place of a worker."""

    job: str
    number: int
    worker: str
    leased_at: datetime


@dataclass(frozen=True, slots=True)
class BusyWorkers:
    """The workers that serve a job, when none of them has a free place for its workspace."""

    places: int
    taken: int
    running: tuple[RunningRun, ...] = ()  # as far as the reader may see them

    @property
    def words(self) -> str:
        """`all 2 places of the workers that serve it are taken`."""
        if self.taken < self.places:
            return (
                "its workspace has all the places that it gets from the workers that serve it"
                f" ({self.taken} of {self.places} are taken, and the rest is for other workspaces)"
            )
        taken = "the only place" if self.places == 1 else f"all {self.places} places"
        return f"{taken} of the workers that serve it {'is' if self.places == 1 else 'are'} taken"

    def holders(self, job: Job) -> str:
        """Name the runs that hold the places: `Taken by run 3 of backup (worker alpha, since …) and 1 run of others.`"""
        named = [
            f"run {each.number} of {each.job} (worker {each.worker}, since {quote(job, each.leased_at)})"
            for each in self.running
        ]
        others = self.taken - len(named)
        if others > 0:
            more = "more " if named else ""
            named.append(f"{others} {more}{'run' if others == 1 else 'runs'} of others")
        listed = " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
        return f"Taken by {listed}."


MORE_PLACES = "It starts when one of those ends; raise the concurrency of a worker, or start another one, to do more at once."


def explain_crowded(job: Job, record: Recorded, place: QueuePosition, busy: BusyWorkers) -> Explanation:
    """Explain a ready run whose possible workers are all busy."""
    return Explanation(
        Verdict.WAITING,
        f"Run {record.number} is ready, but {busy.words}{_where(place)}.",
        (*_notes(record), busy.holders(job)),
        MORE_PLACES,
        place,
    )


def explain_holder(worker: str, late: timedelta) -> str:
    """Name the worker of a running attempt, and for how long it is overdue."""
    if late <= timedelta(0):
        return f"Worker {worker} holds it."
    minutes = late // timedelta(minutes=1)
    return f"Worker {worker} holds it and is overdue by {minutes} min: the next sweep takes the run back."


def quote(job: Job, instant: datetime) -> str:
    """Format an instant on the job's wall clock with its zone: `2027-01-05 06:00:00 America/Bogota (UTC-05:00)`."""
    zone = job.timetable.schedule.timezone
    local = instant.astimezone(load_zone(zone))
    offset = f"{local:%z}"
    return f"{local:%Y-%m-%d %H:%M:%S} {zone}" + (
        "" if zone == "UTC" else f" (UTC{offset[:3]}:{offset[3:5]})"
    )


def _skipped(job: Job, record: Recorded) -> Explanation:
    next_step: str | None
    reason, next_step = SENTENCES[record.skip_reason or SkipReason.SCHEDULER_ERROR]
    if record.skip_reason is SkipReason.OPERATOR and record.started_at is not None:
        reason, next_step = BY_ITSELF
    facts = _notes(record)
    if record.skip_reason is SkipReason.BLACKOUT and record.planned_for is not None:
        closed = name_closed_calendars(job.timetable, record.planned_for)
        reason = reason if closed is None else f"{closed} at that time"
    if record.blocking is not None:
        reason, next_step, more = _blocked(job, record, record.blocking)
        facts = (*facts, *more)
    when = "" if record.planned_for is None else f" of {quote(job, record.planned_for)}"
    sentence = f"The planned time{when} was skipped because {reason}."
    if record.planned_until is not None and record.planned_for is not None:
        many = "More than 10,000" if record.count is None else f"{record.count:,}"
        first, last = quote(job, record.planned_for), quote(job, record.planned_until)
        sentence = f"{many} planned times from {first} to {last} did not run because {reason}."
    return Explanation(Verdict.SKIPPED, sentence, facts, next_step)


def _blocked(job: Job, record: Recorded, blocking: BlockingRun) -> tuple[str, str | None, tuple[str, ...]]:
    """Return why an earlier run was in the way: it was running, or it had not even started."""
    _, next_step = SENTENCES[SkipReason.OVERLAP]
    started, planned_for, attempt = blocking.started_at, record.planned_for, blocking.attempt
    if attempt is not None and planned_for is not None:
        if attempt.ended_at is not None and attempt.ended_at < planned_for:
            return _between_attempts(job, blocking.number, attempt)
        if attempt.status is AttemptStatus.LOST or attempt.is_overdue:
            return _lost(job, blocking.number, attempt)
    if started is not None and (planned_for is None or started <= planned_for):
        since = quote(job, started)
        return (
            f"run {blocking.number} of this job, which had started at {since}, was still live",
            next_step,
            (),
        )
    reason = f"run {blocking.number} of this job was still waiting to start"
    if blocking.waits is not None:
        return reason, blocking.waits.next_step, (blocking.waits.sentence, *blocking.waits.facts)
    if started is None:
        return reason, f"Ask why run {blocking.number} did not start.", ()
    return (
        reason,
        "Check that enough workers serve its queue and type; overlap queue or concurrent would make a run for each time.",
        (f"Run {blocking.number} started only at {quote(job, started)}.",),
    )


LOST_WORKER = (
    "Find out why the worker ended: its log and the machine's. The setting worker_lease says after how long"
    " a silent worker's runs are taken back; with overlap queue or concurrent no time is skipped meanwhile."
)


def _lost(job: Job, number: int, attempt: BlockingAttempt) -> tuple[str, str, tuple[str, ...]]:
    """Explain a run that was live only because nobody knew yet that its worker was gone."""
    reason = f"run {number} of this job was held by worker {attempt.worker}, which was lost"
    fact = (
        "Its lease has passed: the next sweep takes the run back."
        if attempt.ended_at is None
        else f"The run was taken back at {quote(job, attempt.ended_at)}, when the worker's lease had passed."
    )
    return reason, LOST_WORKER, (fact,)


def _between_attempts(job: Job, number: int, attempt: BlockingAttempt) -> tuple[str, str, tuple[str, ...]]:
    """Explain a run that was live because it waited for a retry."""
    ended = "" if attempt.ended_at is None else f" at {quote(job, attempt.ended_at)}"
    fact = what_became_of(attempt.number, attempt.status, attempt.error, ended)
    next_step = (
        LOST_WORKER
        if attempt.status is AttemptStatus.LOST
        else f"Read the log of run {number} to see why attempt {attempt.number} ended so. Fewer or shorter retries,"
        " or overlap queue or concurrent, keep later times from being skipped."
    )
    return f"run {number} of this job was waiting for attempt {attempt.number + 1}", next_step, (fact,)


def _ran(job: Job, record: Recorded) -> Explanation:
    planned = "" if record.planned_for is None else f", planned for {quote(job, record.planned_for)},"
    ended = "" if record.finished_at is None else f" at {quote(job, record.finished_at)}"
    tries = "" if record.attempt_count <= 1 else f" after {record.attempt_count} attempts"
    word = {
        RunStatus.TIMED_OUT: "timed out",
        RunStatus.CANCELLED: "was cancelled",
        RunStatus.INTERRUPTED: "was interrupted",
    }
    sentence = f"Run {record.number}{planned} {word.get(record.status, record.status.value)}{ended}{tries}."
    facts = _notes(record)
    if record.started_at is not None:
        facts = (f"It started at {quote(job, record.started_at)}.", *_tries(job, record), *facts)
    return Explanation(Verdict.RAN, sentence, facts, _after_end(record))


def _after_end(record: Recorded) -> str | None:
    if record.status is RunStatus.SUCCEEDED:
        return None
    again = "Retry makes a new run of it."
    return again if record.started_at is None else f"Read the run's log. {again}"


def _tries(job: Job, record: Recorded) -> Iterator[str]:
    """Describe the attempts before the last; the end of the run describes the last."""
    for number, status, ended_at, error in record.tries[:-1]:
        yield what_became_of(number, status, error, f" at {quote(job, ended_at)}")


def what_became_of(number: int, status: AttemptStatus, error: RunError | None, when: str = "") -> str:
    """Describe an attempt that was not the last."""
    words = {
        AttemptStatus.TIMED_OUT: "timed out",
        AttemptStatus.LOST: "was lost",
        AttemptStatus.CANCELLED: "was handed back",
    }
    why = "" if error is None else f": {error.code}: {error.message.removesuffix('.')}"
    return f"Attempt {number} {words.get(status, status.value)}{when}{why}."


def _ready(job: Job, record: Recorded, place: QueuePosition | None) -> Explanation:
    if record.opens_at is not None:
        why = "" if record.closed_by is None else f": {record.closed_by}"
        return Explanation(
            Verdict.WAITING,
            f"Run {record.number} may start at {quote(job, record.opens_at)} and not earlier{why}.",
            _notes(record),
            "It starts by itself; run the job manually to start at once, or cancel this run.",
        )
    if record.retry_at is not None:
        attempt = record.attempt_count + 1
        return Explanation(
            Verdict.WAITING,
            f"Run {record.number} waits for attempt {attempt} at {quote(job, record.retry_at)}.",
            _notes(record),
            "Cancel it to stop retrying.",
        )
    where = _where(place)
    return Explanation(
        Verdict.WAITING,
        f"Run {record.number} is ready and waits for a worker{where}.",
        _notes(record),
        "If it stays here, check that a worker serves its queue and type.",
        place,
    )


def explain_unreported(job: Job, record: Recorded, until: datetime) -> Explanation:
    """Explain a run whose work is done elsewhere and that nobody has reported yet."""
    return Explanation(
        Verdict.WAITING,
        f"Run {record.number} waits for its check-in, at the latest until {quote(job, until)}. Without one it fails.",
        _notes(record),
        "If the work is done, check that it calls the address of the job's webhook.",
    )


def _waiting(job: Job, record: Recorded, place: QueuePosition) -> Explanation:
    behind, next_step = {
        WaitsFor.TURN: ("an earlier run of its job to end", "Cancel the earlier run to let this one start."),
        WaitsFor.UPSTREAM: (
            "its upstream job to end",
            "It is skipped if the upstream job does not end in time.",
        ),
        WaitsFor.FREEZE: ("a freeze to end", "Lift the freeze, or run the job manually with override."),
        WaitsFor.WINDOW: (
            "its window or calendar to open",
            "It starts by itself; run the job manually to start at once.",
        ),
        WaitsFor.LIMIT: (
            "a free place under a limit",
            "Raise the limit, or wait for runs that hold it to end.",
        ),
        WaitsFor.TYPE: (
            "its job type, which is switched off, to be switched on again",
            "Ask an administrator to switch the job type on, or cancel the run.",
        ),
    }[place.waits_for]
    named = "" if place.behind is None else f" ({place.behind})"
    until = "" if place.until is None else f", at the latest until {quote(job, place.until)}"
    sentence = f"Run {record.number} waits for {behind}{named}{until}{_where(place)}."
    return Explanation(Verdict.WAITING, sentence, _notes(record), next_step, place)


def _where(place: QueuePosition | None) -> str:
    if place is None or place.position is None:
        return ""
    of = "" if place.of is None else f" of {place.of}"
    return f"; it is number {place.position}{of} in line"


def _notes(record: Recorded) -> tuple[str, ...]:
    facts = [] if record.note is None else [record.note]
    if record.status is RunStatus.CANCELLED and record.note is not None:
        facts = [f"The reason given: {record.note}"]
    if record.error is not None:
        facts.append(f"{record.error.code}: {record.error.message}")
    return tuple(facts)
