"""The progress of an attempt, as its handler reports it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

LONGEST_NOTE = 500  # characters


@dataclass(frozen=True, slots=True)
class Progress:
    done: float
    total: float
    note: str
    at: datetime

    @property
    def share(self) -> float:
        """The share done, from 0 to 1, also when the count exceeds the total."""
        return min(1.0, max(0.0, self.done / self.total)) if self.total > 0 else 1.0
