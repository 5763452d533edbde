"""One cron field at a time: text in, the numbers it names out, or an error that points at the text."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from foliot.domain.errors import Mark, ScheduleInvalid

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_HASHED = re.compile(r"H(?:\((?P<low>\d{1,2})-(?P<high>\d{1,2})\))?(?:/(?P<step>\d{1,2}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field counts, and from where to where."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    hash_high: int | None = None  # `H` stays below: every month has a 28th

    def says(self, number: int) -> str:
        return self.names[(number - self.low) % len(self.names)] if self.names else str(number)


SECOND = Kind("second", 0, 59)
MINUTE = Kind("minute", 0, 59)
HOUR = Kind("hour", 0, 23)
DAY = Kind("day of month", 1, 31, hash_high=28)
MONTH = Kind("month", 1, 12, MONTHS)
WEEKDAY = Kind("day of week", 0, 7, WEEKDAYS, hash_high=6)


@dataclass(frozen=True, slots=True)
class Token:
    """A field's text and where it stands in the expression, for carets."""

    text: str
    expr: str
    start: int

    def refuse(self, message: str, *, hint: str | None = None, part: str | None = None) -> ScheduleInvalid:
        offset = self.text.find(part) if part else 0
        start = self.start + max(offset, 0)
        width = len(part) if part else len(self.text)
        return ScheduleInvalid(
            message, hint=hint, pointer="/schedule/expr", mark=Mark(self.expr, start, start + width)
        )


@dataclass(frozen=True, slots=True)
class Field:
    """The numbers a field names, and the special days only day fields have."""

    numbers: frozenset[int]
    is_restricted: bool  # in crontab(5) a field that starts with `*` does not count as restricted
    last_day: bool = False  # L
    last_workday: bool = False  # LW
    nth: frozenset[tuple[int, int]] = field(default_factory=frozenset)  # (weekday, n) of MON#2
    last: frozenset[int] = field(default_factory=frozenset)  # weekdays of 5L


def parse_field(kind: Kind, token: Token, seed: str) -> Field:
    if token.text == "*":
        return _EVERY[kind.name]
    numbers: set[int] = set()
    nth: set[tuple[int, int]] = set()
    last: set[int] = set()
    last_day = last_workday = False
    for part in token.text.upper().split(","):
        match (kind, part):
            case (k, "L") if k is DAY:
                last_day = True
            case (k, "LW") if k is DAY:
                last_workday = True
            case (k, _) if k is WEEKDAY and "#" in part:
                nth.add(_nth_weekday(token, part))
            case (k, _) if k is WEEKDAY and part.endswith("L") and part != "L":
                last.add(_number(WEEKDAY, token, part[:-1]) % 7)
            case _:
                numbers.update(_numbers(kind, token, part, seed))
    if kind is WEEKDAY:
        numbers = {number % 7 for number in numbers}  # 7 is Sunday too
    restricted = not token.text.startswith(("*", "?"))
    return Field(frozenset(numbers), restricted, last_day, last_workday, frozenset(nth), frozenset(last))


def _numbers(kind: Kind, token: Token, part: str, seed: str) -> range:
    if not part:
        raise token.refuse(
            f"The {kind.name} field has an empty place in its list.", hint="Remove the extra comma."
        )
    if part == "?":
        if kind not in (DAY, WEEKDAY):
            raise token.refuse(
                f'"?" stands only in the day fields, not in the {kind.name} field.', hint='Write "*" here.'
            )
        return range(kind.low, kind.high + 1)
    if part.startswith("H"):
        return _hashed(kind, token, part, seed)
    span, slash, step_text = part.partition("/")
    step = _step(kind, token, step_text) if slash else 1
    if span in ("*", "?"):
        low, high = kind.low, kind.high
    elif "-" in span:
        low_text, _, high_text = span.partition("-")
        low, high = _number(kind, token, low_text), _number(kind, token, high_text)
        if low > high:
            raise token.refuse(
                f'The {kind.name} range "{span}" runs backwards.',
                hint=f'Write it in two parts: "{kind.says(low)}-{kind.says(kind.high)},{kind.says(kind.low)}-{kind.says(high)}".'
                if kind is not WEEKDAY
                else f'The week runs from 0 (Sunday) to 7 (Sunday): write "{low}-7" or list the days, such as "{kind.says(low)},{kind.says(high)}".',
                part=span,
            )
    else:
        low = _number(kind, token, span)
        high = kind.high if slash else low
    if kind is WEEKDAY and span in ("*", "?"):
        high = 6  # else */7 would name Sunday twice
    return range(low, high + 1, step)


