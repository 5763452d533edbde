"""Named calendars: shared time spans in which jobs must not run (blackout) or may only run (allow)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from foliot.domain.errors import Invalid
from foliot.domain.schedule.cron import parse_cron
from foliot.domain.schedule.merged_spans import NEVER, Absolute, CronStretch, Days, MergedSpans, Rule
from foliot.domain.schedule.window import ALL_DAYS, Otherwise, Weekly
from foliot.domain.schedule.zone import load_zone, naive_utc

LONGEST_NAME = 200
MOST_RULES = 1_000
MOST_RULES_OF_A_JOB = 3_000  # of all calendars that one job uses
LONGEST_STRETCH = timedelta(days=366)
FIRST_YEAR, LAST_YEAR = 1970, 2200  # of days and of year views
T = TypeVar("T")


class CalendarKind(StrEnum):
    BLACKOUT = "blackout"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class CalendarScope:
    """Jobs that a calendar applies to although they do not name it: all of the workspace, or those with one of these properties."""

    types: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()  # names of hosts that jobs are bound to

    @property
    def is_everything(self) -> bool:
        return not (self.types or self.tags or self.queues or self.hosts)

    def covers(self, kind: str, queue: str, tags: Iterable[str], host: str | None) -> bool:
        return (
            self.is_everything
            or kind in self.types
            or queue in self.queues
            or not self.tags.isdisjoint(tags)
            or host in self.hosts
        )

    @property
    def words(self) -> str:
        if self.is_everything:
            return "all jobs of the workspace"
        named = (
            ("type", self.types), ("tag", self.tags), ("queue", self.queues), ("host", self.hosts)
        )  # fmt: skip
        return "jobs of " + " or ".join(f"{word} {name}" for word, names in named for name in sorted(names))


@dataclass(frozen=True, slots=True)
class Calendar:
    name: str
    kind: CalendarKind
    rules: tuple[Rule, ...]
    timezone: str = "UTC"
    otherwise: Otherwise = Otherwise.SKIP
    scope: CalendarScope | None = None  # None: only jobs that name it
    _merged: list[MergedSpans] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def spans(self) -> MergedSpans:
        """The merged spans of its rules, prepared once. Raises ScheduleTooDear for rules that are too many."""
        if not self._merged:
            self._merged.append(MergedSpans(self.rules, self.timezone))
        return self._merged[0]

    @property
    def title(self) -> str:
        """Its name, and whom it applies to by its scope."""
        return f'the calendar "{self.name}"' + (
            f", which applies to {self.scope.words}," if self.scope else ""
        )

    def deferring(self) -> Calendar:
        """Return the same calendar with planned times deferred, not skipped. It shares the prepared spans."""
        if self.otherwise is Otherwise.DEFER:
            return self
        other = replace(self, otherwise=Otherwise.DEFER)
        other._merged.append(self.spans)  # noqa: SLF001  # of its own kind
        return other


def check_calendar(calendar: Calendar) -> None:
    """Raise ScheduleInvalid for a calendar that cannot be evaluated or has no effect."""
    if not 1 <= len(calendar.name.strip()) <= LONGEST_NAME:
        raise Invalid(f"A calendar has a name of at most {LONGEST_NAME} characters.", pointer="/name")
    _pointed(lambda: load_zone(calendar.timezone), "/timezone")
    if not 1 <= len(calendar.rules) <= MOST_RULES:
        raise Invalid(f"A calendar has between 1 and {MOST_RULES:,} rules.", pointer="/rules")
    for place, rule in enumerate(calendar.rules):
        _check_rule(rule, f"/rules/{place}")
    _ = calendar.spans  # refuses rules that start too often


def check_calendars_of_job(rules: int) -> None:
    """Refuse a job whose calendars have too many rules together."""
    if rules > MOST_RULES_OF_A_JOB:
        raise Invalid(
            f"The calendars of this job have {rules:,} rules together; at most {MOST_RULES_OF_A_JOB:,} are allowed.",
            hint="Let the job use fewer calendars, or join their rules.",
            pointer="/calendars",
        )


def calendar_closed_until(calendar: Calendar, instant: datetime) -> datetime | None:
    """Return None if the calendar allows `instant`, else the next instant to check; `datetime.max` means never."""
    end = calendar.spans.end_of(instant)
    if calendar.kind is CalendarKind.BLACKOUT:
        return end
    return None if end is not None else calendar.spans.next_start(instant)


def calendar_closes_at(calendar: Calendar, instant: datetime) -> datetime | None:
    """Return when a calendar that allows `instant` closes next, or None."""
    if calendar.kind is CalendarKind.BLACKOUT:
        closes = calendar.spans.next_start(instant)
    else:
        closes = calendar.spans.end_of(instant) or instant
    return None if closes == NEVER else closes


def _check_rule(rule: Rule, pointer: str) -> None:
    match rule:
        case Weekly():
            if not rule.days or not rule.days <= ALL_DAYS:
                raise Invalid(
                    "A weekly rule names days from 0 (Monday) to 6 (Sunday).", pointer=f"{pointer}/days"
                )
        case Absolute():
            start, end = (
                _pointed(lambda: naive_utc(rule.start), f"{pointer}/start"),
                _pointed(lambda: naive_utc(rule.end), f"{pointer}/end"),
            )
            if end <= start:
                raise Invalid("A period must end after it starts.", pointer=f"{pointer}/end")
        case Days():
            if not FIRST_YEAR <= rule.first.year <= LAST_YEAR:
                raise Invalid(
                    f"A day must be between the years {FIRST_YEAR} and {LAST_YEAR}.",
                    pointer=f"{pointer}/date",
                )
            if not timedelta(0) < rule.end - rule.first <= LONGEST_STRETCH:
                raise Invalid(
                    f"The last day is the first or a later one, at most {LONGEST_STRETCH.days} days in all.",
                    pointer=f"{pointer}/last",
                )
        case CronStretch():
            _pointed(lambda: parse_cron(rule.expr), f"{pointer}/expr")
            if not timedelta(0) < rule.duration <= LONGEST_STRETCH:
                raise Invalid(
                    f"A period must be longer than 0 and at most {LONGEST_STRETCH.days} days.",
                    pointer=f"{pointer}/duration",
                )


def _pointed(read: Callable[[], T], pointer: str) -> T:
    """Point the parser's error at the field of the calendar instead of a schedule."""
    try:
        return read()
    except Invalid as refused:
        refused.pointer = pointer
        raise
