"""Identifiers. Each kind is its own type; times and entropy come in as values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NewType
from uuid import UUID

WorkspaceId = NewType("WorkspaceId", UUID)
PrincipalId = NewType("PrincipalId", UUID)
KeyId = NewType("KeyId", UUID)
JobId = NewType("JobId", UUID)
RunId = NewType("RunId", UUID)
WorkerId = NewType("WorkerId", UUID)
CalendarId = NewType("CalendarId", UUID)
FreezeId = NewType("FreezeId", UUID)


def made_at(id_: UUID) -> datetime:
    """When an id of `uuid7` was made, to the millisecond."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=id_.int >> 80)


def uuid7(at: datetime, entropy: bytes) -> UUID:
    """A UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 bits of `entropy` (ten bytes), so ids sort by time."""
    milliseconds = int(at.timestamp() * 1000)
    chance = int.from_bytes(entropy[:10], "big")
    high = chance >> 68  # 12 bits
    low = chance & ((1 << 62) - 1)
    return UUID(int=milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)
