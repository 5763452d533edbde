"""The sort order of a job list, and the position where a page ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from foliot.domain.errors import QueryInvalid


class JobSort(StrEnum):
    CREATED = "created_at"
    NAME = "name"
    NEXT = "next_run_at"


@dataclass(frozen=True, slots=True)
class JobOrder:
    by: JobSort = JobSort.CREATED
    descending: bool = True

    def __str__(self) -> str:
        return f"-{self.by}" if self.descending else self.by.value


@dataclass(frozen=True, slots=True)
class JobPosition:
    """The position after a row: `key` is its sort value, None when the list is sorted by id."""

    key: str | None
    id: UUID


NEWEST_FIRST = JobOrder()


def read_order(text: str) -> JobOrder:
    """Parse `name`, or `-name` for descending order."""
    try:
        return JobOrder(JobSort(text.removeprefix("-")), text.startswith("-"))
    except ValueError:
        known = ", ".join(JobSort)
        raise QueryInvalid(
            f'Jobs are not sorted by "{text[:40]}".',
            pointer="/sort",
            hint=f"Sort by one of {known}; a minus before it turns the order round.",
        ) from None
