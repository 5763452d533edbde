"""Parse the days of a phrase: weekdays, days of the month, days of the year, or one date."""

from __future__ import annotations

from datetime import date, timedelta

from foliot.domain.schedule.words.clauses import DayClause, Period, cron_list
from foliot.domain.schedule.words.parts import LAST, Cursor, calendar_date, ordinal_range
from foliot.domain.schedule.words.tokens import WordToken
from foliot.domain.schedule.words.vocabulary import DAY_NAMES, WordKind

WEEKDAYS = frozenset({1, 2, 3, 4, 5})
WEEKEND = frozenset({0, 6})


def read_days(cursor: Cursor, *, sure: bool) -> DayClause | date | None:
    """Return the days that begin here. With `sure` the words before have already said that they recur."""
    start = cursor.at
    ordinals = [day for days in cursor.several(ordinal_range) for day in days]
    if ordinals:
        return _of_month(cursor, ordinals, start, sure=sure)
    is_one_day = cursor.peek().kind is WordKind.WEEKDAY and not cursor.peek().word.endswith("days")
    weekday = cursor.peek().number if is_one_day else None
    if weekdays := cursor.several(_weekday_range):
        found = frozenset[int]().union(*weekdays)
        named = calendar_date(cursor) if cursor.at == start + 1 and weekday is not None else None
        if named is None:
            # A plural or a range cannot be one day: "mondays", "monday to friday".
            said = [token.word for token in cursor.tokens[start : cursor.at]]
            plural = any(word.endswith("days") or word in {"weekends", "to", "through"} for word in said)
            # "mon/wed/fri" is how people write a timetable; "monday and friday" may be two days.
            rest = cursor.tokens[start + 1 : cursor.at]
            is_list = bool(rest) and all(cursor.text[token.start - 1] == "," for token in rest)
            return _of_week(found, sure=sure or plural or is_list)
    else:
        named = calendar_date(cursor)
    if named is None:
        return None
    day, month, year = named
    if year is None and weekday is not None:
        cursor.refuse(
            "A date falls on another weekday each year.",
            "Leave the weekday out, or write the date with its year: 'on wednesday 3 march 2027 at 9am'.",
            start=start,
        )
    if year is None:
        return DayClause(Period.YEAR, sure=sure, dom=str(day), month=str(month))
    the_day = date(year, month, day)
    if weekday not in {None, the_day.isoweekday() % 7}:
        cursor.refuse(
            f"{day} {the_day:%B} {year} is a {DAY_NAMES[the_day.isoweekday() % 7]}.",
            "Leave the weekday out, or correct one of them.",
            start=start,
        )
    return the_day


def read_relative_day(cursor: Cursor, today: date) -> date | None:
    """`tomorrow`, `the day after tomorrow`, `next friday` (the first one after today), `this friday` (today counts)."""
    if cursor.accept("today", "tonight"):
        return today
    if cursor.accept("tomorrow"):
        return today + timedelta(days=1)
    if [cursor.peek(n).word for n in range(3)] == ["day", "after", "tomorrow"]:
        cursor.at += 3
        return today + timedelta(days=2)
    if cursor.peek(1).kind is WordKind.WEEKDAY and (which := cursor.accept("next", "this")):
        first = today + timedelta(days=which.word == "next")
        return first + timedelta(days=(cursor.take().number - first.isoweekday()) % 7)
    return None


def weekdays_between(cursor: Cursor) -> DayClause:
    """Two weekdays with a word between them, both included."""
    first, _, last = cursor.take(), cursor.take(), cursor.take()
    return _of_week(_days_from(first, last), sure=True)


def _of_week(found: frozenset[int], *, sure: bool) -> DayClause:
    return DayClause(Period.WEEK, sure=sure, dow="*" if len(found) == 7 else cron_list(found), weekdays=found)


def _of_month(cursor: Cursor, ordinals: list[int], start: int, *, sure: bool) -> DayClause:
    weekday = cursor.accept_kind(WordKind.WEEKDAY)
    noun = cursor.accept("day", "weekday")
    of_month = _of_the_month(cursor)
    if weekday is not None:
        if max(ordinals) > 5:
            cursor.refuse("A month has at most five of each weekday.", start=start)
        if not of_month and sure and ordinals not in ([1], [LAST]):
            name = cursor.text[weekday.start : weekday.end]
            cursor.refuse(
                "This can mean every few weeks or once a month.",
                cursor.rewritten(start, f"other {name}", f"{cursor.words(start)} of the month"),
                start=start,
            )
        dow = ",".join(
            f"{weekday.number}L" if n == LAST else f"{weekday.number}#{n}" for n in _ordered(ordinals)
        )
        return DayClause(Period.MONTH, sure=of_month, dow=dow)
    if noun is not None and noun.word == "weekday":
        if ordinals != [LAST]:
            cursor.refuse(
                "Only the last weekday of a month can be said.",
                "Write 'on the last weekday of the month at 17:00'.",
                start=start,
            )
        return DayClause(Period.MONTH, sure=of_month, dom="LW")
    if LAST in ordinals and noun is None:
        cursor.refuse(
            "The last what?",
            "Write 'on the last day of the month at noon' or 'on the last friday of the month at noon'.",
            start=start,
        )
    if sure and not of_month:
        cursor.refuse(
            "This can mean every few days or one day of the month.",
            f"Write 'every 48 hours' or 'on the {cursor.words(start)} of the month at 9am'.",
            start=start,
        )
    return DayClause(
        Period.MONTH,
        sure=of_month,
        dom=",".join("L" if n == LAST else str(n) for n in _ordered(ordinals)),
    )


def _ordered(ordinals: list[int]) -> list[int]:
    return sorted(set(ordinals), key=lambda n: (n == LAST, n))


def _of_the_month(cursor: Cursor) -> bool:
    before = cursor.at
    if cursor.accept("of"):
        cursor.accept("each", "every")
        if cursor.accept("month"):
            return True
    cursor.at = before
    return False


def _weekday_range(cursor: Cursor) -> frozenset[int] | None:
    if cursor.accept("weekday", "weekdays"):
        return WEEKDAYS
    if cursor.accept("weekend", "weekends"):
        return WEEKEND
    first = cursor.accept_kind(WordKind.WEEKDAY)
    if first is None:
        return None
    last = first
    if cursor.peek(1).kind is WordKind.WEEKDAY and cursor.accept("to", "through"):
        last = cursor.take()
    return _days_from(first, last)


def _days_from(first: WordToken, last: WordToken) -> frozenset[int]:
    return frozenset((first.number + n) % 7 for n in range((last.number - first.number) % 7 + 1))
