"""Lists of any length from pages of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from foliot.wire.pages import Page
    from foliot.wire.shape import Shape

Item = TypeVar("Item", bound="Shape")
LONGEST_PAGE = 200

Limit = Annotated[
    int, typer.Option("-n", "--limit", min=1, max=100_000, help="At most so many.", metavar="N")
]
Cursor = Annotated[
    str | None, typer.Option(help="Go on where a list ended: its next_cursor.", metavar="CURSOR")
]
All = Annotated[bool, typer.Option("--all", help="All of them, however many.")]


def fetch_pages(
    page_at: Callable[[int, str | None], Page[Item]], *, limit: int | None, cursor: str | None = None
) -> tuple[list[Item], str | None, int | None]:
    """The items, where the rest begins, and how many there are in all where the first page knew."""
    items: list[Item] = []
    total: int | None = None
    while True:
        left = LONGEST_PAGE if limit is None else min(LONGEST_PAGE, limit - len(items))
        page = page_at(left, cursor)
        total = getattr(page, "total", None) if total is None else total
        items += page.items
        cursor = page.next_cursor
        if cursor is None or (limit is not None and len(items) >= limit):
            return items, cursor, total
