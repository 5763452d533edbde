# Made from sdk/asynchronous by ./dev format; edit it there.
"""Lists without their seams."""

from __future__ import annotations

from collections.abc import Iterator

from foliot.sdk.response import Answer
from foliot.sdk.sleep import Pages


def each_of(page_at: Pages[Answer]) -> Iterator[Answer]:
    """`page_at` answers with the page that begins at a cursor; None is the beginning."""
    cursor: str | None = None
    while True:
        page = page_at(cursor)
        for item in page.items:
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return
