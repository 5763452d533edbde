"""Parse cron text strictly: return the wall-clock times it names, or an error that points at the wrong field.

Why: docs/decisions/100-own-cron-evaluator.md
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

from foliot.domain.errors import Mark, ScheduleInvalid
from foliot.domain.schedule.cron_fields import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    CronField,
    CronToken,
    CronTokenKind,
    is_hashed,
    parse_field,
)
from foliot.domain.schedule.kinds import Cron, DayMatch
from foliot.domain.schedule.wall_times import MatchedDays, WallTimes

LONGEST = 256
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIVE = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
_SIX = (SECOND, *_FIVE)
_MOST_DAYS = {1: 31, 2: 29, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30, 10: 31, 11: 30, 12: 31}


def wall_times(cron: Cron, seed: str = "") -> WallTimes:
    """Return the wall-clock times of a schedule. Only hashed fields depend on the seed, so all other jobs share one answer."""
    mine = seed if "H" in cron.expr.upper() else ""
    return _compiled(cron.expr, cron.seconds, cron.day_match, cron.every_n_weeks, cron.anchor, mine)


def parse_cron(
    expr: str, *, seconds: bool = False, day_match: DayMatch = DayMatch.OR, seed: str = ""
) -> WallTimes:
    return wall_times(Cron(expr, seconds=seconds, day_match=day_match), seed)


def hashed_values(cron: Cron, seed: str = "") -> dict[str, tuple[str, ...]]:
    """Return the values of hashed fields for this seed, by field name."""
    kinds = _SIX if cron.seconds else _FIVE
    return {
        kind.name: tuple(kind.says(number) for number in sorted(parse_field(kind, token, seed).numbers))
        for kind, token in zip(kinds, _split(cron.expr, kinds), strict=True)
        if is_hashed(token)
    }


@lru_cache(maxsize=16_384)
def _compiled(
    expr: str, seconds: bool, day_match: DayMatch, weeks: int, anchor: date | None, seed: str
) -> WallTimes:
    kinds = _SIX if seconds else _FIVE
    tokens = _split(expr, kinds)
    parsed = [parse_field(kind, token, seed) for kind, token in zip(kinds, tokens, strict=True)]
    second = parsed[0].numbers if seconds else frozenset((0,))
    minute, hour, day, month, weekday = parsed[-5:]
    both = day.is_restricted and weekday.is_restricted
    days = MatchedDays(
        months=month.numbers,
        day=day,
        weekday=weekday,
        either=both and day_match is DayMatch.OR,
        weeks=_weeks(weeks),
        anchor=anchor,
    )
    _refuse_never(expr, days)
    return WallTimes(
        seconds=tuple(sorted(second)),
        minutes=tuple(sorted(minute.numbers)),
        hours=tuple(sorted(hour.numbers)),
        days=days,
        # Open schedules follow real time through a clock change; only the hour field decides.
        is_open=tokens[-4].text.startswith("*"),
    )


def _split(expr: str, kinds: tuple[CronTokenKind, ...]) -> list[CronToken]:
    if len(expr) > LONGEST:
        raise ScheduleInvalid(
            f"This cron expression has {len(expr)} characters; at most {LONGEST} are read.",
            pointer="/schedule/expr",
        )
    text = expr.strip()
    if text.startswith("@"):
        text = expr = _alias(text, len(kinds) == len(_SIX))
    tokens = [CronToken(found.group(), expr, found.start()) for found in re.finditer(r"[^ \t]+", expr)]
    if len(tokens) != len(kinds):
        raise _wrong_count(expr, len(tokens), len(kinds))
    _hint_swapped(tokens[-5], tokens[-4])
    return tokens


def _alias(text: str, with_seconds: bool) -> str:
    if text.isascii() and (known := ALIASES.get(text.lower())) is not None:
        return f"0 {known}" if with_seconds else known
    hint = f"Known are {', '.join(ALIASES)}."
    if text.lower().startswith("@every"):
        hint = 'Use an interval instead: "every 10 minutes".'
    if text.lower() == "@reboot":
        hint = "Foliot does not notice reboots; use a manual job and run it when the machine starts."
    raise ScheduleInvalid(
        "Foliot does not know this @ name.",
        hint=hint,
        pointer="/schedule/expr",
        mark=Mark(text, 0, len(text)),
    )


def _wrong_count(expr: str, found: int, wanted: int) -> ScheduleInvalid:
    order = " ".join(kind.name.replace(" ", "-") for kind in (_SIX if wanted == len(_SIX) else _FIVE))
    hint = f"The fields are: {order}."
    if found == len(_SIX) and wanted == len(_FIVE):
        hint = 'Six fields start with seconds; ask for them with "seconds": true (--seconds), or drop the first field.'
    return ScheduleInvalid(
        f"This cron expression has {found} field{'' if found == 1 else 's'}; it needs {wanted}.",
        hint=hint,
        pointer="/schedule/expr",
        mark=Mark(expr, 0, len(expr)) if expr.isprintable() and expr else None,
    )


def _hint_swapped(minute: CronToken, hour: CronToken) -> None:
    """`0 25 * * *` is usually 00:25 with its first two fields swapped; say so before the field parser says only that 25 is no hour."""
    if (
        hour.text.isascii()
        and hour.text.isdecimal()
        and len(hour.text) == 2
        and HOUR.high < int(hour.text) <= MINUTE.high
    ):
        fits = (
            minute.text.isascii()
            and minute.text.isdecimal()
            and len(minute.text) <= 2
            and int(minute.text) <= HOUR.high
        )
        hint = (
            f'Did you mean "{hour.text} {minute.text} …" ({int(minute.text):02}:{hour.text})? Minutes come first.'
            if fits
            else None
        )
        raise hour.refuse(f"The hour field has {hour.text}; it takes 0-23.", hint=hint)


def _weeks(weeks: int) -> int:
    if not 1 <= weeks <= 520:
        raise ScheduleInvalid(
            f"every_n_weeks is {weeks}; it takes 1 to 520.", pointer="/schedule/every_n_weeks"
        )
    return weeks


def _refuse_never(expr: str, days: MatchedDays) -> None:
    if _may_ever_match(days):
        return
    raise ScheduleInvalid(
        f'"{expr}" never fires: no month it names has such a day.',
        hint="Check the day of month against the month; February has at most 29 days.",
        pointer="/schedule/expr",
        mark=Mark(expr, 0, len(expr)),
    )


def _may_ever_match(days: MatchedDays) -> bool:
    if days.weekday.numbers:  # over the years a plain weekday falls on every date
        most = max(_MOST_DAYS[month] for month in days.months)
        by_date = days.day.last_day or days.day.last_workday or min(days.day.numbers) <= most
        return days.either or by_date
    return any(
        _may_match(days, day, most)
        for most in {_MOST_DAYS[month] for month in days.months}
        for day in range(1, most + 1)
    )


def _may_match(days: MatchedDays, day: int, most: int) -> bool:
    """Can this day of a month with `most` days ever match, in some year?"""
    by_date = (
        day in days.day.numbers
        or (days.day.last_day and day >= min(most, 28))
        or (days.day.last_workday and day >= min(most, 28) - 2)
    )
    by_weekday = _weekday_possible(days.weekday, day, most)
    return by_date or by_weekday if days.either else by_date and by_weekday


def _weekday_possible(weekday: CronField, day: int, most: int) -> bool:
    nth = any(n == (day - 1) // 7 + 1 for _, n in weekday.nth)
    return bool(weekday.numbers) or nth or (bool(weekday.last) and day > min(most, 28) - 7)
