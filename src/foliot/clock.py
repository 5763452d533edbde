"""The only module that reads the time. All others get an instant, or a `Clock`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds that never go back: to measure waits, never to name an instant."""
    return time.monotonic()


def pause(seconds: float) -> None:
    """Block this thread. Only for code that waits for nothing but time."""
    time.sleep(seconds)
