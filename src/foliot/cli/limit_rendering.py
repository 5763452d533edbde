"""How limits look."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.tables import SOON, STRONG, cell, columns
from foliot.wire.limits import LimitOut


def limit_list(limits: Sequence[LimitOut]) -> RenderableType:
    if not limits:
        return Text("No limits: as many run at once as workers take.")
    rows = [
        (
            cell(of(each.key)),
            cell(f"{each.cap:,}"),
            cell(f"{each.in_use:,}", SOON if each.in_use >= each.cap else ""),
            cell(f"{each.waiting:,}"),
        )
        for each in limits
    ]
    return columns(("OF", "AT MOST", "RUNNING", "WAITING"), rows, wraps=("OF",))


def limit_line(limit: LimitOut, what: str) -> Text:
    tail = " Nothing was done." if limit.dry_run else ""
    return Text.assemble(
        (what, STRONG),
        f": {of(limit.key)}, at most {limit.cap:,} at once; {limit.in_use:,} running, {limit.waiting:,} waiting.{tail}",
    )


def of(key: str | None) -> str:
    return "the workspace" if key is None else f"key {cell(key).plain}"
