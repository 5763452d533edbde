"""How the audit looks: one line for each thing done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.holding_rendering import ENOUGH
from foliot.cli.tables import QUIET, cell, columns
from foliot.cli.times import load_zone
from foliot.sdk.sync.plan import differences
from foliot.wire.audit import AuditOut

MOST = 3  # fields that are told


def audit_list(entries: Sequence[AuditOut], jobs: Mapping[str, str], zone: str) -> RenderableType:
    """`jobs` are names by id, as far as they are known."""
    if not entries:
        return Text("No entries.")
    rows = [
        (
            cell(each.at.astimezone(load_zone(zone)).strftime("%d %b %H:%M:%S")),
            cell(each.actor.name or each.actor.id),
            cell(each.action),
            cell(_what(each, jobs)),
            cell(_changed(each)),
            cell(each.address or "-", QUIET),
        )
        for each in entries
    ]
    return columns(
        ("AT", "WHO", "ACTION", "WHAT", "CHANGED", "FROM"),
        rows,
        wraps=("WHO", "WHAT", "CHANGED"),
        drops=("FROM",),
    )


def _what(entry: AuditOut, jobs: Mapping[str, str]) -> str:
    """By its name where one is known."""
    if entry.object.id in jobs:
        return jobs[entry.object.id]
    for values in (entry.after, entry.before):
        for field in ("name", "slug"):
            if values and isinstance(values.get(field), str):
                return str(values[field])
    return f"{entry.object.kind} {entry.object.id[:ENOUGH]}"


def _changed(entry: AuditOut) -> str:
    """Of a change, the fields; what was made or removed is told by the action."""
    if not entry.before or not entry.after:
        return ""
    told = [
        each.pointer.removeprefix("/").removeprefix("definition/").removeprefix("spec/")
        for each in differences(entry.before, entry.after)
        if each.pointer != "/revision"
    ]
    return ", ".join(told[:MOST]) + (" …" if len(told) > MOST else "")
