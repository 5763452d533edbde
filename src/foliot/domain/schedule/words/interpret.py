"""Turn clauses into a schedule, or explain why they are none. A counted step is an interval, a clock time is cron, the rest runs once."""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import NoReturn

from foliot.domain.schedule.kinds import Cron, Interval, Manual, Once, Schedule
from foliot.domain.schedule.words.clauses import (
    EVERY_DAY,
    NIGHTLY,
    DayClause,
    Pace,
    ParsedClauses,
    Period,
    cron_list,
)
from foliot.domain.schedule.words.one_shot import LocalNow, after_delay, at_stamp, on_date

DAYS_IN_MONTH = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}  # the others have 31
MORNING, EVENING = time(7), time(17)  # a night lies between the two
RECURS = re.compile(r"\b(?:every|each|per|an?|\w+ly)\b", re.IGNORECASE)
WHICH_DAY = {
    Period.WEEK: "every monday at 9am",
    Period.MONTH: "monthly on the 15th at 9am",
    Period.QUARTER: "quarterly on the 1st at 9am",
    Period.YEAR: "every year on 1 march at 9am",
}


def meaning_of(said: ParsedClauses, place: LocalNow) -> Schedule:
    _check_part_of_day(said)
    _exclude(said)
    schedule = _meaning_of(said, place)
    if said.count and len(said.times) != said.count:
        said.refuse(
            "count",
            f"{said.words('count')!r} does not say at what time.",
            "Write the times: 'twice a day at 9am and 5pm'.",
        )
    # "once every friday" and "once daily" are said, "once on fridays" is one or many.
    if said.once and not isinstance(schedule, Once) and not RECURS.search(said.text):
        said.refuse(
            "", "'once' cannot be combined with a time that repeats.", "Leave it out, or name one date."
        )
    return schedule


def _meaning_of(said: ParsedClauses, place: LocalNow) -> Schedule:
    if said.manual:
        said.only("manual")
        return Manual(place.timezone)
    if said.stamp is not None:
        said.only("stamp")
        return at_stamp(said, said.stamp, place)
    if said.delay:
        said.only("delay", "times", "part_of_day")
        return after_delay(said, place)
    if said.date is not None:
        said.only("date", "times", "part_of_day")
        return on_date(said, "date", said.date, place)
    if said.pace is not None:
        if said.times:
            alone = f"Write 'every day {said.words('times')}', or the pace alone: '{said.words('pace')}'."
            said.refuse("times", "A pace runs all day and has no clock time.", alone)
        said.only("pace", "days", "months", "window", "past", "by_clock", "excluded")
        if said.days is NIGHTLY:
            said.refuse(
                "days", "'nightly' names one time each night.", "Write 'every hour from 22:00 to 06:00'."
            )
        if said.pace.counted and set(said.spans) == {"pace"}:
            return Interval(timedelta(seconds=said.pace.seconds), timezone=place.timezone)
        return _paced(said, said.pace, place)
    said.only("days", "period", "times", "months", "anchor", "excluded", "part_of_day", "count")
    return _at_times(said, place)


PARTS = {  # the first hour, and the hour after the last
    "morning": (0, 12),
    "afternoon": (12, 19),
    "evening": (16, 24),
}


def _check_part_of_day(said: ParsedClauses) -> None:
    """Refuse a time outside the part of the day that was said, and a part without a time."""
    if not said.part_of_day:
        return
    if not said.times:
        said.refuse(
            "part_of_day",
            f"{said.words('part_of_day')!r} does not say at what time.",
            "Write the times: 'every day at 9am and 5pm'.",
        )
    for at in said.times:
        first, end = PARTS.get(said.part_of_day, (0, 24))
        is_night = at >= time(18) or at < MORNING
        if not (is_night if said.part_of_day == "night" else first <= at.hour < end):
            where = "at night" if said.part_of_day == "night" else f"in the {said.part_of_day}"
            said.refuse("times", f"{at:%H:%M} is not {where}.", f"Write 'every day at {at:%H:%M}'.")


