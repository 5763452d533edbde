"""Every error a user can meet, one tree with stable codes. The edge translates once; the sentence is the same everywhere.

FoliotError
├── Invalid                 what was asked for cannot be: 422
│   ├── ScheduleInvalid     an expression, zone, window or phrase that names no times
│   │   └── ScheduleTooDear takes more work to evaluate than one job may use
│   ├── QueryInvalid        a filter that cannot be read
│   ├── QuotaExceeded       the workspace may not have that much
│   └── KeyReused           an Idempotency-Key that came with another request before
├── NotFound                no such thing, or not yours: 404
├── Conflict                it is not in a state that allows this: 409
│   ├── IllegalMove         a job or run cannot make that move from where it is
│   ├── ManagedByCode       the job is written in the code of an app, which would undo the change
│   ├── ImportedAlready     the record of another scheduler is a job already
│   ├── StaleRevision       it was edited since the caller read it: 412
│   ├── UnexpectedCount     a filter finds more or fewer than the caller expects
│   ├── LeaseLost           the report came under a fence that is no longer valid
│   ├── WorkerGone          the server declared the worker lost; it must register again
│   ├── KeyInUse            a request with this Idempotency-Key is still under way
│   └── AnswerLost          the request was done before, and its response is not stored
├── Denied                  this principal may not do that: 403
└── Unavailable             Foliot itself cannot work right now: 503
    └── DatabaseUnavailable no PostgreSQL to work on, or one we refuse
        └── MisplacedDatabase  the address leads to a standby or to a foreign database
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """The piece of the user's own text that an error speaks of, so that a caret can point at it."""

    text: str
    start: int
    end: int

    def caret(self) -> str:
        width = max(1, self.end - self.start)
        return f"{self.text}\n{' ' * self.start}{'^' * width}"


class FoliotError(Exception):
    """Something Foliot refuses, in one sentence, with what to do next."""

    code: ClassVar[str] = "error"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        pointer: str | None = None,
        mark: Mark | None = None,
        parts: tuple[FoliotError, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint  # what to do next
        self.pointer = pointer  # JSON pointer of the field, such as /schedule/expr
        self.mark = mark
        self.parts = parts  # where several things are wrong at once: each of them


class Invalid(FoliotError):
    """What was asked for cannot be."""

    code = "invalid"


class ScheduleInvalid(Invalid):
    """This schedule names no times, or Foliot cannot read it."""

    code = "schedule.invalid"


class ScheduleTooDear(ScheduleInvalid):
    """Evaluating this schedule with its window and calendars takes more work than one job may use."""

    code = "schedule.too_dear"


class QueryInvalid(Invalid):
    """This filter cannot be read."""

    code = "query.invalid"


class QuotaExceeded(Invalid):
    """The workspace may not have that much."""

    code = "quota_exceeded"

    def __init__(
        self,
        message: str,
        *,
        quota: str = "",
        limit: int = 0,
        used: int = 0,
        hint: str | None = None,
        pointer: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, pointer=pointer)
        self.quota = quota
        self.limit = limit
        self.used = used


class KeyReused(Invalid):
    """This Idempotency-Key came with another request before."""

    code = "idempotency_key_reused"


class NotFound(FoliotError):
    """There is no such thing here."""

    code = "not_found"


class Conflict(FoliotError):
    """It is not in a state that allows this."""

    code = "conflict"


class IllegalMove(Conflict):
    """A job or run cannot make that move from where it is."""

    code = "illegal_move"


class ManagedByCode(Conflict):
    """This job is written in the code of an app, which would undo the change."""

    code = "managed_by_code"


class ImportedAlready(Conflict):
    """This record of another scheduler is a job already."""

    code = "imported_already"


class StaleRevision(Conflict):
    """The object was edited since the caller read it."""

    code = "stale_revision"

    def __init__(self, message: str, *, hint: str | None = None, revision: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.revision = revision  # the current one


class UnexpectedCount(Conflict):
    """The filter finds another number of things than was expected."""

    code = "unexpected_count"


class LeaseLost(Conflict):
    """Another worker owns this run now, or the run has ended."""

    code = "lease_lost"


class WorkerGone(Conflict):
    """The server declared this worker lost and gave its runs to others."""

    code = "worker_gone"


class KeyInUse(Conflict):
    """A request with this Idempotency-Key is still under way."""

    code = "idempotency_in_flight"


class AnswerLost(Conflict):
    """This was done before under the same Idempotency-Key, and what was answered then is not kept."""

    code = "idempotency_answer_lost"


class Denied(FoliotError):
    """This principal may not do that."""

    code = "denied"


class Unavailable(FoliotError):
    """Foliot itself cannot work right now."""

    code = "unavailable"


class DatabaseUnavailable(Unavailable):
    """There is no PostgreSQL to work on, or one that Foliot refuses."""

    code = "database_unavailable"


class MisplacedDatabase(DatabaseUnavailable):
    """The address leads to a standby, or to a database that is not this installation's. The sentence names no address."""

    code = "database_misplaced"


def not_found(noun: str) -> NotFound:
    return NotFound(
        f"There is no such {noun}.", hint="Check its id (a name is not one); what others own is not shown."
    )


def require_found(found: T | None, noun: str) -> T:
    """Return what was found, or raise `NotFound`."""
    if found is None:
        raise not_found(noun)
    return found


def refuse_stale(noun: str, current: int, expected: int | None, *, word: str = "revision") -> None:
    """Raise `StaleRevision` where the caller expects another revision. Call it under the lock of the thing."""
    if expected not in (None, current):
        raise StaleRevision(
            f"This {noun} is at {word} {current} by now.",
            hint="Read it again, and repeat the change.",
            revision=current,
        )
