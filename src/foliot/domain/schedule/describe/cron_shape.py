"""Split a cron expression into values and the way they were written, for its description.

It does not validate. For anything it does not recognise it returns None, and the sentence quotes the expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from foliot.domain.schedule.cron import ALIASES
from foliot.domain.schedule.cron_fields import MONTHS, WEEKDAYS

LAST = -1
DAYS = {name: number for number, name in enumerate(WEEKDAYS)}
MONTH_NUMBERS = {name: number for number, name in enumerate(MONTHS, 1)}
ITEM = re.compile(r"(?:(?P<star>[*?])|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?", re.ASCII)
NTH = re.compile(r"(?P<day>\w+)(?:#(?P<nth>[1-5])|(?P<last>L))", re.ASCII)
HASHED = re.compile(r"H(?:\((?P<first>\d+)-(?P<last>\d+)\))?(?:/(?P<step>\d+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class FieldShape:
    """The names and range of a field."""

    low: int
    high: int
    names: dict[str, int]
    is_week: bool = False
    is_month_day: bool = False


@dataclass(frozen=True, slots=True)
class Hashed:
    """`H`: chosen per job, perhaps from a range, perhaps again after every step."""

    first: int | None
    last: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class DescribedField:
    values: tuple[int, ...] = ()
    is_open: bool = False  # begins with a star
    is_full: bool = False  # holds every value there is
    is_range: bool = False  # some of it was written as a range or step
    is_list: bool = False
    step: int = 1  # of a field that is no list
    nth: tuple[tuple[int, int], ...] = ()  # (weekday, 1 to 5 or LAST)
    last_day: bool = False
    last_weekday: bool = False
    hashed: Hashed | None = None

    @property
    def star_step(self) -> int:
        """k of a field that is exactly `*/k`, 1 for the star itself, else 0."""
        return self.step if self.is_open and not self.is_list else 0

    @property
    def is_free(self) -> bool:
        """Return whether the field restricts nothing."""
        return self.is_open and self.is_full


@dataclass(frozen=True, slots=True)
class DescribedFields:
    second: DescribedField
    minute: DescribedField
    hour: DescribedField
    dom: DescribedField
    month: DescribedField
    dow: DescribedField


SHAPES = (
    FieldShape(0, 59, {}), FieldShape(0, 59, {}), FieldShape(0, 23, {}), FieldShape(1, 31, {}, is_month_day=True), FieldShape(1, 12, MONTH_NUMBERS),
    FieldShape(0, 7, DAYS, is_week=True),
)  # fmt: skip


def read_fields(expr: str, *, seconds: bool) -> DescribedFields | None:
    if not expr.isascii():
        return None  # the capitals of other letters can be ASCII
    parts = ALIASES.get(expr.strip().lower(), expr).upper().split()
    if len(parts) == 5:
        parts = ["0", *parts]
    elif len(parts) != 6 or not seconds:
        return None
    found = [_field(text, shape) for text, shape in zip(parts, SHAPES, strict=True)]
    fields = [field for field in found if field is not None]
    return DescribedFields(*fields) if len(fields) == 6 else None


def _field(text: str, shape: FieldShape) -> DescribedField | None:
    if hashed := HASHED.fullmatch(text):
        first, last, step = (int(found) if found else None for found in hashed.group("first", "last", "step"))
        return DescribedField(hashed=Hashed(first, last, step))
    values: set[int] = set()
    nth: list[tuple[int, int]] = []
    items = text.split(",")
    step, is_range = 1, False
    for item in items:
        if shape.is_month_day and item in {"L", "LW"}:
            continue
        if shape.is_week and (special := NTH.fullmatch(item)):
            day = _value(special["day"], shape)
            if day is None:
                return None
            nth.append((day % 7, int(special["nth"]) if special["nth"] else LAST))
            continue
        matched = ITEM.fullmatch(item)
        found = _values(matched, shape) if matched is not None else None
        if matched is None or not found:
            return None
        step = int(matched["step"] or 1)
        is_range = is_range or len(found) > 1
        values.update(found)
    if shape.is_week:
        values = {value % 7 for value in values}
    return DescribedField(
        values=tuple(sorted(values)),
        is_open=text[0] in "*?",
        is_full=len(values) == (7 if shape.is_week else shape.high - shape.low + 1),
        is_range=is_range,
        is_list=len(items) > 1,
        step=step if len(items) == 1 else 1,
        nth=tuple(sorted(set(nth))),
        last_day="L" in items,
        last_weekday="LW" in items,
    )


def _values(item: re.Match[str], shape: FieldShape) -> range | None:
    step = int(item["step"] or 1)
    first: int | None = shape.low
    last: int | None = 6 if shape.is_week else shape.high
    if not item["star"]:
        first = _value(item["first"], shape)
        # As cron reads it, 5/15 goes on to the end.
        last = _value(item["last"], shape) if item["last"] else shape.high if item["step"] else first
    return range(first, last + 1, step) if step and first is not None and last is not None else None


def _value(text: str, shape: FieldShape) -> int | None:
    number = shape.names.get(text, int(text) if text.isdigit() and len(text) < 4 else -1)
    return number if shape.low <= number <= shape.high else None
