"""Actions on many jobs at once, and the effect of an action on one job."""

from __future__ import annotations

from enum import StrEnum

from foliot.domain.errors import Invalid, UnexpectedCount
from foliot.domain.lifecycle import JobEvent, JobStatus, advance


class JobAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    DISABLE = "disable"
    ENABLE = "enable"
    RUN = "run"
    TAG = "tag"
    UNTAG = "untag"
    HAND_OVER = "hand_over"  # to another owner
    ARCHIVE = "archive"
    RESTORE = "restore"  # from the archive; it stays disabled
    PURGE = "purge"


class BulkOutcome(StrEnum):
    DONE = "done"
    ALREADY = "already"  # nothing to do
    FAILED = "failed"
    NOT_FOUND = "not_found"


EDITS = frozenset(
    (
        JobAction.TAG,
        JobAction.UNTAG,
        JobAction.HAND_OVER,
        JobAction.ARCHIVE,
        JobAction.RESTORE,
        JobAction.PURGE,
    )
)  # actions that need the role editor
_MOVES = {
    JobAction.PAUSE: JobEvent.PAUSE,
    JobAction.RESUME: JobEvent.RESUME,
    JobAction.ENABLE: JobEvent.RESUME,
    JobAction.DISABLE: JobEvent.DISABLE,
    JobAction.ARCHIVE: JobEvent.ARCHIVE,
    JobAction.RESTORE: JobEvent.RESTORE,
}
_THERE = {
    JobAction.PAUSE: frozenset((JobStatus.PAUSED,)),
    JobAction.DISABLE: frozenset((JobStatus.DISABLED,)),
    JobAction.ARCHIVE: frozenset((JobStatus.ARCHIVED,)),
    JobAction.RESTORE: frozenset(JobStatus) - {JobStatus.ARCHIVED},
    JobAction.RESUME: frozenset((JobStatus.ACTIVE, JobStatus.PENDING)),
    JobAction.ENABLE: frozenset((JobStatus.ACTIVE, JobStatus.PENDING, JobStatus.PAUSED)),
}


def is_done(action: JobAction, status: JobStatus, tags: tuple[str, ...], named: frozenset[str]) -> bool:
    """Return whether the job already has the state that the action would give it. A paused job is not disabled."""
    match action:
        case JobAction.TAG:
            return named <= set(tags)
        case JobAction.UNTAG:
            return named.isdisjoint(tags)
        case _:
            return status in _THERE.get(action, ())


def check_move(action: JobAction, status: JobStatus) -> None:
    """Raise IllegalMove if the job's status does not allow the action."""
    if action in _MOVES:
        advance(status, _MOVES[action])


def tags_after(action: JobAction, tags: tuple[str, ...], named: tuple[str, ...]) -> tuple[str, ...]:
    if action is JobAction.TAG:
        return (*tags, *(tag for tag in dict.fromkeys(named) if tag not in tags))
    return tuple(tag for tag in tags if tag not in named)


def check_expected_count(nouns: str, expected: int | None, count: int, *, dry_run: bool) -> None:
    """Refuse to act on what a filter finds unless the caller has seen how many there are."""
    if expected is None and not dry_run:
        raise Invalid(
            "By filter this needs expected_count.",
            pointer="/expected_count",
            hint=f"It finds {count:,} {nouns} now; dry_run shows what would happen to them.",
        )
    if expected not in (None, count):
        raise UnexpectedCount(
            f"This filter finds {count:,} {nouns}, not {expected:,}. Nothing was done.",
            pointer="/expected_count",
            hint="Look at them again; if they are the ones you mean, send the new count.",
        )
