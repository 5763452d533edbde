"""The only room that reads time. Everyone else is handed an instant, or asks a `Clock`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """This instant, aware, in UTC."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def monotonic() -> float:
    """Seconds that never go back: for measuring waits, never for naming an instant."""
    return time.monotonic()


def pause(seconds: float) -> None:
    """Hold this thread. Only for code that has nothing to wait on but time itself."""
    time.sleep(seconds)
