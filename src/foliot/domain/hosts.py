"""The status of a host, from the time of its last contact."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

GONE_AFTER = timedelta(minutes=2)  # after the end of its lease


class HostStatus(StrEnum):
    ONLINE = "online"
    STALE = "stale"  # silent beyond its lease: its runs are given to others, and it may return
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class HostContact:
    """The last contact of a host and the deadline of the next. A host that leaves in order has no deadline."""

    last_seen_at: datetime
    alive_until: datetime

    def status(self, now: datetime) -> HostStatus:
        if now <= self.alive_until and self.last_seen_at < self.alive_until:
            return HostStatus.ONLINE
        has_left = self.last_seen_at == self.alive_until
        if not has_left and now <= self.alive_until + GONE_AFTER:
            return HostStatus.STALE
        return HostStatus.OFFLINE


@dataclass(frozen=True, slots=True)
class HostCapacity:
    """The number of runs that a host may take now: by default one that changes something, and several read-only ones."""

    mutations: int
    reads: int

    def __bool__(self) -> bool:
        return self.mutations > 0 or self.reads > 0
