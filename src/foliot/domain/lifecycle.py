"""The state machines of jobs, runs and attempts: three tables and one function, `advance`.

Nothing else changes a status. `docs/explanation/lifecycles.md` is generated from these tables.

Why: docs/decisions/201-how-jobs-end.md
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, overload

from foliot.domain.errors import IllegalMove


class JobStatus(StrEnum):
    PENDING = "pending"  # its start_at lies ahead
    ACTIVE = "active"
    PAUSED = "paused"  # by a person or by the breaker; resume brings it back
    DISABLED = "disabled"  # switched off by its owner, or imported and not reviewed yet
    COMPLETED = "completed"  # nothing left to do: the one-shot ran, max_runs is reached
    FAILED = "failed"  # the breaker, an exhausted one-shot or three scheduler errors ended it
    EXPIRED = "expired"  # its time is over: end_at has passed, or its only time went by without a run
    ARCHIVED = "archived"  # deleted; kept for its history


class JobEvent(StrEnum):
    START = "start"  # start_at has come
    POSTPONE = "postpone"  # an edit moved start_at ahead
    PAUSE = "pause"
    RESUME = "resume"
    DISABLE = "disable"
    COMPLETE = "complete"
    FAIL = "fail"
    EXPIRE = "expire"
    REVIVE = "revive"  # an edit gave it future times again
    ARCHIVE = "archive"
    RESTORE = "restore"  # from the archive; it stays off until it is resumed


class RunStatus(StrEnum):
    READY = "ready"  # may start as soon as a worker takes it; retries wait here too
    WAITING = "waiting"  # may not start yet: behind another run, a gate, a freeze, a limit
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"  # its workers were lost too often
    CANCELLED = "cancelled"
    SKIPPED = "skipped"  # it did not run, for a recorded reason


class FireStatus(StrEnum):
    """The fate of the planned time that the schedule recorded last."""

    QUEUED = "queued"  # a run was made; its end is in `last_run_status`
    SKIPPED = "skipped"
    SCHEDULER_FAILED = "scheduler_failed"  # the next time could not be computed or the record not be written


class RunEvent(StrEnum):
    CLAIM = "claim"
    HOLD = "hold"  # a freeze, window or limit says: not now
    PROMOTE = "promote"  # what it waited for has come
    RETRY = "retry"
    HAND_BACK = "hand_back"  # its worker shuts down before the work is done
    SUCCEED = "succeed"
    FAIL = "fail"
    TIME_OUT = "time_out"
    INTERRUPT = "interrupt"
    CANCEL = "cancel"
    SKIP = "skip"


class AttemptStatus(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"  # its worker fell silent
    CANCELLED = "cancelled"


class AttemptEvent(StrEnum):
    SUCCEED = "succeed"
    FAIL = "fail"
    TIME_OUT = "time_out"
    LOSE = "lose"
    CANCEL = "cancel"


_J, _JE = JobStatus, JobEvent
_R, _RE = RunStatus, RunEvent
_A, _AE = AttemptStatus, AttemptEvent

JOB_MOVES: Final[Mapping[tuple[JobStatus, JobEvent], JobStatus]] = {
    (_J.PENDING, _JE.START): _J.ACTIVE,
    (_J.PENDING, _JE.PAUSE): _J.PAUSED,
    (_J.PENDING, _JE.DISABLE): _J.DISABLED,
    (_J.PENDING, _JE.FAIL): _J.FAILED,
    (_J.PENDING, _JE.EXPIRE): _J.EXPIRED,
    (_J.PENDING, _JE.ARCHIVE): _J.ARCHIVED,
    (_J.ACTIVE, _JE.POSTPONE): _J.PENDING,
    (_J.ACTIVE, _JE.PAUSE): _J.PAUSED,
    (_J.ACTIVE, _JE.DISABLE): _J.DISABLED,
    (_J.ACTIVE, _JE.COMPLETE): _J.COMPLETED,
    (_J.ACTIVE, _JE.FAIL): _J.FAILED,
    (_J.ACTIVE, _JE.EXPIRE): _J.EXPIRED,
    (_J.ACTIVE, _JE.ARCHIVE): _J.ARCHIVED,
    (_J.PAUSED, _JE.RESUME): _J.ACTIVE,
    (_J.PAUSED, _JE.DISABLE): _J.DISABLED,
    # A run that was live when the job was paused may still be the one that ends it.
    (_J.PAUSED, _JE.COMPLETE): _J.COMPLETED,
    (_J.PAUSED, _JE.FAIL): _J.FAILED,
    (_J.PAUSED, _JE.EXPIRE): _J.EXPIRED,
    (_J.PAUSED, _JE.ARCHIVE): _J.ARCHIVED,
    (_J.DISABLED, _JE.RESUME): _J.ACTIVE,
    (_J.DISABLED, _JE.ARCHIVE): _J.ARCHIVED,
    (_J.COMPLETED, _JE.REVIVE): _J.ACTIVE,
    (_J.COMPLETED, _JE.ARCHIVE): _J.ARCHIVED,
    (_J.FAILED, _JE.RESUME): _J.ACTIVE,
    (_J.FAILED, _JE.DISABLE): _J.DISABLED,
    (_J.FAILED, _JE.ARCHIVE): _J.ARCHIVED,
    (_J.EXPIRED, _JE.REVIVE): _J.ACTIVE,
    (_J.EXPIRED, _JE.ARCHIVE): _J.ARCHIVED,
    (_J.ARCHIVED, _JE.RESTORE): _J.DISABLED,
}

RUN_MOVES: Final[Mapping[tuple[RunStatus, RunEvent], RunStatus]] = {
    (_R.READY, _RE.CLAIM): _R.RUNNING,
    (_R.READY, _RE.HOLD): _R.WAITING,
    # A retry that can no longer start in time ends as the failure it already was.
    (_R.READY, _RE.FAIL): _R.FAILED,
    (_R.READY, _RE.TIME_OUT): _R.TIMED_OUT,
    (_R.READY, _RE.CANCEL): _R.CANCELLED,
    (_R.READY, _RE.SKIP): _R.SKIPPED,
    (_R.WAITING, _RE.PROMOTE): _R.READY,
    (_R.WAITING, _RE.FAIL): _R.FAILED,
    (_R.WAITING, _RE.TIME_OUT): _R.TIMED_OUT,
    (_R.WAITING, _RE.CANCEL): _R.CANCELLED,
    (_R.WAITING, _RE.SKIP): _R.SKIPPED,
    (_R.RUNNING, _RE.RETRY): _R.READY,
    (_R.RUNNING, _RE.HAND_BACK): _R.READY,
    (_R.RUNNING, _RE.SUCCEED): _R.SUCCEEDED,
    (_R.RUNNING, _RE.FAIL): _R.FAILED,
    (_R.RUNNING, _RE.TIME_OUT): _R.TIMED_OUT,
    (_R.RUNNING, _RE.INTERRUPT): _R.INTERRUPTED,
    (_R.RUNNING, _RE.CANCEL): _R.CANCELLED,
    (_R.RUNNING, _RE.SKIP): _R.SKIPPED,
}

ATTEMPT_MOVES: Final[Mapping[tuple[AttemptStatus, AttemptEvent], AttemptStatus]] = {
    (_A.RUNNING, _AE.SUCCEED): _A.SUCCEEDED,
    (_A.RUNNING, _AE.FAIL): _A.FAILED,
    (_A.RUNNING, _AE.TIME_OUT): _A.TIMED_OUT,
    (_A.RUNNING, _AE.LOSE): _A.LOST,
    (_A.RUNNING, _AE.CANCEL): _A.CANCELLED,
}

TERMINAL: Final = frozenset(RunStatus) - {start for start, _ in RUN_MOVES}
FAILURES: Final = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.INTERRUPTED})
FAILED_ATTEMPTS: Final = frozenset({AttemptStatus.FAILED, AttemptStatus.TIMED_OUT, AttemptStatus.LOST})
STOPPED: Final = frozenset({JobStatus.PAUSED, JobStatus.DISABLED, JobStatus.FAILED})

_MACHINES: Final[Mapping[type[StrEnum], tuple[str, Mapping[Any, StrEnum]]]] = {
    JobStatus: ("job", JOB_MOVES),
    RunStatus: ("run", RUN_MOVES),
    AttemptStatus: ("attempt", ATTEMPT_MOVES),
}


@overload
def advance(status: JobStatus, event: JobEvent) -> JobStatus: ...
@overload
def advance(status: RunStatus, event: RunEvent) -> RunStatus: ...
@overload
def advance(status: AttemptStatus, event: AttemptEvent) -> AttemptStatus: ...
def advance(status: StrEnum, event: StrEnum) -> StrEnum:
    """Return the status after `event`. IllegalMove says what is possible from here."""
    noun, moves = _MACHINES[type(status)]
    after = moves.get((status, event))
    if after is None:
        raise _refusal(noun, moves, status, event)
    return after


def may(status: JobStatus, event: JobEvent) -> bool:
    """Return whether a job in this status can make that move."""
    return (status, event) in JOB_MOVES


# The events that people ask for, and how a refusal says that one cannot happen.
_REQUESTS: Final[Mapping[StrEnum, str]] = {
    _JE.PAUSE: "paused",
    _JE.RESUME: "resumed",
    _JE.DISABLE: "disabled",
    _JE.ARCHIVE: "archived",
    _JE.RESTORE: "restored",
    _RE.CANCEL: "cancelled",
    _RE.SKIP: "skipped",
}


def _refusal(noun: str, moves: Mapping[Any, StrEnum], status: StrEnum, event: StrEnum) -> IllegalMove:
    is_now = status.value.replace("_", " ")
    asked = _REQUESTS.get(event)
    possible = [str(other.value) for start, other in moves if start is status and other in _REQUESTS]
    if status in TERMINAL:
        sentence = f"This run has already ended: it is {is_now}."
        return IllegalMove(sentence, hint="Retry it to start a new run of the same job.")
    if asked in {is_now, {"active": "resumed"}.get(is_now)}:
        sentence = f"This {noun} is already {is_now}."
    elif asked is None:
        sentence = f"This {noun} is {is_now}; the event {event.value.replace('_', ' ')} does not apply to it."
    else:
        sentence = f"This {noun} is {is_now}; it cannot be {asked}."
    return IllegalMove(sentence, hint=f"You can {_listed(possible)} it." if possible else None)


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
