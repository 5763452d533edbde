"""A clock that shows another day and runs at the pace of the real one. All processes of a measurement share it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class ShiftedClock:
    at: datetime  # what it shows
    since: float  # when the monotonic clock shows this

    def now(self) -> datetime:
        return self.at + timedelta(seconds=time.monotonic() - self.since)
