"""Schedules on the wire: by kind, or in words; and the times they name."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from foliot.wire.durations import Duration
from foliot.wire.instants import Day, Instant, WallTime
from foliot.wire.shape import Shape, tag

Kind = Literal["cron", "interval", "once", "manual"]
DayMatch = Literal["or", "and"]
Gap = Literal["next_valid", "skip", "shift"]
OverlapTime = Literal["first", "second", "both"]
IntervalMode = Literal["fixed_rate", "fixed_delay"]
Zone = Annotated[
    str | None,
    Field(
        max_length=64,
        description="IANA name; default: the workspace's zone.",
        examples=["Europe/Paris"],
    ),
]
Sentence = Annotated[
    str | None,
    Field(
        max_length=2_000,
        description="The sentence that an answer gives; it may be sent back unchanged with the fields it describes.",
    ),
]
NOTHING = timedelta(0)


class CronFields(Shape):
    kind: Literal["cron"]
    expr: str = Field(max_length=256, examples=["0 9 * * 1-5"])
    seconds: bool = Field(default=False, description="Six fields, the first of them seconds.")
    day_match: DayMatch = "or"
    every_n_weeks: int = Field(default=1, ge=1, le=520)
    anchor: Day | None = Field(default=None, description="A day of a week that counts, with every_n_weeks.")
    gap: Gap = "next_valid"
    overlap_time: OverlapTime = "first"
    spread: Duration = NOTHING


class IntervalFields(Shape):
    kind: Literal["interval"]
    every: Duration
    mode: IntervalMode = "fixed_rate"
    anchor: Instant | None = Field(
        default=None, description="The first planned time is this + every; default: the creation."
    )
    spread: Duration = NOTHING


class OnceFields(Shape):
    kind: Literal["once"]
    at: Instant


class ManualFields(Shape):
    kind: Literal["manual"]


class CronIn(CronFields):
    timezone: Zone = None
    words: Sentence = None


class IntervalIn(IntervalFields):
    timezone: Zone = None
    words: Sentence = None


class OnceIn(OnceFields):
    timezone: Zone = None
    words: Sentence = None


class ManualIn(ManualFields):
    timezone: Zone = None
    words: Sentence = None


class WordsIn(Shape):
    """Words, or cron text. Ambiguous words are refused."""

    words: str = Field(min_length=1, max_length=256, examples=["every weekday at 9am", "0 9 * * 1-5"])
    timezone: Zone = None
    seconds: bool = False
    day_match: DayMatch = "or"
    gap: Gap = "next_valid"
    overlap_time: OverlapTime = "first"


class CronOut(CronFields):
    timezone: str
    words: str


class IntervalOut(IntervalFields):
    timezone: str
    words: str


class OnceOut(OnceFields):
    timezone: str
    words: str


class ManualOut(ManualFields):
    timezone: str
    words: str


def _which(value: Any) -> str | None:
    """A schedule says its kind; one without a kind is words."""
    if not isinstance(value, dict):
        kind = getattr(value, "kind", "words")
        return tag(kind) if isinstance(value, Shape) else None
    kind = value.get("kind", "words" if "words" in value else None)
    return tag(kind) if isinstance(kind, str) else None


ScheduleIn = Annotated[
    Annotated[CronIn, Tag(tag("cron"))]
    | Annotated[IntervalIn, Tag(tag("interval"))]
    | Annotated[OnceIn, Tag(tag("once"))]
    | Annotated[ManualIn, Tag(tag("manual"))]
    | Annotated[WordsIn, Tag(tag("words"))],
    Discriminator(
        _which,
        custom_error_type="schedule_kind",
        custom_error_message='A schedule is an object with "words", or with a "kind": cron, interval, once or manual.',
        custom_error_context={
            "hint": 'Such as {"words": "every weekday at 9am"} or {"kind": "interval", "every": "10m"}.'
        },
    ),
]
ScheduleOut = Annotated[CronOut | IntervalOut | OnceOut | ManualOut, Field(discriminator="kind")]


class PlannedOut(Shape):
    planned_for: Instant
    planned_local: WallTime
    notes: list[str]


class TimesOut(Shape):
    items: list[PlannedOut]
    notes: list[str] = Field(
        default=[],
        description="What keeps all of them from running now: a hold after a restore, no scheduler.",
    )


class PreviewOut(Shape):
    """A schedule in words, and its next times."""

    words: str
    schedule: ScheduleOut
    items: list[PlannedOut]
    notes: list[str] = Field(description="Effects of clock changes on these times.")
    warnings: list[str] = Field(description="Allowed, but often a mistake.")
