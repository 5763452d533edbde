"""Calendars on the wire: named periods in which jobs must not run (blackout) or may only run (allow)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, StringConstraints, Tag

from foliot.wire.durations import Duration
from foliot.wire.instants import Id, Instant, TimeOfDay
from foliot.wire.jobs import WEEK, Weekday
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


def _which(value: Any) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return tag(kind) if isinstance(kind, str) else None


Rule = Annotated[
    Annotated[WeeklyRule, Tag(tag("weekly"))]
    | Annotated[AbsoluteRule, Tag(tag("absolute"))]
    | Annotated[CronRule, Tag(tag("cron"))],
    Discriminator(
        _which,
        custom_error_type="rule_kind",
        custom_error_message='A rule is an object with a "kind": weekly, absolute or cron.',
        custom_error_context={
            "hint": 'Such as {"kind": "weekly", "start": "22:00", "end": "06:00", "days": ["sat", "sun"]}.'
        },
    ),
]


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


class CalendarChange(Shape):
    """The fields to change. Rules are replaced as a whole."""

    model_config = ConfigDict(json_schema_extra=hide_defaults)

    name: CalendarName = ""
    kind: Literal["blackout", "allow"] = "blackout"
    timezone: Annotated[str, StringConstraints(min_length=1, max_length=64)] = ""
    otherwise: Literal["defer", "skip"] = "skip"
    rules: list[Rule] = Field(default=[], min_length=1, max_length=MOST_RULES)


class CalendarHead(Shape):
    id: Id


class CalendarOut(CalendarIn, CalendarHead):
    timezone: str = "UTC"
    job_count: int = Field(description="How many jobs use it.")
    revision: int
    created_at: Instant
    updated_at: Instant


class CalendarUser(Shape):
    id: Id
    name: str