def _number(kind: Kind, token: Token, text: str) -> int:
    if text in kind.names:
        return kind.names.index(text) + kind.low
    if not (text.isascii() and text.isdecimal() and len(text) <= 4):
        named = f" or {kind.names[0]}-{kind.names[-1]}" if kind.names else ""
        shown = text if text.isprintable() else ascii(text)[1:-1]
        raise token.refuse(
            f'The {kind.name} field has "{shown}"; it takes {kind.low}-{kind.high}{named}.',
            hint=_letters_hint(kind, text),
            part=text,
        )
    number = int(text)
    if not kind.low <= number <= kind.high:
        raise token.refuse(f"The {kind.name} field has {number}; it takes {kind.low}-{kind.high}.", part=text)
    return number


def _letters_hint(kind: Kind, text: str) -> str | None:
    if kind is WEEKDAY and text == "L":
        return 'Name the day: "5L" is the last Friday of the month. The last day of the month is "L" in the third field.'
    if kind is DAY and text.startswith("L"):
        return '"L" (the last day) stands alone or in a list, such as "15,L"; nothing can be counted from it.'
    if text.endswith("W"):
        return '"W" is not supported, except "LW" (the last weekday of the month).'
    close = [name for name in kind.names if name == text[:3]]
    return f'Did you mean "{close[0]}"? Names have three letters.' if close else None


def _step(kind: Kind, token: Token, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 4):
        raise token.refuse(
            f"The step of the {kind.name} field is not a number.",
            hint='A step is written "*/15".',
            part=f"/{text}",
        )
    step = int(text)
    if step == 0:
        raise token.refuse(
            f"A step of 0 in the {kind.name} field names no times.",
            hint='The smallest step is "*/1".',
            part=f"/{text}",
        )
    if step > kind.high - kind.low + 1:  # */60 and */24 are written often, and mean the lowest value
        raise token.refuse(
            f"A step of {step} in the {kind.name} field reaches past {kind.high}, so it would only ever match {kind.low}.",
            hint=f'Write "{kind.low}" if that is meant.',
            part=f"/{text}",
        )
    return step


def _nth_weekday(token: Token, part: str) -> tuple[int, int]:
    day_text, _, n_text = part.partition("#")
    day = _number(WEEKDAY, token, day_text) % 7
    if n_text not in ("1", "2", "3", "4", "5"):
        raise token.refuse(
            f'"{part}" should end in #1 to #5.', hint='"MON#2" is the second Monday of the month.', part=part
        )
    return day, int(n_text)


def _hashed(kind: Kind, token: Token, part: str, seed: str) -> range:
    """`H` is a number of the job's own, always the same, so that equal schedules do not all start together."""
    found = _HASHED.fullmatch(part)
    if found is None:
        raise token.refuse(
            f'Foliot cannot read "{part}".',
            hint='Hashed fields are "H", "H/15", "H(0-29)" or "H(0-29)/10".',
            part=part,
        )
    low = int(found["low"] or kind.low)
    high = int(found["high"] or kind.hash_high or kind.high)
    if not kind.low <= low <= high <= kind.high:
        raise token.refuse(f"The range of {part} must lie in {kind.low}-{kind.high}.", part=part)
    step = _step(kind, token, found["step"]) if found["step"] else None
    width = min(step or high - low + 1, high - low + 1)
    chance = int.from_bytes(
        hashlib.sha256(f"{seed}\0{kind.name}".encode(errors="replace")).digest()[:8], "big"
    )
    first = low + chance % width
    return range(first, high + 1, step) if step else range(first, first + 1)


_EVERY = {
    kind.name: Field(frozenset(_numbers(kind, Token("*", "*", 0), "*", "")), is_restricted=False)
    for kind in (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)
}
