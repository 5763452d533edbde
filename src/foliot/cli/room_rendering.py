"""How rooms and messages look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.tables import QUIET, STRONG, cell, columns, facts, stacked
from foliot.cli.times import load_zone, local_time_relative, relative_short
from foliot.wire.rooms import DeliveryOut, MessageOut, RoomOut, WebhookOut

ENOUGH = 18  # characters of an id: its time to the millisecond and some chance


def room_list(rooms: Sequence[RoomOut], now: datetime) -> RenderableType:
    if not rooms:
        return Text('No rooms. Make one with `foliot rooms create "Support" --key support`.')
    rows = [
        (
            cell(each.name),
            cell(each.key, QUIET),
            cell(f"{each.last_seq:,}"),
            cell(relative_short(each.last_message_at, now) if each.last_message_at else "never"),
            cell(str(each.id)[:ENOUGH], QUIET),
        )
        for each in rooms
    ]
    return columns(
        ("NAME", "KEY", "MESSAGES", "LAST", "ID"), rows, wraps=("NAME", "KEY"), drops=("ID", "KEY")
    )


def room_page(room: RoomOut, newest: Sequence[MessageOut], zone: str, now: datetime) -> RenderableType:
    told = facts(
        (
            ("id", str(room.id)),
            ("key", room.key),
            ("agents", ", ".join(map(str, room.agents)) or "none: for people and services alone"),
            ("job", str(room.job_id) if room.job_id else None),
            ("made", local_time_relative(room.created_at, zone, now)),
            ("messages", f"{room.last_seq:,}"),
            *(_webhook(room.webhook, zone, now) if room.webhook else ()),
        )
    )
    return stacked(cell(room.name, STRONG), told, *(message_line(each, zone) for each in newest))


def delivery_list(deliveries: Sequence[DeliveryOut], now: datetime, *, dead: bool) -> RenderableType:
    if not deliveries and dead:
        return Text("Nothing was given up.")
    if not deliveries:
        return Text("Nothing was sent. `foliot rooms webhook ROOM URL` sends what comes.")
    rows = [
        (
            cell(f"{each.seq:,}"),
            cell(each.state),
            cell(str(each.attempts)),
            cell(_ended_or_next(each, now)),
            cell(each.last_error, QUIET),
            cell(str(each.id), QUIET),
        )
        for each in deliveries
    ]
    return columns(
        ("SEQ", "STATE", "ATTEMPTS", "ENDED OR NEXT", "LAST ERROR", "ID"),
        rows,
        wraps=("LAST ERROR",),
        drops=("LAST ERROR",),
    )


def _ended_or_next(delivery: DeliveryOut, now: datetime) -> str | None:
    at = delivery.ended_at or delivery.next_attempt_at
    return None if at is None else relative_short(at, now)


def _webhook(webhook: WebhookOut, zone: str, now: datetime) -> tuple[tuple[str, str | None], ...]:
    signed = f"signed with {webhook.secret.secret}" if webhook.secret else "unsigned"
    return (
        ("webhook", f"{webhook.url} ({signed})"),
        ("received", None if webhook.delivered_seq is None else f"up to message {webhook.delivered_seq:,}"),
        ("failing", local_time_relative(webhook.failing_since, zone, now) if webhook.failing_since else None),
        ("error", webhook.last_error),
        ("stopped", local_time_relative(webhook.stopped_at, zone, now) if webhook.stopped_at else None),
    )


def message_line(message: MessageOut, zone: str) -> Text:
    sender = message.sender
    who = sender.name or ("job" if message.job_id and sender.kind == "user" else sender.kind)
    at = f"{message.sent_at.astimezone(load_zone(zone)):%Y-%m-%d %H:%M:%S}  "
    style = QUIET if message.kind == "system_event" else ""
    return Text.assemble((at, QUIET), cell(who, STRONG), "  ", cell(message.text.rstrip("\n"), style))
