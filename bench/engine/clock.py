"""Time of another day, at the pace of ours. All processes of a measurement share it, as they share the machine's own clock."""

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
