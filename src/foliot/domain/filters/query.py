"""A parsed filter: all terms must match; within a term one value must match."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


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
