"""Instants as RFC 3339 with an offset, answered in UTC; wall-clock times without one; ids."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from foliot.wire.shape import refusal

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_SPACED = re.compile(r"(\d) (\d\d:\d\d)$", re.ASCII)
_CLOCK = re.compile(r"\d\d:\d\d(?::\d\d)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_LIKE_THIS = "Write it like 2027-01-02T18:00:00Z or 2027-01-02T18:00:00-03:00."


def read_instant(text: str) -> datetime:
    """Parse an instant. Raises ValueError with a sentence."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ValueError("This is not an instant.")
    if found[1] is None:
        raise ValueError("This instant has no offset, so it could be anywhere.")
    try:
        instant = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("There is no such date or time.") from None
    if not _EARLIEST <= instant < _LATEST:
        raise ValueError("An instant lies between the years 1970 and 9000.")
    return instant


def write_instant(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read_id(text: str) -> UUID | None:
    """Parse an id in its usual form of 36 characters; None for every other text."""
    return UUID(text) if _ID.fullmatch(text) else None


def _instant(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise refusal("instant_type", "An instant is text.", _LIKE_THIS)
    try:
        return read_instant(value)
    except ValueError as error:
        raise refusal("instant", str(error), _LIKE_THIS) from None


def _clock_time(value: Any) -> time:
    if isinstance(value, time):
        return value
    if isinstance(value, str) and _CLOCK.fullmatch(value):
        try:
            return time.fromisoformat(value)
        except ValueError:
            pass
    raise refusal("time_of_day", "This is not a time of day.", 'Write it like "09:00" or "17:30".')


def _date(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            day = date.fromisoformat(value)
        except ValueError:
            day = date.min
        if _EARLIEST.year <= day.year < _LATEST.year:
            return day
    raise refusal("date", "This is not a date.", 'Write it like "2027-01-02".')


def _id(value: Any) -> UUID:
    found = value if isinstance(value, UUID) else read_id(value) if isinstance(value, str) else None
    if found is None:
        raise refusal("id", "This is not an id.", "Ids look like 0192f0c1-2b3a-7c4d-8e5f-60718293a4b5.")
    return found


def _write_clock_time(value: time) -> str:
    return value.isoformat("seconds" if value.second else "minutes")


Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    PlainSerializer(write_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2027-01-02T18:00:00Z"]}),
]
# A query parameter, where an unescaped + arrives as a space.
Moment = Annotated[
    datetime,
    BeforeValidator(
        lambda value: _instant(_SPACED.sub(r"\1+\2", value) if isinstance(value, str) else value)
    ),
    PlainSerializer(write_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2027-01-02T18:00:00Z"]}),
]
WallTime = Annotated[
    datetime,
    PlainSerializer(lambda wall: wall.isoformat(), return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "description": "What the clock on the wall shows, without an offset.",
            "examples": ["2027-01-02T15:00:00"],
        }
    ),
]
TimeOfDay = Annotated[
    time,
    BeforeValidator(_clock_time),
    PlainSerializer(_write_clock_time, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$", "examples": ["09:00"]}
    ),
]
Day = Annotated[
    date,
    BeforeValidator(_date),
    PlainSerializer(lambda day: day.isoformat(), return_type=str),
    WithJsonSchema({"type": "string", "format": "date"}),
]
Id = Annotated[
    UUID,
    BeforeValidator(_id),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "format": "uuid"}),
]
