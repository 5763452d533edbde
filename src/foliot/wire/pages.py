"""Lists on the wire: a page and where the next one begins."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import Field

from foliot.wire.shape import Shape

PAGE = 50
LONGEST_PAGE = 200
Item = TypeVar("Item", bound=Shape)


class Page(Shape, Generic[Item]):
    items: list[Item]
    next_cursor: str | None = Field(description="Send it as `cursor` for the next page; null at the end.")


class CountedPage(Page[Item], Generic[Item]):
    total: int = Field(description="How many there are, over all pages; counted up to 10,000.")
    more: bool = Field(description="True where there are more than were counted.")
