"""The clauses of a phrase as values, before they are interpreted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time
from enum import StrEnum
from typing import NoReturn

from foliot.domain.schedule.words.tokens import refuse


class Period(StrEnum):
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class DayClause:
    """Days as cron fields. They recur every `period`; `sure` means that the words said so themselves.

    "fridays" and "every friday" are sure; "on friday" alone may be one Friday or all of them.
    """

    period: Period
    sure: bool = True
    dom: str = "*"
    month: str = "*"
    dow: str = "*"
    weekdays: frozenset[int] = frozenset()
    at_night: bool = False


EVERY_DAY = DayClause(Period.DAY)
NIGHTLY = DayClause(Period.DAY, at_night=True)


@dataclass(frozen=True, slots=True)
class Pace:
    """`counted` where the words gave a number: "every 2 hours" runs from its start, "every hour" by the clock."""

    seconds: int
    counted: bool


@dataclass(slots=True)
class ParsedClauses:
    """One optional note per clause; `spans` keeps where in the text each was said, so that a refusal can point at it."""

    text: str
    pace: Pace | None = None
    days: DayClause | None = None
    period: Period | None = None
    weeks: int = 1
    times: tuple[time, ...] = ()
    past: tuple[int, ...] = ()
    window: tuple[time, time] | None = None
    ends_before: bool = False  # the window's end may fall out: "between 9am and 5pm", "from 9am to 5pm"
    months: str = "*"
    by_clock: bool = False
    anchor: date | None = None
    date: date | None = None
    delay: int = 0
    in_days: bool = False  # the delay was said in whole days or weeks
    stamp: datetime | None = None
    manual: bool = False
    once: bool = False
    count: int = 0  # "three times a day": how many times must follow
    part_of_day: str = ""
    excluded: frozenset[int] = frozenset()  # weekdays
    is_daily: bool = False  # every day, but for those excluded
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)

    def words(self, name: str) -> str:
        start, end = self.spans[name]
        return self.text[start:end]

    @property
    def is_midnight(self) -> bool:
        """Midnight by a name that can be either end of a day: 00:00 can only be its start."""
        words = self.words("times").lower()
        return time(0) in self.times and ("midnight" in words or "12" in words)

    def only(self, *names: str) -> None:
        """Refuse clauses beside these."""
        for name in self.spans:
            if name not in names:
                beside = next((other for other in names if other in self.spans), None)
                lack = f"go with {self.words(beside)!r}" if beside is not None else "say how often"
                self.refuse(name, f"{self.words(name)!r} does not {lack}.")

    def refuse(self, name: str, message: str, hint: str | None = None) -> NoReturn:
        refuse(self.text, *self.spans.get(name, (0, len(self.text))), message, hint)

    def rewritten(self, name: str, *instead: str) -> str:
        """Return a hint with the user's own phrase, this clause replaced."""
        start, end = self.spans[name]
        return (
            "Write "
            + " or ".join(f"'{self.text[:start]}{words}{self.text[end:]}'" for words in instead)
            + "."
        )


def cron_list(values: Iterable[int]) -> str:
    """Sorted numbers as a cron field, with three or more in a row as a range: 1-5 or 0,6 or 0-6,22,23."""
    ordered = sorted(set(values))
    pieces: list[str] = []
    while ordered:
        run = next(n for n in range(len(ordered), 0, -1) if ordered[n - 1] == ordered[0] + n - 1)
        pieces += [f"{ordered[0]}-{ordered[run - 1]}"] if run > 2 else [str(value) for value in ordered[:run]]
        ordered = ordered[run:]
    return ",".join(pieces)
