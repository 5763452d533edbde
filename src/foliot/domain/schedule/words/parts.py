"""Parse small parts of a phrase: clock times, durations, dates and ordinals.

A parser returns None and consumes nothing if its part does not start here. Once started, a part is complete or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, time
from itertools import pairwise
from typing import NoReturn, TypeVar

from foliot.domain.schedule.words.rewrite import rewrite
from foliot.domain.schedule.words.tokens import WordToken, refuse, tokens_of
from foliot.domain.schedule.words.vocabulary import WordKind

T = TypeVar("T")
LAST = -1  # the ordinal "last"
PARTS_OF_DAY = {
    "morning": "morning", "mornings": "morning", "afternoon": "afternoon", "afternoons": "afternoon",
    "evening": "evening", "evenings": "evening", "night": "night", "nights": "night", "nightly": "night",
}  # fmt: skip
# A bare hour beside a part of the day, where it can be one time only.
HOURS_OF_PART = {
    **{(hour, "morning"): hour for hour in range(4, 12)},
    **{(hour, "afternoon"): hour + 12 for hour in range(1, 6)},
    **{(hour, "evening"): hour + 12 for hour in range(5, 11)},
    **{(hour, "night"): hour + 12 for hour in range(9, 12)},
    **{(hour, "night"): hour for hour in range(1, 4)},
}
LONGEST_SECONDS = 36525 * 86400  # a hundred years


class Cursor:
    def __init__(self, text: str, timezone: str) -> None:
        self.text = text
        self.tokens = rewrite(text, tokens_of(text, timezone))
        self.part_of_day = next(
            (PARTS_OF_DAY[token.word] for token in self.tokens if token.word in PARTS_OF_DAY), None
        )
        self.at = 0

    @property
    def zone(self) -> WordToken | None:
        """The zone that ends the phrase."""
        last = self.tokens[-2] if len(self.tokens) > 1 else None
        return last if last is not None and last.kind is WordKind.ZONE else None

    def peek(self, ahead: int = 0) -> WordToken:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self) -> WordToken:
        token = self.peek()
        self.at += 1
        return token

    def accept(self, *words: str) -> WordToken | None:
        return self.take() if self.peek().word in words else None

    def accept_kind(self, *kinds: WordKind) -> WordToken | None:
        return self.take() if self.peek().kind in kinds else None

    def several(self, item: Callable[[Cursor], T | None]) -> list[T]:
        """`a, b and c`. What follows a comma or `and` without being an item is left for the next clause."""
        found: list[T] = []
        before = self.at
        while (one := item(self)) is not None:
            found.append(one)
            before = self.at
            if not (self.accept("and") or self.peek().after_comma):
                break
        self.at = before
        return found

    def span(self, start: int) -> tuple[int, int]:
        """Return the place in the text of the tokens from `start` up to here."""
        return self.tokens[start].start, self.tokens[max(start, self.at - 1)].end

    def words(self, start: int) -> str:
        begin, end = self.span(start)
        return self.text[begin:end]

    def refuse(self, message: str, hint: str | None = None, *, start: int | None = None) -> NoReturn:
        """Points at the next token, or at all tokens from `start` up to here."""
        where = (self.peek().start, self.peek().end) if start is None else self.span(start)
        refuse(self.text, *where, message, hint)

    def rewritten(self, start: int, *instead: str) -> str:
        """Return a hint with the user's own phrase, the tokens from `start` up to here replaced."""
        begin, end = self.span(start)
        return (
            "Write "
            + " or ".join(f"'{self.text[:begin]}{words}{self.text[end:]}'" for words in instead)
            + "."
        )


def clock_time(cursor: Cursor) -> time | None:
    token, start = cursor.peek(), cursor.at
    if token.word == "12" and cursor.peek(1).word in {"noon", "midnight"}:
        cursor.take()
    if cursor.accept("noon"):
        return time(12)
    if cursor.accept("midnight"):
        return time(0)
    if token.kind not in {WordKind.CLOCK, WordKind.NUMBER} or cursor.peek(1).kind in {
        WordKind.MONTH,
        WordKind.UNIT,
    }:
        return None
    if cursor.peek(1).word == "times":
        return None
    cursor.take()
    hour, minute, second = _parts(token)
    half = cursor.accept_kind(WordKind.HALF_OF_DAY)
    if half is not None:
        if not 1 <= hour <= 12:
            cursor.refuse(
                f"There is no hour {hour}{half.word}.",
                "Write 'every day at 9am' or 'every day at 21:30'.",
                start=start,
            )
        hour = hour % 12 + (12 if half.word == "pm" else 0)
    if hour > 23 or minute > 59 or second > 59:
        cursor.refuse(f"{token.word!r} is not a time of day.", "Times go from 00:00 to 23:59.", start=start)
    cursor.accept("o'clock")
    part = cursor.part_of_day
    if half is None and part is not None and token.word[0] != "0" and (hour, part) in HOURS_OF_PART:
        return time(HOURS_OF_PART[hour, part], minute, second)
    if half is None and token.kind is WordKind.NUMBER and 1 <= hour <= 12:
        halves = ["pm"] if "tonight" in cursor.text.lower() else ["am", "pm"]
        instead = ["12:00", "00:00"] if hour == 12 else [f"{hour}{half}" for half in halves]
        hint = None if cursor.peek().kind is WordKind.NUMBER else cursor.rewritten(start, *instead)
        cursor.refuse(f"{token.word!r} can be morning or evening.", hint, start=start)
    return time(hour, minute, second)