def _exclude(said: ParsedClauses) -> None:
    """Take the weekdays after `except` out of the days."""
    if not said.excluded:
        return
    if said.days is None and said.pace is not None:
        said.days = EVERY_DAY
        said.spans["days"] = said.spans["excluded"]
    days = said.days
    is_whole = days is not None and days.period is Period.DAY and days is not NIGHTLY
    if days is None or not (is_whole or days is NIGHTLY or days.weekdays):
        said.refuse(
            "excluded",
            "Only every day, or weekdays, have days to leave out.",
            "Write 'every day except sunday at 9am'.",
        )
    left = (days.weekdays or frozenset(range(7))) - said.excluded
    if not left or left == days.weekdays:
        said.refuse("excluded", "This leaves out no day, or every day.")
    said.is_daily = is_whole
    said.days = DayClause(Period.WEEK, dow=cron_list(left), weekdays=left)


def _paced(said: ParsedClauses, pace: Pace, place: LocalNow) -> Cron:
    if said.window is None:  # first, for no day helps a pace that does not divide the day
        minute, hour = _all_day(said, pace)
    days = _days(said, place) if said.days is not None else EVERY_DAY
    if said.window is not None:
        minute, hour = _within(said, pace, said.window)
    return Cron(f"{minute} {hour} {_fields(said, days)}", place.timezone)


def _all_day(said: ParsedClauses, pace: Pace) -> tuple[str, str]:
    minutes, hours = pace.seconds // 60, pace.seconds // 3600
    if pace.seconds % 3600 == 0 and hours < 24 and 24 % hours == 0:
        return _plain(said.past or (0,)), _step(hours)
    if pace.seconds % 60 or minutes > 59 or 60 % minutes or said.past:
        said.refuse(
            "pace",
            "With days, months or minutes beside it, a pace must divide the hour or the day evenly.",
            "Write 'every 15 minutes on weekdays', 'every 2 hours at :30', or the pace alone: 'every 90 minutes'.",
        )
    return _step(minutes), "*"


