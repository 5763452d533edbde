"""Places in lists, as text that travels in a URL: an id, and what the list is sorted by where that is not the id."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

from foliot.domain.errors import Invalid

FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)
_ID = 16  # bytes


def write_place(last_id: UUID, sorted_by: str = "") -> str:
    return urlsafe_b64encode(last_id.bytes + sorted_by.encode()).decode()


def read_place(cursor: str | None, first: UUID = FIRST) -> tuple[UUID, str]:
    """Without a cursor, before all others."""
    if cursor is None:
        return first, ""
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii"))
        place = UUID(bytes=raw[:_ID]), raw[_ID:].decode()
    except (ValueError, binascii.Error) as error:
        raise _refused() from error
    if "\0" in place[1]:  # the database has no such text
        raise _refused()
    return place


def _refused() -> Invalid:
    return Invalid(
        "This cursor is not one that Foliot gave out.",
        pointer="/cursor",
        hint="Use next_cursor of the page before, or leave it out to begin.",
    )