def one_clock(cursor: Cursor, start: int, times: Sequence[time]) -> None:
    """Refuses 5:00 beside a time with am or pm, and "9:00 and 5:00": there it is no longer surely 05:00."""
    tokens = cursor.tokens[start : cursor.at]
    has_halves = any(token.kind is WordKind.HALF_OF_DAY for token in tokens)
    turns_back = any(later < earlier for earlier, later in pairwise(times)) and max(times).hour <= 12
    for place, (token, after) in enumerate(pairwise([*tokens, cursor.peek()]), start):
        is_loose = (
            token.kind is WordKind.CLOCK and after.kind is not WordKind.HALF_OF_DAY and token.word[0] != "0"
        )
        hour, minute, _ = _parts(token) if is_loose else (0, 0, 0)
        if 1 <= hour <= 12 and (has_halves or (turns_back and token is tokens[-1])):
            cursor.at = place + 1
            instead = (
                (f"12:{minute:02}am", f"12:{minute:02}pm")
                if hour == 12
                else (f"{hour:02}:{minute:02}", f"{hour + 12}:{minute:02}")
            )
            cursor.refuse(
                f"{token.word!r} can be morning or evening.", cursor.rewritten(place, *instead), start=place
            )


def duration(cursor: Cursor) -> list[tuple[int, int]]:
    """`1 hour and 30 minutes`, `1h30m`, `half an hour` as (count, seconds of the unit); empty where none begins."""
    parts: list[tuple[int, int]] = []
    start = before = cursor.at
    while (part := _quantity(cursor)) is not None:
        if part[0] < 1:
            cursor.refuse("A duration is at least 1 second.", start=start)
        if parts and part[1] >= parts[-1][1]:
            cursor.refuse("A duration goes from large to small: 1 hour and 30 minutes.", start=start)
        parts.append(part)
        before = cursor.at
        cursor.accept("and")
    cursor.at = before
    if seconds_in(parts) > LONGEST_SECONDS:
        cursor.refuse("This is more than a hundred years.", start=start)
    return parts


def seconds_in(parts: Sequence[tuple[int, int]]) -> int:
    return sum(count * unit for count, unit in parts)


def calendar_date(cursor: Cursor) -> tuple[int, int, int | None] | None:
    """`3 march 2027`, `march 3rd`, `2027-03-03` as (day, month, year or None)."""
    start = cursor.at
    written = cursor.accept_kind(WordKind.DATE)
    if written is not None:
        year, month, day = (int(part) for part in written.word.split("-"))
        return _existing(cursor, start, day, month, year)
    if cursor.peek().kind is WordKind.MONTH and cursor.peek(1).kind in {WordKind.NUMBER, WordKind.ORDINAL}:
        month, day = cursor.take().number, cursor.take().number
    elif cursor.peek().kind in {WordKind.NUMBER, WordKind.ORDINAL} and _month_follows(cursor):
        day = cursor.take().number
        cursor.accept("of")
        month = cursor.take().number
    else:
        return None
    is_year = (
        cursor.peek().kind is WordKind.NUMBER
        and len(cursor.peek().word) == 4
        and cursor.peek(1).kind is not WordKind.HALF_OF_DAY
    )
    return _existing(cursor, start, day, month, cursor.take().number if is_year else None)


def ordinal(cursor: Cursor) -> int | None:
    """1 to 31, or LAST."""
    token, after = cursor.peek(), cursor.peek(1)
    if cursor.accept("last"):
        return LAST
    if not is_ordinal(token, after) or _month_follows(cursor):
        return None
    cursor.take()
    if token.kind is WordKind.ORDINAL and not 1 <= token.number <= 31:
        cursor.refuse(f"No month has a {token.word}.", start=cursor.at - 1)
    return token.number if token.kind is WordKind.ORDINAL else 2


def ordinal_range(cursor: Cursor) -> list[int] | None:
    """`1st`, or `1st to 7th`."""
    start = cursor.at
    first = ordinal(cursor)
    if first is None:
        return None
    before = cursor.at
    last = ordinal(cursor) if first != LAST and cursor.accept("to", "through") else None
    if last is None:
        cursor.at = before
        return [first]
    if last < first:
        cursor.refuse("These days run backwards.", start=start)
    return list(range(first, last + 1))


def is_ordinal(token: WordToken, after: WordToken) -> bool:
    """`second` is the unit of time unless a day or another ordinal follows."""
    is_second = token.word == "second" and (
        after.kind in {WordKind.WEEKDAY, WordKind.ORDINAL} or after.word in {"day", "weekday", "last", "and"}
    )
    return is_second or token.kind is WordKind.ORDINAL


def _parts(token: WordToken) -> tuple[int, int, int]:
    if token.kind is WordKind.NUMBER:
        return token.number, 0, 0
    hour, minute, *second = (int(part) for part in token.word.split(":"))
    return hour, minute, second[0] if second else 0


def _quantity(cursor: Cursor) -> tuple[int, int] | None:
    token, unit, before = cursor.peek(), cursor.peek(1), cursor.at
    if cursor.accept("half", "quarter"):
        cursor.accept("an")
        if cursor.accept("hour"):
            return (30 if token.word == "half" else 15), 60
        cursor.at = before
        return None
    if unit.kind is not WordKind.UNIT or not (token.kind is WordKind.NUMBER or token.word in {"a", "an"}):
        return None
    cursor.at += 2
    return (token.number if token.kind is WordKind.NUMBER else 1), unit.number


def _month_follows(cursor: Cursor) -> bool:
    after = cursor.peek(2) if cursor.peek(1).word == "of" else cursor.peek(1)
    return after.kind is WordKind.MONTH


def _existing(
    cursor: Cursor, start: int, day: int, month: int, year: int | None
) -> tuple[int, int, int | None]:
    try:
        date(2000 if year is None else year, month, day)  # 2000 is a leap year: 29 February comes round
    except ValueError:
        cursor.refuse("There is no such date.", start=start)
    return day, month, year
