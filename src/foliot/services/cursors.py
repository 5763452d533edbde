"""Where a page of jobs ends, as text that a client hands back. It says by which order it was made, and is held to that."""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from uuid import UUID

from foliot.domain.errors import Invalid
from foliot.domain.filters.order import JobOrder, JobSort, Place

_NOTHING_PLANNED = "infinity"


def write_cursor(place: Place, order: JobOrder) -> str:
    told = [str(order), place.key, place.id.hex]
    return urlsafe_b64encode(json.dumps(told, separators=(",", ":")).encode()).decode().rstrip("=")


def read_cursor(text: str, order: JobOrder) -> Place:
    try:
        told = json.loads(urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4)))
        made_for, key, place_id = told
        place = Place(_key(order, key), UUID(hex=place_id))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, binascii.Error) as error:
        raise _refused("This cursor is not one that Foliot gave out.") from error
    if made_for != str(order):
        raise _refused("This cursor belongs to a list in another order.")
    return place


def _key(order: JobOrder, key: str | None) -> str | None:
    """Only what the database reads as a value of that kind."""
    match order.by:
        case JobSort.CREATED:
            return None
        case JobSort.NEXT if key != _NOTHING_PLANNED:
            return (
                datetime.fromisoformat(str(key)).astimezone(UTC).isoformat()
            )  # the database knows fewer offsets
    if not isinstance(key, str) or "\0" in key:
        raise ValueError("no key")
    key.encode()
    return key


def _refused(why: str) -> Invalid:
    return Invalid(
        why, pointer="/cursor", hint="Use next_cursor of the page before, or leave it out to begin."
    )
