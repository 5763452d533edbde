"""Parse one cron field: return its numbers, or an error that points at the text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from foliot.domain.errors import Mark, ScheduleInvalid

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_HASHED = re.compile(r"H(?:\((?P<low>\d{1,2})-(?P<high>\d{1,2})\))?(?:/(?P<step>\d{1,2}))?", re.ASCII)
_COUNTED_FROM_LAST = re.compile(r"L[-/\d]", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CronTokenKind:
    """The unit and range of a field."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    hash_high: int | None = None  # `H` stays below: every month has a 28th

    def says(self, number: int) -> str:
        return self.names[(number - self.low) % len(self.names)] if self.names else str(number)


SECOND = CronTokenKind("second", 0, 59)
MINUTE = CronTokenKind("minute", 0, 59)
HOUR = CronTokenKind("hour", 0, 23)
DAY = CronTokenKind("day of month", 1, 31, hash_high=28)
MONTH = CronTokenKind("month", 1, 12, MONTHS)
WEEKDAY = CronTokenKind("day of week", 0, 7, WEEKDAYS, hash_high=6)


@dataclass(frozen=True, slots=True)
class CronToken:
    """A piece of a field and where it stands in the expression, for carets."""

    text: str
    expr: str
    start: int

    @property
    def upper(self) -> str:
        """Capitals of ASCII alone: elsewhere one letter can become another, or two."""
        return self.text.upper() if self.text.isascii() else self.text

    def cut(self, start: int, end: int | None = None) -> CronToken:
        return CronToken(self.text[start:end], self.expr, self.start + start)

    def partition(self, separator: str) -> tuple[CronToken, CronToken]:
        before, found, _ = self.text.partition(separator)
        return self.cut(0, len(before)), self.cut(len(before) + len(found))

    def parts(self) -> Iterator[CronToken]:
        """Yield the places of a list."""
        start = 0
        for text in self.text.split(","):
            yield self.cut(start, start + len(text))
            start += len(text) + 1

    def refuse(self, message: str, *, hint: str | None = None) -> ScheduleInvalid:
        mark = Mark(self.expr, self.start, self.start + len(self.text))
        return ScheduleInvalid(message, hint=hint, pointer="/schedule/expr", mark=mark)


@dataclass(frozen=True, slots=True)
class CronField:
    """The numbers a field names, and the special days only day fields have."""

    numbers: frozenset[int]
    is_restricted: bool  # in crontab(5) a field that starts with `*` does not count as restricted
    last_day: bool = False  # L
    last_workday: bool = False  # LW
    nth: frozenset[tuple[int, int]] = field(default_factory=frozenset)  # (weekday, n) of MON#2
    last: frozenset[int] = field(default_factory=frozenset)  # weekdays of 5L


def parse_field(kind: CronTokenKind, token: CronToken, seed: str) -> CronField:
    """Parse a field once per distinct text: expressions share fields. The position matters for errors only."""
    if token.text == "*":
        return _EVERY[kind.name]
    known = _read.get((kind.name, token.text, seed))
    if known is None:
        if len(_read) >= _REMEMBERED:
            _read.clear()
        known = _read[kind.name, token.text, seed] = _parse_field(kind, token, seed)
    return known


_REMEMBERED = 4_096
_read: dict[tuple[str, str, str], CronField] = {}


def _parse_field(kind: CronTokenKind, token: CronToken, seed: str) -> CronField:
    numbers: set[int] = set()
    nth: set[tuple[int, int]] = set()
    last: set[int] = set()
    last_day = last_workday = False
    for part in token.parts():
        if not part.text:
            raise token.refuse(
                f"The {kind.name} field has an empty place in its list.", hint="Remove the extra comma."
            )
        match (kind, part.upper):
            case (k, "L") if k is DAY:
                last_day = True
            case (k, "LW") if k is DAY:
                last_workday = True
            case (k, text) if k is WEEKDAY and "#" in text:
                nth.add(_nth_weekday(part))
            case (k, text) if k is WEEKDAY and text.endswith("L") and text != "L":
                last.add(_number(WEEKDAY, part.cut(0, -1)) % 7)
            case _:
                numbers.update(_numbers(kind, part, seed))
    if kind is WEEKDAY:
        numbers = {number % 7 for number in numbers}  # 7 is Sunday too
    restricted = not token.text.startswith(("*", "?"))
    return CronField(frozenset(numbers), restricted, last_day, last_workday, frozenset(nth), frozenset(last))


def is_hashed(token: CronToken) -> bool:
    return any(part.upper.startswith("H") for part in token.parts())


def _numbers(kind: CronTokenKind, part: CronToken, seed: str) -> range:
    if part.text == "?":
        if kind not in (DAY, WEEKDAY):
            raise part.refuse(
                f'"?" stands only in the day fields, not in the {kind.name} field.', hint='Write "*" here.'
            )
        return range(kind.low, kind.high + 1)
    if part.upper.startswith("H"):
        return _hashed(kind, part, seed)
    span, step_text = part.partition("/")
    slash = "/" in part.text
    step = _step(kind, part.cut(len(span.text)), step_text.text) if slash else 1
    if not span.text:
        raise part.refuse(
            f'"{part.text}" does not say through what the {kind.name} field steps.',
            hint=f'Write "*{part.text}".',
        )
    if span.text in ("*", "?"):
        low, high = kind.low, kind.high
    elif "-" in span.text:
        low, high = _range(kind, span)
    else:
        low = _number(kind, span)
        high = kind.high if slash else low
    if kind is WEEKDAY and span.text in ("*", "?"):
        high = 6  # else */7 would name Sunday twice
    return range(low, high + 1, step)


