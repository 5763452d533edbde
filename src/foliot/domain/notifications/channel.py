"""Channels: how messages reach people. A channel names secrets; their values are read for each delivery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from foliot.domain.ids import ChannelId


class ChannelKind(StrEnum):
    EMAIL = "email"
    SLACK = "slack"
    WHATSAPP = "whatsapp"
    WEBHOOK = "webhook"
    ROOM = "room"
    APPRISE = "apprise"  # the long tail: Discord, Teams, Telegram and others


@dataclass(frozen=True, slots=True)
class ChannelDefinition:
    """A channel as a person writes it. `receiver` is the host that it sends to: a courier limits the share of each."""

    name: str
    kind: ChannelKind
    config: Mapping[str, Any]
    receiver: str
    enabled: bool = True
    timezone: str | None = None  # of the people whom it reaches: quiet hours follow it


@dataclass(frozen=True, slots=True)
class RefusedAddress:
    """An address that the peer refused for good."""

    address: str
    reason: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    id: ChannelId
    definition: ChannelDefinition
    revision: int
    created_at: datetime
    updated_at: datetime
    disabled_at: datetime | None = None
    disabled_reason: str | None = None
    failing_since: datetime | None = None
    error: str | None = None
    delivered_at: datetime | None = None
    window_at: datetime | None = None
    window_count: int = 0
    digest_at: datetime | None = None
    refused: tuple[RefusedAddress, ...] = field(default=())

    @property
    def is_usable(self) -> bool:
        return self.definition.enabled and self.disabled_at is None


def recipients_of(kind: ChannelKind, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the addresses that the channel itself names."""
    return tuple(config.get("to", ())) if kind in (ChannelKind.EMAIL, ChannelKind.WHATSAPP) else ()


def of_kind(kind: ChannelKind, recipients: Iterable[str]) -> tuple[str, ...]:
    """Return those recipients of a rule or job that a channel of this kind can reach: mail addresses or phone numbers."""
    return tuple(
        each for each in recipients if kind is (ChannelKind.EMAIL if "@" in each else ChannelKind.WHATSAPP)
    )
