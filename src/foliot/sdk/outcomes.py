"""Exceptions that a job's code raises to end its attempt. Standard library only: child processes import this."""

from __future__ import annotations

from datetime import timedelta

MAX_WAIT = timedelta(days=365)


class Retry(Exception):
    """Retry after `after`: a `timedelta`, seconds, or text such as "5m". It uses one of the job's retries.

    Without `after` the job's retry policy decides.
    """

    def __init__(self, message: str = "", *, after: timedelta | float | str | None = None) -> None:
        super().__init__(message or "The job asked to be called again.")
        self.after = None if after is None else _read_wait(after)


class Skip(Exception):
    """End the run as skipped, with a reason. It counts neither as success nor as failure."""

    def __init__(self, reason: str = "The job found nothing to do.") -> None:
        super().__init__(reason)


class Fail(Exception):
    """Fail the attempt. `permanent`: do not retry. `code` appears in the error of the run."""

    def __init__(
        self, message: str = "The job gave up.", *, permanent: bool = True, code: str = "failed"
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.code = code


class Cancel(Exception):
    """End the run as cancelled: its work is no longer wanted. It is not retried and counts as no failure."""

    def __init__(self, reason: str = "The job found that its work is no longer wanted.") -> None:
        super().__init__(reason)


class TimeOut(Exception):
    """End the attempt as timed out: the job gave up waiting for something. The retry policy applies."""

    def __init__(self, reason: str = "The job gave up waiting.") -> None:
        super().__init__(reason)


def _read_wait(after: timedelta | float | str) -> timedelta:
    if isinstance(after, str):
        from foliot.wire.durations import read_duration  # slow to import

        after = read_duration(after)
    elif not isinstance(after, timedelta):
        after = timedelta(seconds=after)
    if not timedelta(0) <= after <= MAX_WAIT:
        raise ValueError(f"after={after} must be between zero and a year")
    return after
