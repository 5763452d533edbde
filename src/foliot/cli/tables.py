"""Terminal output as plain data: styled text, tables of column specs, lists of facts; and its rendering.

Pages are built from these values without loading Rich, which only `render` needs: start-up stays fast.
All text has its control characters escaped; none of it is read as markup.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeAlias, TypeVar

from foliot.cli.output import escape_control

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

Row = TypeVar("Row")
MIN_WIDTH = 40
UNLIMITED_WIDTH = 10_000  # for files and pipes
COLUMN_GAP = 2
MIN_WRAPPED_WIDTH = 14
SHORT_ID = 18  # characters of an id that lists show: its time to the millisecond and six random bits
GREEN, RED, YELLOW, DIM, BOLD = "green", "red", "yellow", "dim", "bold"
JOB_MARKS = {
    "active": ("✓", GREEN),
    "pending": ("…", DIM),
    "paused": ("‖", YELLOW),
    "disabled": ("○", DIM),
    "completed": ("■", DIM),
    "expired": ("■", DIM),
    "failed": ("✗", RED),
    "archived": ("-", DIM),
}
RUN_MARKS = {
    "ready": ("…", YELLOW),
    "waiting": ("…", YELLOW),
    "running": ("▶", YELLOW),
    "succeeded": ("✓", GREEN),
    "failed": ("✗", RED),
    "timed_out": ("✗", RED),
    "interrupted": ("✗", RED),
    "cancelled": ("-", DIM),
    "skipped": ("○", DIM),
}
_ASCII_MARKS = str.maketrans({"✓": "+", "…": ".", "‖": "=", "○": "o", "■": "#", "✗": "x", "▶": ">", "─": "-"})


@dataclass(frozen=True, slots=True)
class StyledLine:
    """Text in one or more styles. A long line wraps at the width of the terminal."""

    spans: tuple[tuple[str, str], ...]

    @property
    def plain(self) -> str:
        return "".join(text for text, _ in self.spans)


Value: TypeAlias = StyledLine | str | int | None
Part: TypeAlias = StyledLine | str | tuple[str, str]


def styled(value: object, style: str = "") -> StyledLine:
    """Return `value` as one span. None is empty."""
    return StyledLine(((escape_control("" if value is None else str(value)), style),))


def line(*parts: Part) -> StyledLine:
    """Join strings, (text, style) pairs and lines."""
    spans: list[tuple[str, str]] = []
    for part in parts:
        if isinstance(part, StyledLine):
            spans += part.spans
        else:
            text, style = (part, "") if isinstance(part, str) else part
            spans.append((escape_control(text), style))
    return StyledLine(tuple(spans))


def status_mark(status: str, marks: dict[str, tuple[str, str]]) -> StyledLine:
    sign, style = marks.get(status, ("?", ""))
    return StyledLine(((sign, style),))


def marked_status(status: str, marks: dict[str, tuple[str, str]]) -> StyledLine:
    """Return the mark and the word: colour alone never carries the meaning."""
    sign, style = marks.get(status, ("?", ""))
    return styled(f"{sign} {status}", style)


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One column: its title, the value of a row, and how it behaves on a narrow terminal.

    Columns with a `drop` number disappear first, lowest number first; then columns that `wrap` fold.
    """

    title: str
    value: Callable[[Row], Value]
    style: str = ""
    wrap: bool = False
    drop: int | None = None

    def cell(self, row: Row) -> StyledLine:
        value = self.value(row)
        return value if isinstance(value, StyledLine) else styled(value, self.style)


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows under column specs, without lines. Without rows, the sentence `empty`."""

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    empty: str = ""
    indent: int = 0
    show_titles: bool = True

    def to_rich(self, max_width: int) -> RenderableType:
        from rich.padding import Padding
        from rich.table import Table as RichTable

        if not self.rows and self.empty:
            return _rich_text(styled(self.empty))
        cells = [[_rich_text(column.cell(row)) for column in self.columns] for row in self.rows]
        widths = [
            max(
                (*(row[at].cell_len for row in cells), len(column.title) if self.show_titles else 0),
                default=0,
            )
            for at, column in enumerate(self.columns)
        ]
        kept = self._fitting(widths, max_width)
        table = RichTable(
            box=None,
            show_header=self.show_titles,
            header_style=BOLD,
            pad_edge=False,
            padding=(0, COLUMN_GAP, 0, 0),
        )
        for at in kept:
            column = self.columns[at]
            table.add_column(
                column.title,
                no_wrap=not column.wrap,
                overflow="fold" if column.wrap else "ellipsis",
                min_width=min(widths[at], MIN_WRAPPED_WIDTH) if column.wrap else None,
            )
        for row in cells:
            table.add_row(*(row[at] for at in kept))
        return Padding(table, (0, 0, 0, self.indent)) if self.indent else table

    def _fitting(self, widths: Sequence[int], max_width: int) -> list[int]:
        """Return the indexes of the columns to show: all, or without some that may be dropped."""
        kept = list(range(len(self.columns)))
        droppable = [(column.drop, at) for at, column in enumerate(self.columns) if column.drop is not None]
        for _, at in sorted(droppable):
            if sum(widths[each] + COLUMN_GAP for each in kept) + self.indent - COLUMN_GAP <= max_width:
                break
            kept.remove(at)
        return kept


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, one below the other. A value of None is left out."""

    rows: Sequence[tuple[str, StyledLine | str | None]]

    def to_rich(self) -> RichTable:
        from rich.table import Table as RichTable

        grid = RichTable.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True, style=DIM)
        grid.add_column(overflow="fold")
        for name, value in self.rows:
            if value is not None:
                shown = value if isinstance(value, StyledLine) else styled(value)
                grid.add_row(_rich_text(styled(name)), _rich_text(shown))
        return grid


