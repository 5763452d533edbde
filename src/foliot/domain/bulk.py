"""Doing one thing to many jobs: which things there are, and what one would mean for a job as it stands."""

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
    """Whether the job is already as the action would leave it. A job that is paused is not switched off."""
    match action:
        case Action.TAG:
            return named <= set(tags)
        case Action.UNTAG:
            return named.isdisjoint(tags)
        case _:
            return status in _THERE.get(action, ())


def check_move(action: Action, status: JobStatus) -> None:
    """Refuses what the job's status does not allow."""
    if action in _MOVES:
        advance(status, _MOVES[action])


def tags_after(action: Action, tags: tuple[str, ...], named: tuple[str, ...]) -> tuple[str, ...]:
    if action is Action.TAG:
        return (*tags, *(tag for tag in dict.fromkeys(named) if tag not in tags))
    return tuple(tag for tag in tags if tag not in named)
