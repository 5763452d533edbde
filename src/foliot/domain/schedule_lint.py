"""Warnings about schedules and policies that are allowed, but often a mistake. Pure: definition and time in, sentences out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from foliot.domain.definition import Definition
from foliot.domain.policy import OverlapRule
from foliot.domain.schedule import Cron, Interval, Manual, Once, PlannedTime, Timetable, planned_after
from foliot.domain.schedule.dst import TICK
from foliot.domain.schedule.notes import cautions, dst_note
from foliot.domain.schedule.zone import naive_utc, span_at
from foliot.domain.secret_references import name_in

SUB_MINUTE = timedelta(minutes=1)
LONGEST_TIMEOUT = timedelta(hours=24)
SOON = timedelta(days=366)
CROWDED = 20  # jobs of a workspace in one minute
SAME_TARGET = 10  # jobs of a workspace with one address
_SECRET = re.compile(r"(?i)password|passwd|secret|token|api[-_]?key|authorization")
VAGUE_NAMES = frozenset(
    [
        "job",
        "new",
        "untitled",
        "test",
        "tests",
        "testing",
        "temp",
        "tmp",
        "foo",
        "bar",
        "baz",
        "asdf",
        "x",
        "todo",
        "task",
        "cron",
        "schedule",
        "script",
        "run",
    ]
)


def lint(definition: Definition, timetable: Timetable, now: datetime) -> tuple[str, ...]:
    """Return the warnings that need nothing but the definition."""
    return tuple(_lint(definition, timetable, now))


def lint_schedule(timetable: Timetable, now: datetime) -> tuple[str, ...]:
    """Return the warnings about the schedule alone, for previews."""
    return (*cautions(timetable.schedule), *_lint_times(timetable, now))


def crowded_minute(schedule: Timetable, next_at: datetime, others: Mapping[int, int]) -> str | None:
    """Return a warning if many jobs fire in the minute of `next_at`, with a quieter one of that hour. `others` counts jobs by minute."""
    cron = schedule.schedule
    if not isinstance(cron, Cron) or not cron.expr.split()[-5 if not cron.seconds else 1].isdigit():
        return None
    here = others.get(next_at.minute, 0)
    if here < CROWDED:
        return None
    quiet = min(range(60), key=lambda minute: (others.get(minute, 0), abs(minute - next_at.minute)))
    if others.get(quiet, 0) * 2 > here:
        return None
    return (
        f"{here} other jobs fire at minute {next_at.minute:02} of that hour. Minute {quiet:02} has {others.get(quiet, 0)};"
        " H instead of the minute picks one for you."
    )


def _lint(definition: Definition, timetable: Timetable, now: datetime) -> Iterator[str]:
    spec = definition.spec
    if " ".join(definition.name.lower().split("_")).strip(" -0123456789") in VAGUE_NAMES:
        yield f'The name "{definition.name}" does not say what the job does.'
    yield from lint_schedule(timetable, now)
    if spec.limits.timeout > LONGEST_TIMEOUT:
        hours = spec.limits.timeout / timedelta(hours=1)
        yield f"The timeout is {hours:g} hours: a run that hangs occupies its worker for that long."
    is_recurring = not isinstance(spec.schedule, Once | Manual)
    if spec.overlap.rule is OverlapRule.CONCURRENT and spec.concurrency_key is None and is_recurring:
        yield "Runs may overlap without a limit. Give the job a concurrency_key and set a limit for it."
    for name in sorted(_plain_secrets(definition.config)):
        yield f'"{name}" in the config looks like a secret: store it with `foliot secrets set` and refer to it by name.'


def _plain_secrets(value: Any) -> Iterator[str]:
    """Yield the names of fields that look like secrets and hold a plain text, not the name of a stored secret."""
    if isinstance(value, Mapping):
        if name_in(value) is not None:
            return
        for name, each in value.items():
            if isinstance(each, str) and each and "{{" not in each and _SECRET.search(str(name)):
                yield str(name)
            else:
                yield from _plain_secrets(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _plain_secrets(each)


def _lint_times(timetable: Timetable, now: datetime) -> Iterator[str]:
    schedule = timetable.schedule
    if isinstance(schedule, Interval) and schedule.every < SUB_MINUTE:
        yield (
            f"It fires every {schedule.every.total_seconds():g} s, {86_400 / schedule.every.total_seconds():,.0f} times a day."
            " A loop in a long-running program may be the better tool."
        )
    elif isinstance(schedule, Cron) and schedule.seconds:
        yield "It has a field for seconds and may fire several times a minute."
    if isinstance(schedule, Manual) or (isinstance(schedule, Interval) and schedule.anchor is None):
        return
    first = planned_after(timetable, now)
    if first is not None and first.planned_for - now > SOON:
        yield f"It fires first on {first.local:%Y-%m-%d}, in more than a year."
    changed = _moved_by_clocks(timetable, now) if isinstance(schedule, Cron) else None
    if changed is not None and (note := dst_note(schedule, changed)) is not None:
        yield f"Clock changes touch it: {note}"


def _moved_by_clocks(timetable: Timetable, now: datetime) -> PlannedTime | None:
    """Return the first planned time of a closed schedule within a year that a clock change moves, doubles or drops."""
    bare = timetable.bare
    zone = bare.schedule.timezone
    span, end = span_at(zone, naive_utc(now)), naive_utc(now) + SOON
    while span.end <= end:
        if span.after != span.offset:
            before = (span.end - abs(span.after - span.offset) - TICK).replace(tzinfo=UTC)
            planned = planned_after(bare, max(before, now))
            hours = timedelta(hours=3)
            for _ in range(4):
                if planned is None or planned.planned_for.replace(tzinfo=None) > span.end + hours:
                    break
                if planned.dst is not None:
                    return planned
                planned = planned_after(bare, planned.planned_for)
        span = span_at(zone, span.end)
    return None