@dataclass(frozen=True, slots=True)
class Stack:
    """Blocks, one below the other."""

    blocks: tuple[Block, ...]


Block: TypeAlias = StyledLine | Table[Any] | Facts | Stack


def facts(rows: Iterable[tuple[str, StyledLine | str | None]]) -> Facts:
    return Facts(tuple(rows))


def stack(*blocks: Block | None) -> Stack:
    """Put the blocks that are not None one below the other."""
    return Stack(tuple(block for block in blocks if block is not None))


def dry_run_page(summary: str, *sentences: str | None) -> Stack:
    """Say what a dry run would do. `summary` has no full stop; each sentence gets its own line."""
    return stack(
        line((summary, BOLD), "."),
        *(styled(each) for each in sentences if each),
        styled("Nothing was done."),
    )


def render(block: Block, width: int, colour: bool = False, ascii_marks: bool = False) -> str:
    """Return lines of at most `width` columns, without trailing blanks."""
    from rich.console import Console

    buffer = io.StringIO()
    width = max(width, MIN_WIDTH)
    console = Console(
        file=buffer,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(
        _to_rich(block, width), soft_wrap=width >= UNLIMITED_WIDTH and isinstance(block, StyledLine)
    )
    text = "\n".join(each.rstrip() for each in buffer.getvalue().split("\n")).rstrip("\n")
    return text.translate(_ASCII_MARKS) if ascii_marks else text


def terminal(stream: TextIO) -> tuple[int, bool, bool]:
    """Return the stream's width, whether it shows colours, and whether its marks must be ASCII."""
    ascii_marks = "utf" not in (stream.encoding or "").lower()
    if not stream.isatty():
        return UNLIMITED_WIDTH, False, ascii_marks
    try:
        width = os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        width = 80
    wanted = os.environ.get("COLUMNS", "")
    width = int(wanted) if wanted.isascii() and wanted.isdigit() and 0 < len(wanted) < 5 else width
    return width, not (os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"), ascii_marks


def _to_rich(block: Block, max_width: int) -> RenderableType:
    if isinstance(block, StyledLine):
        return _rich_text(block)
    if isinstance(block, Table):
        return block.to_rich(max_width)
    if isinstance(block, Facts):
        return block.to_rich()
    from rich.console import Group

    return Group(*(_to_rich(each, max_width) for each in block.blocks))


def _rich_text(value: StyledLine) -> Text:
    from rich.text import Text

    if len(value.spans) == 1:  # the style of the whole text, so that a wrapped cell keeps it
        return Text(value.spans[0][0], style=value.spans[0][1])
    text = Text()
    for part, style in value.spans:
        text.append(part, style)
    return text
