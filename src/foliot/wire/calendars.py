"""Calendars on the wire: named periods in which jobs must not run (blackout) or may only run (allow)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, StringConstraints, Tag

from foliot.wire.durations import Duration
from foliot.wire.instants import Day, Id, Instant, TimeOfDay
from foliot.wire.jobs import WEEK, HostName, TagText, TypeName, Weekday, Word
from foliot.wire.shape import ONE_LINE, Shape, hide_defaults, tag

CalendarName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=ONE_LINE)]
MOST_RULES = 1_000


class WeeklyRule(Shape):
    """From `start` to `end` on these days; past midnight it belongs to the day it starts on, and equal ends mean a whole day."""

    kind: Literal["weekly"]
    start: TimeOfDay
    end: TimeOfDay
    days: list[Weekday] = Field(default=[*WEEK], min_length=1, max_length=7)


class AbsoluteRule(Shape):
    kind: Literal["absolute"]
    start: Instant
    end: Instant


class CronRule(Shape):
    """A period starts whenever the expression fires, and lasts for `duration`."""

    kind: Literal["cron"]
    expr: str = Field(min_length=1, max_length=256, examples=["0 22 * * 5"])
    duration: Duration


class DateRule(Shape):
    """Whole days in the calendar's zone: one, or all from `date` through `last`."""

    kind: Literal["date"]
    date: Day
    last: Day | None = None
    name: str = Field(default="", max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", examples=["New Year's Day"])


def _which(value: Any) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return tag(kind) if isinstance(kind, str) else None


Rule = Annotated[
    Annotated[WeeklyRule, Tag(tag("weekly"))]
    | Annotated[AbsoluteRule, Tag(tag("absolute"))]
    | Annotated[CronRule, Tag(tag("cron"))]
    | Annotated[DateRule, Tag(tag("date"))],
    Discriminator(
        _which,
        custom_error_type="rule_kind",
        custom_error_message='A rule is an object with a "kind": date, weekly, absolute or cron.',
        custom_error_context={
            "hint": 'Such as {"kind": "weekly", "start": "22:00", "end": "06:00", "days": ["sat", "sun"]}.'
        },
    ),
]


class CalendarCoverage(Shape):
    """Jobs that it applies to without being named by them: everything, or each job of these types, tags, queues or hosts."""

    everything: bool = False
    types: list[TypeName] = Field(default=[], max_length=100)
    tags: list[TagText] = Field(default=[], max_length=100)
    queues: list[Word] = Field(default=[], max_length=100)
    hosts: list[HostName] = Field(default=[], max_length=100, description="Jobs bound to one of these hosts.")


class CalendarIn(Shape):
    name: CalendarName
    kind: Literal["blackout", "allow"] = Field(
        description="Jobs must not run within its rules, or only there."
    )
    timezone: str | None = Field(
        default=None, max_length=64, description="For weekly and cron rules. Default: the workspace's zone."
    )
    otherwise: Literal["defer", "skip"] = Field(
        default="skip", description="What happens to a planned time that it blocks."
    )
    rules: list[Rule] = Field(min_length=1, max_length=MOST_RULES)
    scope: CalendarCoverage | None = Field(
        default=None,
        description="Jobs that it applies to without being named. Default: only those that name it.",
    )


class CalendarChange(Shape):
    """The fields to change. Rules are replaced as a whole."""

    model_config = ConfigDict(json_schema_extra=hide_defaults)

    name: CalendarName = ""
    kind: Literal["blackout", "allow"] = "blackout"
    timezone: Annotated[str, StringConstraints(min_length=1, max_length=64)] = ""
    otherwise: Literal["defer", "skip"] = "skip"
    rules: list[Rule] = Field(default=[], min_length=1, max_length=MOST_RULES)
    scope: CalendarCoverage | None = Field(default=None, description="`null` removes it.")


class CalendarHead(Shape):
    id: Id


class CalendarOut(CalendarIn, CalendarHead):
    timezone: str = "UTC"
    job_count: int = Field(description="How many jobs name it; its scope is not counted.")
    revision: int
    created_at: Instant
    updated_at: Instant


class CalendarUser(Shape):
    id: Id
    name: str


YEARS = 5
MOST_YEARS = 20
LONGEST_ICS = 500_000  # characters
Year = Annotated[int, Field(ge=1970, le=2200, examples=[2027])]


class ClosedSpanOut(Shape):
    """In wall time of the calendar's zone. An end of 00:00 is midnight at the end of the day."""

    start: TimeOfDay
    end: TimeOfDay


class CalendarDayOut(Shape):
    date: Day
    state: Literal["closed", "part"] = Field(description="Nothing runs on this day, or in a part of it.")
    closed: list[ClosedSpanOut] = Field(description="When, for `part`; at most eight.")
    names: list[str] = Field(description="Names of the rules for this date.")


class CalendarYearOut(Shape):
    """The days on which the calendar closes. On every other day of the year it is open throughout."""

    year: int
    timezone: str
    days: list[CalendarDayOut]


class CountryOut(Shape):
    country: str = Field(description="ISO 3166 code.", examples=["ES"])
    subdivisions: list[str] = Field(description="Parts with holidays of their own.")


class CountriesOut(Shape):
    items: list[CountryOut]


class DateRulesOut(Shape):
    """Rules for a calendar. Nothing was stored."""

    rules: list[DateRule]


class IcsIn(Shape):
    text: str = Field(min_length=1, max_length=LONGEST_ICS, description="An iCalendar file (RFC 5545).")
    first_year: Year | None = Field(default=None, description="Default: this year.")
    years: int = Field(default=YEARS, ge=1, le=MOST_YEARS)
