"""Cursors: where a page ended, as text that nobody needs to understand."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from foliot.domain.errors import Invalid

T = TypeVar("T")


def write_cursor(*parts: object) -> str:
    told = "\n".join(part.isoformat() if isinstance(part, datetime) else str(part) for part in parts)
    return urlsafe_b64encode(told.encode()).decode()


def read_cursor(text: str | None, read: Callable[[str], T]) -> T | None:
    """`read` raises ValueError for what it cannot have written."""
    if text is None:
        return None
    try:
        return read(urlsafe_b64decode(text.encode("ascii")).decode())
    except (ValueError, binascii.Error) as error:
        raise Invalid(
            "This cursor is not one that Foliot gave out.",
            pointer="/cursor",
            hint="Use next_cursor of the page before, or leave it out to begin.",
        ) from error


def instant_and_id(told: str) -> tuple[datetime, UUID]:
    at, _, last = told.partition("\n")
    instant = datetime.fromisoformat(at)
    if instant.tzinfo is None:
        raise ValueError(at)
    return instant, UUID(last)
