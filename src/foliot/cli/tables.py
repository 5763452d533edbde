"""Terminal output as plain data: styled text, tables of column specs, lists of facts; and its rendering.

All text has its control characters escaped; none of it is read as markup.

Why: docs/decisions/802-command-line-output.md
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any, Generic, TextIO, TypeAlias, TypeVar
from unicodedata import category, east_asian_width

from foliot.cli.output import escape_control

Row = TypeVar("Row")
MIN_WIDTH = 40
UNLIMITED_WIDTH = 10_000  # for files and pipes
COLUMN_GAP = 2
MIN_WRAPPED_WIDTH = 14
SHORT_ID = 18  # characters of an id that lists show: its time to the millisecond and six random bits
GREEN, RED, YELLOW, DIM, BOLD = "green", "red", "yellow", "dim", "bold"
_ANSI = {GREEN: "32", RED: "31", YELLOW: "33", DIM: "2", BOLD: "1"}
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

    @property
    def width(self) -> int:
        """The columns of its longest line."""
        return max(map(text_width, self.plain.split("\n")))


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

    def lines(self, max_width: int) -> Iterator[StyledLine]:
        if not self.rows and self.empty:
            yield from wrap(styled(self.empty), max_width)
            return
        cells = [[column.cell(row) for column in self.columns] for row in self.rows]
        if self.show_titles:
            cells.insert(0, [styled(column.title, BOLD) for column in self.columns])
        widths = [max((row[at].width for row in cells), default=0) for at in range(len(self.columns))]
        kept = self._fitting(widths, max_width)
        columns = [self.columns[at] for at in kept]
        space = max_width - self.indent - COLUMN_GAP * (len(kept) - 1)
        shrunk = _shrink([widths[at] for at in kept], [column.wrap for column in columns], space)
        for row in cells:
            parts = [
                wrap(row[at], width) if column.wrap else cut(row[at], width)
                for at, column, width in zip(kept, columns, shrunk, strict=True)
            ]
            yield from _side_by_side(parts, shrunk, self.indent)

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

    def lines(self, max_width: int) -> Iterator[StyledLine]:
        rows = [
            (styled(name, DIM), value if isinstance(value, StyledLine) else styled(value))
            for name, value in self.rows
            if value is not None
        ]
        first = max((name.width for name, _ in rows), default=0)
        second = max(max_width - first - COLUMN_GAP, 1)
        for name, value in rows:
            yield from _side_by_side([[name], wrap(value, second)], [first, second])


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
    shown = (_paint(each) if colour else each.plain.rstrip() for each in _lines(block, max(width, MIN_WIDTH)))
    text = "\n".join(shown).rstrip("\n")
    return text.translate(_ASCII_MARKS) if ascii_marks else text


def text_width(text: str) -> int:
    """Return the columns that the text takes: two for a wide character, none for a combining one."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def wrap(value: StyledLine, width: int) -> list[StyledLine]:
    """Break lines between words; break a word only if it alone is too long."""
    if value.width <= width and "\n" not in value.plain:
        return [value]
    styles = [style for text, style in value.spans for _ in text]
    found: list[StyledLine] = []
    start = 0
    for paragraph in value.plain.split("\n"):
        for begin, end in _breaks(paragraph, width):
            found.append(_join(paragraph[begin:end], styles[start + begin : start + end]))
        start += len(paragraph) + 1
    return found


def cut(value: StyledLine, width: int) -> list[StyledLine]:
    """Shorten each line that is too long, with an ellipsis."""
    if value.width <= width and "\n" not in value.plain:
        return [value]
    styles = [style for text, style in value.spans for _ in text]
    found: list[StyledLine] = []
    start = 0
    for paragraph in value.plain.split("\n"):
        end = len(paragraph) if text_width(paragraph) <= width else _fitting_end(paragraph, 0, width - 1)
        shown = paragraph[:end] + ("…" if end < len(paragraph) else "")
        found.append(_join(shown, [*styles[start : start + end], styles[start] if styles else ""]))
        start += len(paragraph) + 1
    return found


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


def _lines(block: Block, max_width: int) -> Iterator[StyledLine]:
    if isinstance(block, StyledLine):
        yield from wrap(block, max_width)
    elif isinstance(block, Stack):
        for each in block.blocks:
            yield from _lines(each, max_width)
    else:
        yield from block.lines(max_width)


def _shrink(widths: list[int], wraps: Sequence[bool], space: int) -> list[int]:
    """Take columns from the widest that wrap, then from the widest of all, until the table fits."""
    widths = list(widths)
    lowest = [
        min(width, MIN_WRAPPED_WIDTH) if can else width for width, can in zip(widths, wraps, strict=True)
    ]
    for least in (lowest, [1] * len(widths)):
        while sum(widths) > space:
            at = max(range(len(widths)), key=lambda each: widths[each] if widths[each] > least[each] else 0)
            if widths[at] <= least[at]:
                break
            widths[at] -= 1
    return widths


def _side_by_side(
    cells: Sequence[Sequence[StyledLine]], widths: Sequence[int], indent: int = 0
) -> Iterator[StyledLine]:
    """Put wrapped cells beside each other, each padded to its width."""
    blank = StyledLine(())
    for row in zip_longest(*cells, fillvalue=blank):
        spans: list[tuple[str, str]] = [(" " * indent, "")] if indent else []
        for part, width in zip(row, widths, strict=True):
            spans += [*part.spans, (" " * (max(width - part.width, 0) + COLUMN_GAP), "")]
        yield StyledLine(tuple(spans[:-1]))


def _breaks(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each line. Blanks at a break are left out; those at the beginning of the text stay."""
    begin = 0
    while True:
        end = _fitting_end(text, begin, width)
        if end >= len(text):
            yield begin, len(text)
            return
        blank = text.rfind(" ", begin, end + 1)
        at = blank if text[begin:blank].strip() else end
        yield begin, max(at, begin + 1)
        begin = max(at, begin + 1)
        while begin < len(text) and text[begin] == " ":
            begin += 1


def _fitting_end(text: str, begin: int, width: int) -> int:
    """Return the end of the longest piece from `begin` that takes at most `width` columns."""
    if text.isascii():
        return begin + width
    for at in range(begin, len(text)):
        width -= _char_width(text[at])
        if width < 0:
            return at
    return len(text)


def _char_width(char: str) -> int:
    if char.isascii():
        return 1
    if category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if east_asian_width(char) in {"W", "F"} else 1


def _join(text: str, styles: Sequence[str]) -> StyledLine:
    """Return the text with one style for each character, as spans."""
    spans = groupby(zip(text, styles, strict=False), key=lambda pair: pair[1])
    return StyledLine(tuple(("".join(char for char, _ in pairs), style) for style, pairs in spans))


def _paint(value: StyledLine) -> str:
    """Return the line with the escapes of its styles, without trailing blanks."""
    spans = list(value.spans)
    while spans and not spans[-1][0].strip(" "):
        spans.pop()
    painted = []
    for at, (text, style) in enumerate(spans):
        shown = text.rstrip(" ") if at == len(spans) - 1 else text
        codes = ";".join(_ANSI[each] for each in style.split())
        painted.append(f"\x1b[{codes}m{shown}\x1b[0m" if codes and shown else shown)
    return "".join(painted)
