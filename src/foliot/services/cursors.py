"""Pages of lists and their cursors.

A cursor is the position of the last item of a page: the values that the list is sorted by, as base64 text that clients
hand back unread. A cursor that Foliot did not write is refused.
"""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar, overload
from uuid import UUID

from foliot.domain.errors import Invalid

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Part = datetime | UUID | int | str | None
LARGEST_NUMBER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    items: tuple[T, ...]
    next_cursor: str | None


def cut_page(found: Sequence[T], limit: int, position: Callable[[T], Sequence[Part]]) -> ListPage[T]:
    """Return the first `limit` of `found`, with a cursor when there are more. Storage reads `limit + 1` items."""
    items = tuple(found[:limit])
    return ListPage(items, write_cursor(*position(items[-1])) if len(found) > limit else None)


def write_cursor(*parts: Part) -> str:
    written = [part.isoformat() if isinstance(part, datetime) else part and str(part) for part in parts]
    return urlsafe_b64encode(json.dumps(written, separators=(",", ":")).encode()).decode().rstrip("=")


@overload
def read_cursor(cursor: None, *readers: Callable[[str], object]) -> None: ...
@overload
def read_cursor(cursor: str | None, first: Callable[[str], A], /) -> tuple[A] | None: ...
@overload
def read_cursor(
    cursor: str | None, first: Callable[[str], A], second: Callable[[str], B], /
) -> tuple[A, B] | None: ...
@overload
def read_cursor(
    cursor: str | None, first: Callable[[str], A], second: Callable[[str], B], third: Callable[[str], C], /
) -> tuple[A, B, C] | None: ...
def read_cursor(cursor: str | None, *readers: Callable[[str], object]) -> tuple[object, ...] | None:
    """Read each part by its reader, which raises ValueError for text that Foliot cannot have written."""
    if cursor is None:
        return None
    try:
        parts = json.loads(urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)))
        return tuple(reader(part) for reader, part in zip(readers, parts, strict=True))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, binascii.Error) as error:
        raise refuse_cursor("This cursor is not one that Foliot gave out.") from error


def refuse_cursor(message: str) -> Invalid:
    return Invalid(
        message, pointer="/cursor", hint="Use next_cursor of the page before, or leave it out to begin."
    )


def instant(part: str) -> datetime:
    found = datetime.fromisoformat(part)
    if found.tzinfo is None:
        raise ValueError("no offset")
    return found.astimezone(UTC)  # PostgreSQL accepts fewer offsets than Python


def text(part: object) -> str:
    """Read text that PostgreSQL can store."""
    if not isinstance(part, str) or "\0" in part:
        raise ValueError("not text")
    part.encode()  # raises on unpaired surrogates
    return part


def number(part: str) -> int:
    if not (part.isascii() and part.isdecimal() and int(part[:20]) <= LARGEST_NUMBER):
        raise ValueError("not a number")
    return int(part)