def _within(said: ParsedClauses, pace: Pace, window: tuple[time, time]) -> tuple[str, str]:
    """Return the steps from the first to the last time, both included, where hours x minutes can say exactly that."""
    if said.past:
        said.refuse("past", "The window says the minutes already.", "Write 'every hour from 9:15 to 17:15'.")
    first, last = (at.hour * 60 + at.minute for at in window)
    step = pace.seconds // 60
    if pace.seconds % 60 or first == last or window[0].second or window[1].second:
        said.refuse("window", "A window takes whole minutes, and two different times.")
    if last < first and (said.days not in (None, EVERY_DAY) or said.months != "*"):
        said.refuse(
            "window",
            "A window past midnight belongs to two days.",
            "Make two jobs, one before and one after midnight.",
        )
    steps = range(first, last + 1 + (1440 if last < first else 0), step)
    if (
        said.ends_before
        and len(steps) > 2
        and step < 60
        and 60 % step == 0
        and first % 60 == last % 60 == 0
        and last > first
    ):
        steps = steps[
            :-1
        ]  # "every 15 minutes from 9am to 5pm" ends with 16:45: 17:00 would begin another hour
    if len(steps) < 2:
        said.refuse("window", "The window ends before the second step.")
    times = {(at // 60 % 24, at % 60) for at in steps}
    hours, minutes = {hour for hour, _ in times}, {minute for _, minute in times}
    if len(hours) * len(minutes) != len(times):
        said.refuse(
            "window",
            "These steps are not the same minutes in each hour, which one schedule cannot say.",
            _full_hours(said, step, steps),
        )
    grid = step < 60 and 60 % step == 0 and minutes == set(range(0, 60, step))
    return (_step(step) if grid else _plain(minutes)), _hours(hours, step // 60 if step % 60 == 0 else 1)


def _full_hours(said: ParsedClauses, step: int, steps: range) -> str:
    """Return the two nearest windows that end on a full hour of steps."""
    if 60 % step or steps[0] % 60:
        return "Start on the hour and take a pace that divides it: 'every 15 minutes from 9:00 to 16:45'."
    start, last = f"{steps[0] // 60:02}:00", steps[-1] // 60 % 24
    ends = [f"from {start} to {hour % 24:02}:{60 - step:02}" for hour in (last - 1, last)]
    return "Both ends count. " + said.rewritten("window", *ends)


def _hours(hours: set[int], step: int) -> str:
    ordered = sorted(hours)
    if step > 1 and len(ordered) > 2 and ordered == list(range(ordered[0], ordered[-1] + 1, step)):
        return f"{ordered[0]}-{ordered[-1]}/{step}"
    return cron_list(hours)


def _plain(values: Iterable[int]) -> str:
    return ",".join(str(value) for value in sorted(values))


def _step(count: int) -> str:
    return "*" if count == 1 else f"*/{count}"


def _at_times(said: ParsedClauses, place: LocalNow) -> Cron:
    if said.days is None:
        _no_days(said)
    days = _days(said, place)
    if said.anchor is not None and said.weeks == 1:
        said.refuse("anchor", "Only every other week, or every few weeks, is counted from a date.")
    times = _times(said, days)
    minutes, hours = {at.minute for at in times}, {at.hour for at in times}
    expr = f"{_plain(minutes)} {_plain(hours)} {_fields(said, days)}"
    if said.weeks == 1:
        return Cron(expr, place.timezone)
    anchor = said.anchor or _first_match(said, days, place)
    return Cron(expr, place.timezone, every_n_weeks=said.weeks, anchor=anchor)


def _no_days(said: ParsedClauses) -> NoReturn:
    if said.period is not None:
        example = WHICH_DAY[said.period] if said.weeks == 1 else f"every {said.weeks} weeks on monday at 9am"
        said.refuse("period", f"{said.words('period')!r} does not say on which day.", f"Write '{example}'.")
    if said.times:
        at = said.words("times")
        is_alone = len(said.times) == len(said.spans) == 1 and not said.is_midnight
        once = (f"tomorrow {at}",) if is_alone else ()
        said.refuse(
            "times", f"{at!r} can mean once or every day.", said.rewritten("times", f"every day {at}", *once)
        )
    said.refuse("", "This does not say how often.")


def _times(said: ParsedClauses, days: DayClause) -> tuple[time, ...]:
    if not said.times:
        if days is EVERY_DAY or said.is_daily:
            return (time(0),)  # as cron's own @daily
        example = "nightly at 2am" if days is NIGHTLY else f"{said.words('days')} at 9am"
        said.refuse("days", f"{said.words('days')!r} does not say at what time.", f"Write '{example}'.")
    if days is NIGHTLY and (by_day := [at for at in said.times if MORNING <= at < EVENING]):
        said.refuse(
            "times", f"{by_day[0]:%H:%M} is not at night.", f"Write 'every day {said.words('times')}'."
        )
    if any(at.second for at in said.times):
        said.refuse("times", "A recurring time is given in hours and minutes.")
    minutes, hours = {at.minute for at in said.times}, {at.hour for at in said.times}
    if len(minutes) * len(hours) != len(said.times):
        said.refuse(
            "times",
            "Times with different minutes need a schedule of their own.",
            "Make a job for each, or use the same minutes: 'every day at 9:30 and 17:30'.",
        )
    return said.times


def _days(said: ParsedClauses, place: LocalNow) -> DayClause:
    """Return the days said, once it is sure that they recur and that the period agrees."""
    days = said.days or EVERY_DAY
    period = Period.MONTH if said.period is Period.QUARTER else said.period
    if period is not None and days.period is not period:
        said.refuse(
            "days",
            f"{said.words('days')!r} does not go with {said.words('period')!r}.",
            f"Write '{WHICH_DAY[said.period or period]}'.",
        )
    if not days.sure and period is None:
        _unsure(said, days, place)
    if said.period is Period.QUARTER:
        _in_every_quarter(said, days)
    return days


def _in_every_quarter(said: ParsedClauses, days: DayClause) -> None:
    """Days are counted from the start of a quarter, in its first month; its end lies in the third, and not each first month has a 31st."""
    fields = {*days.dom.split(","), *days.dow.split(",")}
    if any("L" in field or "#5" in field for field in fields) or "31" in days.dom.split(","):
        day = "last friday" if "L" in days.dow else "last day"
        said.refuse(
            "days",
            f"{said.words('days')!r} does not say in which month of the quarter.",
            f"Write 'on the {day} of the month at 5pm in march, june, september and december'.",
        )


def _unsure(said: ParsedClauses, days: DayClause, place: LocalNow) -> NoReturn:
    words = said.words("days")
    named = words.lower().removeprefix("on ").removeprefix("the ")
    instead: tuple[str, ...]
    is_one = len(days.weekdays) == 1 and said.months == "*"
    match days.period:
        case Period.WEEK:
            meant, instead = (
                "one day or every week",
                (f"every {named}", *([f"next {named}"] if is_one else [])),
            )
        case Period.YEAR:
            this_year = place.today.year
            year = next(
                y
                for y in range(this_year, this_year + 10)
                if (days.dom != "29" or days.month != "2" or isleap(y)) and _is_ahead(days, y, place)
            )
            meant, instead = "once or every year", (f"every year on {named}", f"on {named} {year}")
        case _:
            meant, instead = "one day or every month", (f"{words} of the month",)
    if said.pace is not None:
        instead = (f"every {named}" if days.period is Period.YEAR else instead[0],)  # a pace comes never once
    at = "" if said.times or said.pace is not None else " at 9am"
    said.refuse(
        "days",
        f"{named!r} can mean {meant}.",
        said.rewritten("days", *(f"{words}{at}" for words in instead)),
    )


def _is_ahead(days: DayClause, year: int, place: LocalNow) -> bool:
    return date(year, int(days.month), int(days.dom)) > place.today


def _fields(said: ParsedClauses, days: DayClause) -> str:
    """Day of month, month and day of week."""
    month = said.months
    if said.period is Period.QUARTER or days.month != "*":
        if said.months != "*":
            said.refuse("months", "The months are said twice.")
        month = "1,4,7,10" if said.period is Period.QUARTER else days.month
    if said.period is Period.MONTH and month.isdigit():
        said.refuse(
            "months",
            f"{said.words('months')!r} does not go with {said.words('period')!r}.",
            f"Write '{WHICH_DAY[Period.YEAR]}' or '{WHICH_DAY[Period.MONTH]}'.",
        )
    _possible(said, days.dom, month)
    return f"{days.dom} {month} {days.dow}"


def _possible(said: ParsedClauses, dom: str, month: str) -> None:
    numbers = [int(day) for day in dom.split(",") if day.isdigit()]
    if month == "*" or not numbers or "L" in dom:
        return
    longest = max(DAYS_IN_MONTH.get(n, 31) for n in _months_in(month))
    if min(numbers) > longest:
        said.refuse("days", "No such day ever comes in these months.")


def _months_in(text: str) -> set[int]:
    bounds = (piece.partition("-") for piece in text.split(","))
    return {n for first, _, last in bounds for n in range(int(first), int(last or first) + 1)}


def _first_match(said: ParsedClauses, days: DayClause, place: LocalNow) -> date:
    """Return the local date of the first planned time after now: its week is the first that counts."""
    months = set(range(1, 13)) if said.months == "*" else _months_in(said.months)
    latest = max(said.times)
    for ahead in range(400):
        day = place.today + timedelta(days=ahead)
        if (
            day.isoweekday() % 7 in days.weekdays
            and day.month in months
            and place.instant(datetime.combine(day, latest)) > place.now
        ):
            return day
    raise AssertionError("every weekday comes in every month")
