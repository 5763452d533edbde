"""Actions on many jobs at once, and the effect of an action on one job."""

from __future__ import annotations

from enum import StrEnum

from foliot.domain.lifecycle import JobEvent, JobStatus, advance


class Action(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    DISABLE = "disable"
    ENABLE = "enable"
    RUN = "run"
    TAG = "tag"
    UNTAG = "untag"
    ARCHIVE = "archive"
    PURGE = "purge"


class Outcome(StrEnum):
    DONE = "done"
    ALREADY = "already"  # there was nothing to do
    FAILED = "failed"
    NOT_FOUND = "not_found"


EDITS = frozenset((Action.TAG, Action.UNTAG, Action.ARCHIVE, Action.PURGE))  # what needs an editor
_MOVES = {
    Action.PAUSE: JobEvent.PAUSE,
    Action.RESUME: JobEvent.RESUME,
    Action.ENABLE: JobEvent.RESUME,
    Action.DISABLE: JobEvent.DISABLE,
    Action.ARCHIVE: JobEvent.ARCHIVE,
}
_THERE = {
    Action.PAUSE: frozenset((JobStatus.PAUSED,)),
    Action.DISABLE: frozenset((JobStatus.DISABLED,)),
    Action.ARCHIVE: frozenset((JobStatus.ARCHIVED,)),
    Action.RESUME: frozenset((JobStatus.ACTIVE, JobStatus.PENDING)),
    Action.ENABLE: frozenset((JobStatus.ACTIVE, JobStatus.PENDING, JobStatus.PAUSED)),
}


def is_done(action: Action, status: JobStatus, tags: tuple[str, ...], named: frozenset[str]) -> bool:
    """Return whether the job already has the state that the action would give it. A paused job is not disabled."""
    match action:
        case Action.TAG:
            return named <= set(tags)
        case Action.UNTAG:
            return named.isdisjoint(tags)
        case _:
            return status in _THERE.get(action, ())


def check_move(action: Action, status: JobStatus) -> None:
    """Raise IllegalMove if the job's status does not allow the action."""
    if action in _MOVES:
        advance(status, _MOVES[action])


def tags_after(action: Action, tags: tuple[str, ...], named: tuple[str, ...]) -> tuple[str, ...]:
    if action is Action.TAG:
        return (*tags, *(tag for tag in dict.fromkeys(named) if tag not in tags))
    return tuple(tag for tag in tags if tag not in named)
