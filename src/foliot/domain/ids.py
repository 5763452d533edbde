"""Identifiers. Each kind has its own type. Callers pass time and entropy as values."""

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
RoomId = NewType("RoomId", UUID)
MessageId = NewType("MessageId", UUID)
DeliveryId = NewType("DeliveryId", UUID)
SecretId = NewType("SecretId", UUID)
HostId = NewType("HostId", UUID)
InstanceId = NewType("InstanceId", UUID)
ChannelId = NewType("ChannelId", UUID)
RuleId = NewType("RuleId", UUID)
IncidentId = NewType("IncidentId", UUID)
WebhookId = NewType("WebhookId", UUID)

FIRST_ID, LAST_ID = UUID(int=0), UUID(int=2**128 - 1)  # before and after every id


def made_at(id_: UUID) -> datetime:
    """Return when an id of `uuid7` was made, to the millisecond."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=id_.int >> 80)


def uuid7(at: datetime, entropy: bytes) -> UUID:
    """Return a UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 bits of `entropy` (ten bytes). Ids sort by time."""
    return uuid7s(at, entropy[:10])[0]


def uuid7s(at: datetime, entropy: bytes) -> list[UUID]:
    """Return one id for every ten bytes of `entropy`."""
    known = int(at.timestamp() * 1000) << 80 | 0x7 << 76 | 0b10 << 62
    ids = []
    for place in range(0, len(entropy), 10):
        chance = int.from_bytes(entropy[place : place + 10], "big")
        ids.append(UUID(int=known | (chance >> 68) << 64 | chance & _LOW))
    return ids


def raw_uuid7s(at: datetime, entropy: bytes) -> list[bytes]:
    """Return ids as bytes for batches. It builds whole columns of bytes: a Python step per id would dominate the cost."""
    count = len(entropy) // 10
    made = bytearray(16 * count)
    for place, byte in enumerate(int(at.timestamp() * 1000).to_bytes(6, "big")):
        made[place::16] = bytes((byte,)) * count
    for place in range(10):
        made[6 + place :: 16] = entropy[place::10]
    made[6::16] = made[6::16].translate(_VERSION)
    made[8::16] = made[8::16].translate(_VARIANT)
    ids = bytes(made)
    return [ids[place : place + 16] for place in range(0, len(ids), 16)]


_VERSION = bytes(0x70 | byte & 0x0F for byte in range(256))
_VARIANT = bytes(0x80 | byte & 0x3F for byte in range(256))
_LOW = (1 << 62) - 1  # the bits of chance that stand behind those of time and version
