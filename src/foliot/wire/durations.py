"""Durations as people and programs write them: "10m", "1h30m", "2d", or ISO 8601, "PT10M".

A day is 24 hours and a week seven of them. Months and years have no fixed length and are refused.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from foliot.wire.shape import refusal

EXAMPLES = '"30s", "10m", "1h30m", "2d" or "PT10M"'
LONGEST = timedelta(days=36_600)

_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}  # milliseconds
_NUMBER = r"(\d{1,9}(?:\.\d{1,6})?)"
_TEXT = re.compile(
    r"\s*".join(rf"(?:{_NUMBER}\s*{unit})?" for unit in ("w", "d", "h", "m(?!s)", "s", "ms")), re.ASCII
)
_ISO = re.compile(
    rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.ASCII
)
_CALENDAR = re.compile(r"P(?:[\d.]+[YWD])*[\d.]+[YM]|[\d.]+\s*(?:y|mo)\b", re.ASCII)
_PATTERN = (
    r"^(P.*\d[WDHMS]|(\d+(\.\d+)?w)?(\d+(\.\d+)?d)?(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?(\d+ms)?)$"
)


def read_duration(text: str) -> timedelta:
    """Parse a duration. Raises ValueError with a sentence."""
    text = text.strip()
    if len(text) <= 64 and (found := _TEXT.fullmatch(text) or _ISO.fullmatch(text.replace(",", "."))):
        sizes = list(_UNITS.values())
        parts = [
            Decimal(amount) * size
            for amount, size in zip(found.groups(), sizes, strict=False)
            if amount is not None
        ]
        if parts and not text.endswith("T"):
            return _bounded(sum(parts, Decimal(0)))
    if text.isascii() and text.isdigit() and len(text) <= 9:
        raise ValueError(f"The number {text} has no unit: write {text}s for seconds or {text}m for minutes.")
    if _CALENDAR.match(text[:64]):
        raise ValueError("A month or a year has no fixed length; write days.")
    raise ValueError("This is not a duration.")


@lru_cache(maxsize=1_000)
def write_duration(value: timedelta) -> str:
    """Return the shortest form: 1h30m; 90s becomes 1m30s; zero is 0s."""
    left = value // timedelta(microseconds=1)
    text = ""
    for unit in ("d", "h", "m"):
        amount, left = divmod(left, _UNITS[unit] * 1_000)
        text += f"{amount}{unit}" if amount else ""
    if left or not text:
        seconds = f"{left // 1_000_000}.{left % 1_000_000:06}".rstrip("0").rstrip(".")
        text += f"{seconds}s"
    return text


def _bounded(milliseconds: Decimal) -> timedelta:
    if milliseconds > LONGEST // timedelta(milliseconds=1):
        raise ValueError("A duration is at most 100 years.")
    return timedelta(microseconds=int(milliseconds * 1_000))


def _validated(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise refusal("duration_type", "A duration is text.", f"Write it like {EXAMPLES}.")
    try:
        return read_duration(value)
    except ValueError as error:
        raise refusal("duration", str(error), f"Write it like {EXAMPLES}.") from None


Duration = Annotated[
    timedelta,
    BeforeValidator(_validated),
    PlainSerializer(write_duration, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 2,
            "maxLength": 64,
            "pattern": _PATTERN,
            "description": "Text (`10m`, `1h30m`) or ISO 8601 (`PT10M`); answered as text.",
            "examples": ["30s", "10m", "1h30m", "PT10M"],
        }
    ),
]
