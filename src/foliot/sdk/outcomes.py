"""What a job's own code may raise to say how its attempt ends. Standard library only: child processes load this."""

from __future__ import annotations

from datetime import timedelta

LONGEST_WAIT = timedelta(days=365)


class Retry(Exception):
    """Call me again after a while: a `timedelta`, seconds, or text such as "5m". It spends one of the job's retries.

    Without `after` the job's retry policy says how long.
    """

    def __init__(self, message: str = "", *, after: timedelta | float | str | None = None) -> None:
        super().__init__(message or "The job asked to be called again.")
        self.after = None if after is None else _wait(after)


class Skip(Exception):
    """There is nothing to do: the run ends skipped, with this reason, and counts neither as success nor as failure."""

    def __init__(self, reason: str = "The job found nothing to do.") -> None:
        super().__init__(reason)


class Fail(Exception):
    """The attempt failed. `permanent`: trying again would not help. `code` is what to look for in errors of runs."""

    def __init__(
        self, message: str = "The job gave up.", *, permanent: bool = True, code: str = "failed"
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.code = code


def _wait(after: timedelta | float | str) -> timedelta:
    if isinstance(after, str):
        from foliot.wire.durations import read_duration  # it takes a while to load

        after = read_duration(after)
    elif not isinstance(after, timedelta):
        after = timedelta(seconds=after)
    if not timedelta(0) <= after <= LONGEST_WAIT:
        raise ValueError(f"after={after} cannot be: a wait lies between nothing and a year")
    return after
