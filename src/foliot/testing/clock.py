"""A clock that moves only when a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NOON = datetime(2027, 1, 15, 12, 0, tzinfo=UTC)


class ManualClock:
    def __init__(self, at: datetime = NOON) -> None:
        self.set(at)

    def now(self) -> datetime:
        return self._at

    def set(self, at: datetime) -> None:
        if at.tzinfo is None:
            raise ValueError("a clock is set to an aware instant")
        self._at = at.astimezone(UTC)

    def advance(self, by: timedelta) -> datetime:
        self._at += by
        return self._at
