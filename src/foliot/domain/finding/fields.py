"""What a resource can be filtered by, as a table: the names, what kind of value each takes, and what it means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Kind(StrEnum):
    WORD = "word"  # one of a few
    TEXT = "text"  # exactly this
    NAME = "name"  # this somewhere in it, in capitals or not
    ID = "id"
    PERSON = "person"  # an id, a name, or `me`
    NUMBER = "number"  # 3, >3, <=10
    INSTANT = "instant"  # 24h, 2026-11-01, 2026-11-01T09:00:00Z, today; with <, <=, >, >=


class Side(StrEnum):
    """Where a bare duration lies: `created:<24h` is less than a day ago, `next:<1h` less than an hour ahead."""

    PAST = "past"
    AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: Kind
    says: str
    words: tuple[str, ...] = ()
    side: Side = Side.PAST
    comparing: str = ""  # a field such as `since` compares another by itself: `>=`
    of: str = ""  # ... and this is the other

    @property
    def target(self) -> str:
        """The field whose values it speaks of; a query names these alone."""
        return self.of or self.name


@dataclass(frozen=True, slots=True)
class Fields:
    """The table of one resource. Words without a field are looked for in `free`."""

    noun: str
    fields: tuple[Field, ...]
    free: str = "name"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def targets(self) -> frozenset[str]:
        return frozenset(field.target for field in self.fields)

    def get(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


def times_of(target: str, says: str) -> tuple[Field, ...]:
    """The instant itself and the four ways to bound it: `since`, `until` include their day, `after`, `before` do not."""
    itself = Field(target, Kind.INSTANT, f"When it was {says}.")
    bounds = (("since", ">="), ("after", ">"), ("until", "<="), ("before", "<"))
    return (
        itself,
        *(
            replace(itself, name=name, says=f"{name.title()} it was {says}.", comparing=sign, of=target)
            for name, sign in bounds
        ),
    )
