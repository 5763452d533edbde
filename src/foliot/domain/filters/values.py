"""Parse one value of a term by the kind of its field: a fixed word, text, id, number or instant."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from difflib import get_close_matches
from typing import assert_never
from uuid import UUID

from foliot.domain.filters.fields import FieldKind, FilterField, TimeDirection
from foliot.domain.filters.query import Between, Value

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_COMPARED = re.compile(r"(<=|>=|<|>|=)?(.*)", re.DOTALL)
_NUMBER = re.compile(r"-?\d{1,15}", re.ASCII)
_DURATION = re.compile(
    r"(?:(\d{1,6})w)?(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9})s)?", re.ASCII
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_INSTANT = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:\d\d)?", re.ASCII
)
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TICK = timedelta(microseconds=1)
_LONGEST = timedelta(days=36_600)


class NotReadError(ValueError):
    """The text is not a value of that field."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def read_value(field: FilterField, text: str, now: datetime, zone: tzinfo = UTC) -> Value:
    if "\0" in text:
        raise NotReadError("Text cannot hold NUL.")
    match field.kind:
        case FieldKind.WORD:
            return _word(field, text)
        case FieldKind.TEXT | FieldKind.NAME:
            return text
        case FieldKind.ID:
            if not _ID.fullmatch(text):
                raise NotReadError(
                    f'"{text[:64]}" is not an id.',
                    "Ids look like 0192f0c1-2b3a-7c4d-8e5f-60718293a4b5. The filter name: searches in names.",
                )
            return UUID(text)
        case FieldKind.PERSON:
            return UUID(text) if _ID.fullmatch(text) else text
        case FieldKind.NUMBER:
            return _number(field, text)
        case FieldKind.INSTANT:
            return _span(field, text, now, zone)
        case _ as never:
            assert_never(never)


def _word(field: FilterField, text: str) -> str:
    word = text.lower()
    if word in field.words:
        return word
    close = get_close_matches(word[:64], field.words, n=1, cutoff=0.6)
    known = f"{field.name} is one of {', '.join(field.words)}."
    raise NotReadError(
        f'There is no {field.name} "{text[:64]}".', f'Did you mean "{close[0]}"? {known}' if close else known
    )


def _number(field: FilterField, text: str) -> Between:
    sign, rest = _signed(field, text)
    if not _NUMBER.fullmatch(rest):
        raise NotReadError(
            f'"{rest[:64]}" is not a whole number.', f"Such as {field.name}:3 or {field.name}:>3."
        )
    number = int(rest)
    return _compared(sign, number, number + 1)


def _span(field: FilterField, text: str, now: datetime, zone: tzinfo) -> Between:
    sign, rest = _signed(field, text)
    duration = _duration(rest)
    if duration is None:
        return _compared(sign, *_moment(field, rest, now, zone))
    if field.side is TimeDirection.AHEAD:
        at = now + duration
        return _compared(sign or "<=", at, at + _TICK)
    at = now - duration
    # The past is compared by distance: less than a day ago is later than the instant a day ago.
    sign = sign if field.comparing else _FLIPPED.get(sign or "<=", "=")
    return _compared(sign, at, at + _TICK)


def _signed(field: FilterField, text: str) -> tuple[str, str]:
    found = _COMPARED.fullmatch(text)
    assert found is not None
    sign, rest = found[1] or "", found[2]
    if field.comparing and sign:
        raise NotReadError(
            f"{field.name} takes no {sign}.", f"It compares by itself: {field.name}:{rest[:40]}."
        )
    return field.comparing or sign, rest


def _compared(sign: str, start: datetime | int, end: datetime | int) -> Between:
    """Turn a comparison into a range. A value is a span, at least one microsecond: `>` begins at its end, `>=` at its start."""
    match sign:
        case ">":
            return Between(end, None)
        case ">=":
            return Between(start, None)
        case "<":
            return Between(None, start)
        case "<=":
            return Between(None, end)
        case _:
            return Between(start, end)


def _duration(text: str) -> timedelta | None:
    found = _DURATION.fullmatch(text.lower())
    if found is None or not any(found.groups()):
        return None
    weeks, days, hours, minutes, seconds = (int(amount or 0) for amount in found.groups())
    length = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    if length > _LONGEST:
        raise NotReadError("That is more than a hundred years.")
    return length


def _moment(field: FilterField, text: str, now: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Parse a whole day or one instant, in the zone unless it has an offset."""
    word = text.lower()
    try:
        if word == "now":
            return now, now + _TICK
        if word in _DAYS:
            return _day(now.astimezone(zone).date() + timedelta(days=_DAYS[word]), zone)
        if _DAY.fullmatch(text):
            return _day(date.fromisoformat(text), zone)
        if _INSTANT.fullmatch(text):
            at = datetime.fromisoformat(text.upper())
            at = (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
            return at, at + _TICK
    except (ValueError, OverflowError):
        raise NotReadError(f'There is no such day or time as "{text[:64]}".') from None
    name = field.name
    raise NotReadError(
        f'"{text[:64]}" is not a time.',
        f"Such as {name}:24h, {name}:2026-11-01, {name}:2026-11-01T09:00:00Z or {name}:today.",
    )


def _day(day: date, zone: tzinfo) -> tuple[datetime, datetime]:
    start, end = (
        datetime.combine(each, time(), zone).astimezone(UTC) for each in (day, day + timedelta(days=1))
    )
    return start, end
