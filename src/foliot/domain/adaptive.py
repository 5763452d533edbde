"""An adaptive polling interval: half the time to the next due job, between a minute and a week.

Foliot itself sleeps until the next due time; this is for embedders that must poll.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

SHORTEST = timedelta(seconds=60)
LONGEST = timedelta(seconds=604_800)


def polling_interval(next_times: Iterable[datetime], now: datetime) -> timedelta:
    """Half the shortest wait until one of `next_times`, clamped; the longest when there are none."""
    nearest = min(next_times, default=None)
    if nearest is None:
        return LONGEST
    return min(max((nearest - now) / 2, SHORTEST), LONGEST)
