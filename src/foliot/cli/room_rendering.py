"""How rooms and messages look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.looks import QUIET, STRONG, cell, columns, facts, stacked
from foliot.cli.times import about, when, zone_named
from foliot.wire.rooms import MessageOut, RoomOut

ENOUGH = 18  # characters of an id: its time to the millisecond and some chance


def room_list(rooms: Sequence[RoomOut], now: datetime) -> RenderableType:
    if not rooms:
        return Text('No rooms. Make one with `foliot rooms create "Support" --key support`.')
    rows = [
        (
            cell(each.name),
            cell(each.key, QUIET),
            cell(f"{each.last_seq:,}"),
            cell(about(each.last_message_at, now) if each.last_message_at else "never"),
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
            ("made", when(room.created_at, zone, now)),
            ("messages", f"{room.last_seq:,}"),
        )
    )
    return stacked(cell(room.name, STRONG), told, *(message_line(each, zone) for each in newest))


def message_line(message: MessageOut, zone: str) -> Text:
    sender = message.sender
    who = sender.name or ("job" if message.job_id and sender.kind == "user" else sender.kind)
    at = f"{message.sent_at.astimezone(zone_named(zone)):%Y-%m-%d %H:%M:%S}  "
    style = QUIET if message.kind == "system_event" else ""
    return Text.assemble((at, QUIET), cell(who, STRONG), "  ", cell(message.text.rstrip("\n"), style))
