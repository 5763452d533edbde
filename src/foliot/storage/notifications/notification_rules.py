"""Notification rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from foliot.domain.errors import Conflict
from foliot.domain.ids import ChannelId, RuleId
from foliot.domain.notifications.rules import NotificationRule
from foliot.storage.codec import encode
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

MOST_RULES = 500  # of a workspace: all of them are read for each batch of notices


@dataclass(frozen=True, slots=True)
class RuleRow:
    rule: NotificationRule
    revision: int
    created_at: datetime
    updated_at: datetime


async def list_all(tx: Tx) -> list[NotificationRule]:
    return await tx.fetch_as(NotificationRule, sql.notification_rules.list_all, {"limit": MOST_RULES})


async def page(tx: Tx, after: tuple[str, UUID], limit: int) -> list[RuleRow]:
    """List rules by name."""
    name, last_id = after
    params = {"name": name, "id": last_id, "limit": limit}
    return await tx.fetch_as(RuleRow, sql.notification_rules.page, params)


async def get(tx: Tx, rule_id: RuleId) -> RuleRow | None:
    return await tx.fetch_one_as(RuleRow, sql.notification_rules.get, {"id": rule_id})


async def lock(tx: Tx, rule_id: RuleId) -> RuleRow | None:
    return await tx.fetch_one_as(RuleRow, sql.notification_rules.lock, {"id": rule_id})


async def count(tx: Tx) -> int:
    return await tx.fetch_value(int, sql.notification_rules.count)


async def insert(tx: Tx, rule: NotificationRule) -> None:
    params = _columns(rule)
    if not await tx.execute(sql.notification_rules.insert, params):
        raise _taken(rule.name)


async def update(tx: Tx, rule: NotificationRule) -> None:
    try:
        await tx.execute(sql.notification_rules.update, _columns(rule))
    except UniqueViolation:
        raise _taken(rule.name) from None


async def delete(tx: Tx, rule_id: RuleId) -> None:
    await tx.execute(sql.notification_rules.delete, {"id": rule_id})


async def list_users_of_channel(tx: Tx, channel_id: ChannelId, limit: int) -> list[str]:
    """List the names of rules that send to the channel."""
    params = {"channel_id": str(channel_id), "limit": limit}
    return await tx.fetch_as(str, sql.notification_rules.list_users_of_channel, params)


def _columns(rule: NotificationRule) -> dict[str, object]:
    return {
        "id": rule.id,
        "name": rule.name,
        "definition": Jsonb(encode(rule.definition)),
        "enabled": rule.enabled,
    }


def _taken(name: str) -> Conflict:
    return Conflict(f'There is a notification rule named "{name}" already.', hint="Choose another name.")
