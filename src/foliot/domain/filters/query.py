"""A parsed filter: all terms must match; within a term one value must match."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from foliot.domain.errors import QueryInvalid


@dataclass(frozen=True, slots=True)
class Between:
    """From `low` up to, but not including, `high`; None is open. Every comparison of numbers and instants becomes one of these."""

    low: datetime | int | None = None
    high: datetime | int | None = None


Value = str | UUID | Between


@dataclass(frozen=True, slots=True)
class Term:
    field: str
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    terms: tuple[Term, ...] = ()

    def __and__(self, other: Query) -> Query:
        return Query(self.terms + other.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)

    def of(self, field: str) -> Iterator[Term]:
        return (term for term in self.terms if term.field == field)


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
    """Between two rows: `key` is what they are sorted by, none where that is the id itself."""

    key: str | None
    id: UUID


NEWEST_FIRST = JobOrder()


def read_order(text: str) -> JobOrder:
    """`name`, or `-name` for the other way round."""
    try:
        return JobOrder(JobSort(text.removeprefix("-")), text.startswith("-"))
    except ValueError:
        known = ", ".join(JobSort)
        raise QueryInvalid(
            f'Jobs are not sorted by "{text[:40]}".',
            pointer="/sort",
            hint=f"Sort by one of {known}; a minus before it reverses the order.",
        ) from None
