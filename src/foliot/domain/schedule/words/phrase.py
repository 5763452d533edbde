"""Parse the clauses of a phrase, in any order, each at most once. `interpret.py` decides what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time
from typing import NoReturn

from foliot.domain.schedule.words.clauses import (
    EVERY_DAY,
    NIGHTLY,
    DayClause,
    Pace,
    ParsedClauses,
    Period,
    cron_list,
)
from foliot.domain.schedule.words.days import read_days, read_relative_day, weekdays_between
from foliot.domain.schedule.words.parts import (
    PARTS_OF_DAY,
    Cursor,
    clock_time,
    duration,
    is_ordinal,
    one_clock,
    seconds_in,
)
from foliot.domain.schedule.words.vocabulary import REFUSED, WordKind

PERIODS = {
    "week": Period.WEEK, "weekly": Period.WEEK, "fortnightly": Period.WEEK,
    "month": Period.MONTH, "monthly": Period.MONTH, "quarter": Period.QUARTER, "quarterly": Period.QUARTER,
    "year": Period.YEAR, "yearly": Period.YEAR, "annually": Period.YEAR,
}  # fmt: skip
DAY, WEEK = 86400, 604800
BESIDE_A_TIME = {"days", "date", "period", "months"}


class Phrase:
    """Reads one phrase. `today` is the local date that `tomorrow` and `next friday` count from."""

    def __init__(self, cursor: Cursor, today: date) -> None:
        self.cursor = cursor
        self.today = today
        self.said = ParsedClauses(cursor.text)

    def read(self) -> ParsedClauses:
        cursor = self.cursor
        while opening := cursor.accept(
            "please", "run", "once", "remind"
        ):  # `rewrite.py` drops other openings
            self.said.once = self.said.once or opening.word == "once"
            cursor.accept("me")
        if cursor.peek().kind is WordKind.END:
            cursor.refuse("This says nothing about when.")
        while cursor.peek().kind is not WordKind.END:
            self.clause()
        return self.said

    def clause(self) -> None:
        cursor, token, start = self.cursor, self.cursor.peek(), self.cursor.at
        if cursor.accept("every", "each"):
            self.every(start)
        elif cursor.accept("hourly"):
            self.note("pace", Pace(3600, counted=False), start)
        elif cursor.accept("daily", "nightly"):
            self.note("days", EVERY_DAY if token.word == "daily" else NIGHTLY, start)
        elif token.word in PERIODS and token.word.endswith("ly"):
            self.period(start, 2 if token.word == "fortnightly" else 1)
        elif cursor.accept("at"):
            self.at(start)
        elif cursor.accept("on"):
            self.on(start)
        elif cursor.accept("in"):
            self.inside(start)
        elif cursor.accept("from", "between"):
            self.window(start)
        elif cursor.peek().word in {"except", "excluding", "but"}:
            self.without_days(start)
        elif token.word in PARTS_OF_DAY and token.word != "nightly":
            self.part_of_day(start)
        elif token.word in {"twice", "thrice"} or (
            token.kind is WordKind.NUMBER and cursor.peek(1).word == "times"
        ):
            self.count(start)
        elif cursor.accept("by"):
            self.expect("clock")
            self.note("by_clock", True, start)
        elif cursor.accept("counting"):
            self.counting(start)
        elif cursor.accept("manually"):
            self.note("manual", True, start)
        elif cursor.accept_kind(WordKind.STAMP):
            self.stamp(token.word, start)
        elif token.kind is WordKind.ZONE:
            self.end_in_zone()
        elif "past" in (cursor.peek(1).word, cursor.peek(2).word):
            self.at(start)
        elif not (self.days(start) or self.from_now(start)):
            self.not_bare("at ")
            if not self.times(start):
                self.unexpected()

    def every(self, start: int) -> None:
        cursor, token, after = self.cursor, self.cursor.peek(), self.cursor.peek(1)
        if cursor.accept("other"):
            self.every_other(start)
        elif token.word == "second" and not is_ordinal(token, after):
            cursor.take()
            self.note("pace", Pace(1, counted=True), start)
        elif parts := duration(cursor):
            if [unit for _, unit in parts] == [WEEK]:
                self.weeks(parts[0][0], start)
            else:
                self.note("pace", Pace(seconds_in(parts), counted=True), start)
        elif cursor.accept("minute", "hour"):
            self.note("pace", Pace(token.number, counted=False), start)
        elif cursor.accept("day"):
            self.note("days", EVERY_DAY, start)
        elif token.word in PERIODS:
            self.period(start, 1)
        elif token.word in PARTS_OF_DAY:
            self.note("days", EVERY_DAY, start)
            self.part_of_day(start)
        elif token.kind is WordKind.NUMBER and after.word in {"month", "months", "year", "years"}:
            cursor.at += 2
            cursor.refuse(
                "Months and years differ in length, so they are named and not counted.",
                "Write 'on the 1st of the month at 9am in january and july'.",
                start=start,
            )
        elif not self.days(start, sure=True):
            self.unexpected()

    def every_other(self, start: int) -> None:
        if self.cursor.accept("week"):
            self.weeks(2, start)
        elif self.cursor.peek().kind is WordKind.WEEKDAY:
            self.days(start, sure=True)
            self.weeks(2, start)
        else:
            self.cursor.refuse(
                "Every other week, weekday, day, hour or minute can be said, nothing else.",
                "Write 'every other tuesday at 9am' or 'every other hour'; months are named: 'in january, march and may'.",
            )

    def without_days(self, start: int) -> None:
        """`except sunday`, `but not on weekends`."""
        cursor = self.cursor
        cursor.take()
        cursor.accept("on", "every")
        found = read_days(cursor, sure=True) if cursor.peek().word not in REFUSED else None
        if not isinstance(found, DayClause) or not found.weekdays:
            cursor.at = start + 1
            if cursor.peek().word in REFUSED or cursor.peek().kind is WordKind.END:
                self.unexpected()
            cursor.refuse(
                "Only weekdays can be left out.",
                "Write 'every day except sunday at 9am'; for dates, give the job a calendar.",
                start=start,
            )
        self.note("excluded", found.weekdays, start)

    def part_of_day(self, start: int) -> None:
        """`morning` after a day, `in the morning`, `at night`: the time said must lie in it."""
        self.note("part_of_day", PARTS_OF_DAY[self.cursor.take().word], start)

    def count(self, start: int) -> None:
        """`twice a day`, `three times a day`: so many clock times follow."""
        token = self.cursor.take()
        count = {"twice": 2, "thrice": 3}.get(token.word, token.number)
        self.cursor.accept("times")
        following = [self.cursor.peek(n).word for n in range(2)]
        if following != ["every", "day"] and following[0] != "daily":
            self.cursor.at = start
            self.unexpected()
        self.note("count", count, start)

    def weeks(self, count: int, start: int) -> None:
        if count > 520:
            self.cursor.refuse("Weeks are counted from 1 to 520.", start=start)
        self.note("period", Period.WEEK, start)
        self.said.weeks = count

    def period(self, start: int, weeks: int) -> None:
        self.note("period", PERIODS[self.cursor.take().word], start)
        self.said.weeks = weeks

    def days(self, start: int, *, sure: bool = False) -> bool:
        relative = None if sure else read_relative_day(self.cursor, self.today)
        found = relative or read_days(self.cursor, sure=sure)
        if isinstance(found, DayClause):
            self.note("days", found, start)
        elif found is not None:
            if sure:
                self.cursor.refuse(
                    "A date with its year comes once.", "Leave the year or 'every' out.", start=start
                )
            self.note("date", found, start)
        return found is not None

    def on(self, start: int) -> None:
        if self.cursor.accept("hour"):
            self.note("past", (0,), start)
        elif not self.days(start):
            self.unexpected()

    def at(self, start: int) -> None:
        if stamp := self.cursor.accept_kind(WordKind.STAMP):
            self.stamp(stamp.word, start)
        elif self.cursor.peek().word == "night":
            self.part_of_day(start)
        elif minutes := self.cursor.several(_minutes_past):
            self.note("past", tuple(sorted(set(minutes))), start)
            if self.cursor.peek().word in {"every", "each"} and self.cursor.peek(1).word == "hour":
                place = self.cursor.at
                self.cursor.at += 2
                self.note("pace", Pace(3600, counted=False), place)
        elif not self.times(start):
            self.unexpected()

    def not_bare(self, lead: str = "") -> None:
        """Only `at` makes an hour of a bare number: "every friday 13" may be a date, and "from 15 to 20 in march" days."""
        cursor, token, after, place = self.cursor, self.cursor.peek(), self.cursor.peek(1), self.cursor.at
        if (
            token.kind is not WordKind.NUMBER
            or token.number > 23
            or after.word in {*REFUSED, "noon", "midnight"}
        ):
            return
        if after.kind not in {WordKind.HALF_OF_DAY, WordKind.UNIT, WordKind.MONTH}:
            cursor.take()
            hours = (token.number, token.number + 12) if 1 <= token.number < 12 else (token.number,)
            hint = None if lead else "Write 'every hour from 9:00 to 17:00'."
            if lead and after.kind is WordKind.END and set(self.said.spans) <= BESIDE_A_TIME:
                hint = cursor.rewritten(place, *(f"{lead}{hour:02}:00" for hour in hours))
            cursor.refuse(f"{token.word!r} can be an hour or a day.", hint, start=place)

    def times(self, start: int) -> bool:
        place = self.cursor.at
        if found := self.cursor.several(clock_time):
            one_clock(self.cursor, place, found)
            self.note("times", tuple(sorted(set(found))), start)
        return bool(found)

    def inside(self, start: int) -> None:
        if self.cursor.peek().kind is WordKind.ZONE:
            self.end_in_zone()
        elif self.cursor.peek().word in PARTS_OF_DAY:
            self.part_of_day(start)
        elif months := self.cursor.several(_month_range):
            found = frozenset[int]().union(*months)
            self.note("months", "*" if len(found) == 12 else cron_list(found), start)
        elif parts := duration(self.cursor):
            self.delay(parts, start)
        else:
            self.unexpected()

    def from_now(self, start: int) -> bool:
        if not (parts := duration(self.cursor)):
            return False
        self.expect("from")
        self.expect("now")
        self.delay(parts, start)
        return True

    def delay(self, parts: Sequence[tuple[int, int]], start: int) -> None:
        self.note("delay", seconds_in(parts), start)
        self.said.in_days = all(unit >= DAY for _, unit in parts)

    def window(self, start: int) -> None:
        cursor, is_between = self.cursor, self.cursor.tokens[start].word == "between"
        if cursor.peek().kind is WordKind.WEEKDAY:
            self.weekdays(start, is_between=is_between)
            return
        is_hours = self.hours_by_number()
        if not is_hours:
            self.not_bare()
        first = self.one_time()
        if not cursor.accept("to", "through", "until", "till", *(["and"] if is_between else [])):
            self.unexpected()
        last = self.one_time()
        one_clock(cursor, start, (first, last))
        has_minutes = any(
            token.kind is WordKind.CLOCK and not is_hours for token in cursor.tokens[start : cursor.at]
        )
        self.said.ends_before = is_between or not has_minutes
        self.note("window", (first, last), start)

    def hours_by_number(self) -> bool:
        """Return whether `from 8 to 18` follows a pace: beside a number over 12 both are hours of the 24-hour clock."""
        first, joint, last = (self.cursor.peek(n) for n in range(3))
        is_clock = (
            self.said.pace is not None
            and first.kind is last.kind is WordKind.NUMBER
            and joint.word in {"to", "through", "and"}
            and self.cursor.peek(3).kind not in {WordKind.HALF_OF_DAY, WordKind.UNIT, WordKind.MONTH}
            and first.number < last.number
            and not any(token.kind is WordKind.MONTH for token in self.cursor.tokens)
            and 12 < last.number <= 23
        )
        if is_clock:
            place = self.cursor.at
            for at, token in ((place, first), (place + 2, last)):
                self.cursor.tokens[at] = replace(token, kind=WordKind.CLOCK, word=f"{token.number:02}:00")
        return is_clock

    def weekdays(self, start: int, *, is_between: bool) -> None:
        """`from monday to friday`, `between monday and friday`. One day alone would be a beginning, which is no part of a schedule."""
        cursor, joints = self.cursor, {"and"} if is_between else {"to", "through"}
        if cursor.peek(2).kind is not WordKind.WEEKDAY or cursor.peek(1).word not in joints:
            cursor.take()
            cursor.refuse(
                f"{cursor.words(start)!r} does not say up to which day.",
                "Write 'from monday to friday at 9am' or 'every monday at 9am'; a beginning is the job's start_at.",
                start=start,
            )
        if is_between:
            self.note("days", weekdays_between(cursor), start)
        else:
            self.days(start, sure=True)

    def one_time(self) -> time:
        found = clock_time(self.cursor)
        if found is None:
            self.unexpected()
        return found

    def counting(self, start: int) -> None:
        self.expect("from")
        found = read_days(self.cursor, sure=False)
        if not isinstance(found, date):
            self.cursor.refuse(
                "Counting needs a whole date.",
                "Write 'every other tuesday at 9am, counting from 2 june 2026'.",
                start=start,
            )
        self.note("anchor", found, start)

    def stamp(self, written: str, start: int) -> None:
        try:
            found = datetime.fromisoformat(written)
        except ValueError:
            self.cursor.refuse(
                "This is not a time that exists.", "Write '2027-03-03T09:00:00+01:00'.", start=start
            )
        self.note("stamp", found, start)

    def end_in_zone(self) -> None:
        self.cursor.take()
        if self.cursor.peek().kind is not WordKind.END:
            self.cursor.refuse("The zone comes last.")

    def expect(self, word: str) -> None:
        if not self.cursor.accept(word):
            self.unexpected()

    def note(self, name: str, value: object, start: int) -> None:
        if name in self.said.spans:
            self.cursor.refuse(f"{self.cursor.words(start)!r} says again what was said before; one schedule says it once.",
                               "Make a job for each.", start=start)  # fmt: skip
        setattr(self.said, name, value)
        self.said.spans[name] = self.cursor.span(start)

    def unexpected(self) -> NoReturn:
        token = self.cursor.peek()
        if token.kind is WordKind.END:
            self.cursor.refuse("The phrase stops too early.")
        if token.kind is WordKind.NUMBER and self.cursor.peek(1).kind is WordKind.END:
            self.cursor.refuse(f"{token.word!r} lacks its unit.")
        if token.kind is WordKind.NUMBER and self.cursor.peek(1).word in REFUSED:
            token = self.cursor.peek(1)  # "three times a day"
        if token.word in REFUSED:
            why, instead = REFUSED[token.word]
            self.cursor.refuse(why.format(word=token.word), instead)
        if token.word == "and":
            self.cursor.refuse("What follows 'and' is a schedule of its own.", "Make a job for each.")
        self.cursor.refuse(f"{self.cursor.text[token.start : token.end]!r} does not fit here.")


def _minutes_past(cursor: Cursor) -> int | None:
    """`:15`, `15 past`, `15 minutes past`, `quarter past`, `half past`, each perhaps with `the hour`."""
    token, start = cursor.peek(), cursor.at
    if cursor.accept_kind(WordKind.PAST):
        minutes = token.number
    elif token.kind is WordKind.NUMBER or token.word in {"quarter", "half"}:
        cursor.take()
        cursor.accept("minutes", "minute")
        if not cursor.accept("past"):
            cursor.at = start
            return None
        minutes = {"quarter": 15, "half": 30}.get(token.word, token.number)
    else:
        return None
    if minutes > 59:
        cursor.refuse("An hour has the minutes 0 to 59.", start=start)
    cursor.accept("hour")
    return minutes


def _month_range(cursor: Cursor) -> frozenset[int] | None:
    first = cursor.accept_kind(WordKind.MONTH)
    if first is None:
        return None
    last = first
    if cursor.peek(1).kind is WordKind.MONTH and cursor.accept("to", "through"):
        last = cursor.take()
    return frozenset((first.number - 1 + n) % 12 + 1 for n in range((last.number - first.number) % 12 + 1))