def _range(kind: CronTokenKind, span: CronToken) -> tuple[int, int]:
    first, last = span.partition("-")
    if not first.text and last.text.isdecimal():
        raise span.refuse(
            f'The {kind.name} field has "{span.text}"; it takes {kind.low}-{kind.high}, nothing negative.',
            hint=f'A range has two ends, such as "{kind.says(kind.low)}-{kind.says(kind.low + 1)}".',
        )
    if not (first.text and last.text):
        raise span.refuse(
            f'The {kind.name} range "{span.text}" lacks its {"end" if first.text else "start"}.',
            hint=f'Write both ends, such as "{kind.says(kind.low)}-{kind.says(kind.low + 1)}".',
        )
    low, high = _number(kind, first), _number(kind, last)
    if low > high:
        raise span.refuse(
            f'The {kind.name} range "{span.text}" runs backwards.',
            hint=f'Write it in two parts: "{kind.says(low)}-{kind.says(kind.high)},{kind.says(kind.low)}-{kind.says(high)}".'
            if kind is not WEEKDAY
            else f'The week runs from 0 (Sunday) to 7 (Sunday): write "{low}-7" or list the days, such as "{kind.says(low)},{kind.says(high)}".',
        )
    return low, high


def _number(kind: CronTokenKind, token: CronToken) -> int:
    text = token.upper
    if text in kind.names:
        return kind.names.index(text) + kind.low
    if not (text.isascii() and text.isdecimal() and len(text) <= 4):
        named = f" or {kind.names[0]}-{kind.names[-1]}" if kind.names else ""
        shown = token.text if text.isprintable() else ascii(token.text)[1:-1]
        raise token.refuse(
            f'The {kind.name} field has "{shown}"; it takes {kind.low}-{kind.high}{named}.',
            hint=_letters_hint(kind, token),
        )
    number = int(text)
    if not kind.low <= number <= kind.high:
        raise token.refuse(f"The {kind.name} field has {number}; it takes {kind.low}-{kind.high}.")
    return number


def _letters_hint(kind: CronTokenKind, token: CronToken) -> str | None:
    text = token.upper
    if kind is WEEKDAY and text == "L":
        return 'Name the day: "5L" is the last Friday of the month. The last day of the month is "L" in the third field.'
    # The text after the token too: in "L-3" and "L/2" the token ends before the sign.
    if kind is DAY and _COUNTED_FROM_LAST.match(token.expr, token.start):
        return '"L" (the last day) stands alone or in a list, such as "15,L"; nothing can be counted from it.'
    if text.endswith("W"):
        return '"W" is not supported, except "LW" (the last weekday of the month).'
    close = [name for name in kind.names if name == text[:3]]
    return f'Did you mean "{close[0]}"? Names have three letters.' if close else None


def _step(kind: CronTokenKind, written: CronToken, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 4):
        raise written.refuse(
            f"The step of the {kind.name} field is not a number.", hint='A step is written "*/15".'
        )
    step = int(text)
    if step == 0:
        raise written.refuse(
            f"A step of 0 in the {kind.name} field names no times.", hint='The smallest step is "*/1".'
        )
    if step > kind.high - kind.low + 1:  # */60 and */24 are written often, and mean the lowest value
        raise written.refuse(
            f"A step of {step} in the {kind.name} field reaches past {kind.high}, so it would only ever match {kind.low}.",
            hint=f'Write "{kind.low}" if that is meant.',
        )
    return step


def _nth_weekday(part: CronToken) -> tuple[int, int]:
    day, n = part.partition("#")
    hint = '"MON#2" is the second Monday of the month.'
    if not day.text:
        raise part.refuse(f'"{part.text}" lacks its weekday.', hint=hint)
    weekday = _number(WEEKDAY, day) % 7
    if n.text not in ("1", "2", "3", "4", "5"):
        raise part.refuse(f'"{part.text}" should end in #1 to #5.', hint=hint)
    return weekday, int(n.text)


def _hashed(kind: CronTokenKind, part: CronToken, seed: str) -> range:
    """`H` is a number of the job's own, always the same, so that equal schedules do not all start together."""
    found = _HASHED.fullmatch(part.upper)
    if found is None:
        raise part.refuse(
            f'Foliot cannot read "{part.text}".',
            hint='Hashed fields are "H", "H/15", "H(0-29)" or "H(0-29)/10".',
        )
    low = int(found["low"] or kind.low)
    high = int(found["high"] or kind.hash_high or kind.high)
    if not kind.low <= low <= high <= kind.high:
        raise part.refuse(f"The range of {part.text} must lie in {kind.low}-{kind.high}.")
    step = _step(kind, part.cut(found.start("step") - 1), found["step"]) if found["step"] else None
    width = min(step or high - low + 1, high - low + 1)
    chance = int.from_bytes(
        hashlib.sha256(f"{seed}\0{kind.name}".encode(errors="replace")).digest()[:8], "big"
    )
    first = low + chance % width
    return range(first, high + 1, step) if step else range(first, first + 1)


_EVERY = {
    kind.name: CronField(frozenset(_numbers(kind, CronToken("*", "*", 0), "")), is_restricted=False)
    for kind in (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)
}
