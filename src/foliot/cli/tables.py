"""How things look on a terminal: columns without boxes, marks beside words, colours only where they are wanted.

Everything drawn here is text with its control characters made visible; nothing in it is read as markup.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from foliot.cli.output import escape_control

NARROWEST = 40
ENDLESS = 10_000  # columns where nobody looks: a file or a pipe has no edge
GAP = 2  # between two columns
LEAST = 14  # columns that a folding column keeps
GOOD, BAD, SOON, QUIET, STRONG = "green", "red", "yellow", "dim", "bold"
JOB_MARKS = {
    "active": ("✓", GOOD),
    "pending": ("…", QUIET),
    "paused": ("‖", SOON),
    "disabled": ("○", QUIET),
    "completed": ("■", QUIET),
    "expired": ("■", QUIET),
    "failed": ("✗", BAD),
    "archived": ("-", QUIET),
}
RUN_MARKS = {
    "ready": ("…", SOON),
    "waiting": ("…", SOON),
    "running": ("▶", SOON),
    "succeeded": ("✓", GOOD),
    "failed": ("✗", BAD),
    "timed_out": ("✗", BAD),
    "interrupted": ("✗", BAD),
    "cancelled": ("-", QUIET),
    "skipped": ("○", QUIET),
}
_PLAIN_MARKS = str.maketrans({"✓": "+", "…": ".", "‖": "=", "○": "o", "■": "#", "✗": "x", "▶": ">", "─": "-"})


def cell(text: object, style: str = "") -> Text:
    return Text(escape_control("" if text is None else str(text)), style=style)


def mark(status: str, marks: dict[str, tuple[str, str]]) -> Text:
    sign, style = marks.get(status, ("?", ""))
    return Text(sign, style=style)


def marked(status: str, marks: dict[str, tuple[str, str]]) -> Text:
    """Sign and word: never the colour alone."""
    sign, style = marks.get(status, ("?", ""))
    return Text(f"{sign} {escape_control(status)}", style=style)


@dataclass(frozen=True, slots=True)
class Columns:
    """A table without lines. Where it is too wide, first the columns in `drops` go, in that order; then those in `wraps` fold."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Text]]
    wraps: Sequence[str] = ()
    drops: Sequence[str] = ()
    indent: int = 0
    headed: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        kept = list(range(len(self.headers)))
        widths = [
            max((*(row[at].cell_len for row in self.rows), len(header) if self.headed else 0), default=0)
            for at, header in enumerate(self.headers)
        ]
        for name in self.drops:
            if sum(widths[at] + GAP for at in kept) + self.indent - GAP <= options.max_width:
                break
            kept.remove(self.headers.index(name))
        table = Table(
            box=None, show_header=self.headed, header_style=STRONG, pad_edge=False, padding=(0, GAP, 0, 0)
        )
        for at in kept:
            header = self.headers[at]
            folds = header in self.wraps
            least = min(widths[at], LEAST) if folds else None
            table.add_column(
                header, no_wrap=not folds, overflow="fold" if folds else "ellipsis", min_width=least
            )
        for row in self.rows:
            table.add_row(*(row[at] for at in kept))
        yield Padding(table, (0, 0, 0, self.indent)) if self.indent else table


def columns(
    headers: Sequence[str],
    rows: Iterable[Sequence[Text]],
    *,
    wraps: Sequence[str] = (),
    drops: Sequence[str] = (),
    indent: int = 0,
    headed: bool = True,
) -> Columns:
    return Columns(headers, [tuple(row) for row in rows], wraps, drops, indent, headed)


def facts(rows: Iterable[tuple[str, Text | str | None]]) -> Table:
    """Name and value, one below the other; what is None is left out."""
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True, style=QUIET)
    shown.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            shown.add_row(cell(name), value if isinstance(value, Text) else cell(value))
    return shown


def stacked(*parts: RenderableType | None) -> Group:
    return Group(*(part for part in parts if part is not None))


def drawn(drawing: RenderableType, width: int, colour: bool = False, plain_marks: bool = False) -> str:
    """Lines of at most `width` columns, without trailing blanks."""
    paper = io.StringIO()
    console = Console(
        file=paper,
        width=max(width, NARROWEST),
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(drawing, soft_wrap=width >= ENDLESS and isinstance(drawing, Text))
    text = "\n".join(line.rstrip() for line in paper.getvalue().split("\n")).rstrip("\n")
    return text.translate(_PLAIN_MARKS) if plain_marks else text


def terminal(stream: TextIO) -> tuple[int, bool, bool]:
    """How wide, whether in colour, and whether its marks must be plain ASCII."""
    encoding = (stream.encoding or "").lower()
    plain_marks = "utf" not in encoding
    if not stream.isatty():
        return ENDLESS, False, plain_marks
    try:
        width = os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        width = 80
    wanted = os.environ.get("COLUMNS", "")
    width = int(wanted) if wanted.isascii() and wanted.isdigit() and 0 < len(wanted) < 5 else width
    return width, not (os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"), plain_marks
