"""Lists without their seams."""

from __future__ import annotations

from collections.abc import AsyncIterator

from foliot.sdk.response import Answer
from foliot.sdk.sleep import AsyncPages


async def each_of(page_at: AsyncPages[Answer]) -> AsyncIterator[Answer]:
    """`page_at` answers with the page that begins at a cursor; None is the beginning."""
    cursor: str | None = None
    while True:
        page = await page_at(cursor)
        for item in page.items:
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return
