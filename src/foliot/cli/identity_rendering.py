"""How members and workspaces look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.tables import QUIET, STRONG, cell, columns, facts, stacked
from foliot.cli.times import relative
from foliot.wire.identity import MemberOut
from foliot.wire.workspaces import Quotas, WorkspaceOut


def member_list(members: Sequence[MemberOut], now: datetime) -> RenderableType:
    if not members:
        return Text("No members.")
    rows = [
        (
            cell(each.name, "" if each.active else QUIET),
            cell(each.kind),
            cell(each.role if each.active else f"{each.role} (removed)"),
            cell(each.email or "-", "" if each.email else QUIET),
            cell(relative(each.created_at - now), QUIET),
            cell(each.id, QUIET),
        )
        for each in members
    ]
    return columns(
        ("NAME", "KIND", "ROLE", "EMAIL", "ADDED", "ID"), rows, wraps=("NAME", "EMAIL"), drops=("ID", "ADDED")
    )


def member_line(member: MemberOut, what: str) -> Text:
    state = "" if member.active else ", removed"
    line = Text.assemble((what, STRONG), f" {cell(member.name).plain}: {member.kind}, {member.role}{state}")
    return line.append(f" ({member.id})", QUIET)


def workspace_list(workspaces: Sequence[WorkspaceOut], now: datetime) -> RenderableType:
    if not workspaces:
        return Text("No workspaces.")
    rows = [
        (
            cell(each.slug),
            cell(each.name),
            cell(each.default_timezone),
            cell(_quotas(each.quotas) or "-"),
            cell(relative((each.archived_at or each.created_at) - now), QUIET),
        )
        for each in workspaces
    ]
    then = "ARCHIVED" if workspaces[0].archived_at else "CREATED"
    return columns(("SLUG", "NAME", "ZONE", "QUOTAS", then), rows, wraps=("NAME", "QUOTAS"), drops=(then,))


def workspace_page(workspace: WorkspaceOut, what: str, now: datetime) -> RenderableType:
    return stacked(
        Text.assemble((what, STRONG), f" {workspace.slug}."),
        facts(
            (
                ("id", str(workspace.id)),
                ("name", workspace.name),
                ("zone", workspace.default_timezone),
                ("quotas", _quotas(workspace.quotas) or "those of the installation"),
                ("created", relative(workspace.created_at - now)),
            )
        ),
    )


def _quotas(quotas: Quotas) -> str:
    set_here = quotas.model_dump(exclude_none=True)
    return ", ".join(f"{name}={amount:,}" for name, amount in set_here.items())
