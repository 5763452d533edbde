"""Parse words such as "every weekday at 9am" into a schedule. `describe` is the opposite direction.

    spanish.py     a Spanish phrase -> the same in English, by the tables of spanish_vocabulary.py
    vocabulary.py  known words, and words refused with a reason
    tokens.py      split the text into tokens
    rewrite.py     other ways to say the same -> the words of the grammar
    parts.py       the token cursor; clock times, durations, dates, ordinals
    days.py        days
    phrase.py      the clauses of a phrase
    clauses.py     the values that clauses fill in
    interpret.py   clauses -> schedule, or why there is none
    task.py        "check the deployment every 10 minutes": the task, and the schedule beside it
    one_shot.py    a wall time -> one future instant

Every token belongs to a clause or to the task, or the phrase is refused with examples: never guessed, never half-read. Only ScheduleInvalid is
raised. `now` and the zone are arguments.

Why: docs/decisions/103-schedule-words.md
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, tzinfo

from foliot.domain.errors import Mark, ScheduleInvalid
from foliot.domain.schedule.kinds import Schedule
from foliot.domain.schedule.words.interpret import meaning_of
from foliot.domain.schedule.words.one_shot import LocalNow
from foliot.domain.schedule.words.parts import Cursor
from foliot.domain.schedule.words.phrase import Phrase
from foliot.domain.schedule.words.rewrite import normalise
from foliot.domain.schedule.words.spanish import to_english
from foliot.domain.schedule.words.task import split_task
from foliot.domain.schedule.words.tokens import WordToken, refuse
from foliot.domain.schedule.words.vocabulary import EXAMPLES

__all__ = ["examples", "read_task", "read_words"]
_BLANKS = re.compile(r"\s{2,}(?=\S)|\s{2,}$")


def read_words(
    text: str, *, now: datetime, timezone: str, tz: tzinfo, zone_named: Callable[[str], tzinfo] | None = None
) -> Schedule:
    """Return the schedule that `text` says; wall times are in `timezone` (whose rules are `tz`) unless the phrase ends in another zone.

    `zone_named` finds such a zone by its name and raises ScheduleInvalid where there is none.
    """
    try:
        return _read_schedule(text, now, timezone, tz, zone_named)
    except ScheduleInvalid:
        parted = split_task(text)
        if parted is None:
            raise
    try:
        return _read_schedule(parted[1], now, timezone, tz, zone_named)
    except ScheduleInvalid as error:
        mark = error.mark
        if mark is not None and len(mark.text) == len(text):
            mark = Mark(text, mark.start, mark.end)
        # A hint quotes the phrase, which has blanks in place of the task.
        hint = error.hint and _BLANKS.sub("", error.hint)
        raise ScheduleInvalid(error.message, hint=hint, mark=mark) from None


def read_task(text: str) -> str | None:
    """Return what is to be done, if the words say it: "check the deployment" of "check the deployment every 10 minutes"."""
    parted = split_task(text)
    return parted[0] if parted else None


def _read_schedule(
    text: str, now: datetime, timezone: str, tz: tzinfo, zone_named: Callable[[str], tzinfo] | None
) -> Schedule:
    english = to_english(text)
    if english is not None:
        try:
            return _read_schedule(english, now, timezone, tz, zone_named)
        except ScheduleInvalid as error:
            message = f"In English this is {english!r}. {error.message}"
            raise ScheduleInvalid(message, hint=error.hint, mark=error.mark) from None
    try:
        cursor = Cursor(normalise(text), timezone)
        if cursor.zone is not None and cursor.zone.word != timezone:
            timezone, tz = cursor.zone.word, _zone(text, cursor.zone, zone_named)
        phrase = Phrase(cursor, now.astimezone(tz).date())
        return meaning_of(phrase.read(), LocalNow(now, timezone, tz))
    except OverflowError:
        raise ScheduleInvalid("This is after the year 9999.", hint="Name an earlier time.") from None


def examples() -> tuple[str, ...]:
    """Return phrases that Foliot understands, for hints and pages."""
    return EXAMPLES


def _zone(text: str, token: WordToken, zone_named: Callable[[str], tzinfo] | None) -> tzinfo:
    if zone_named is None:
        refuse(
            text,
            token.start,
            token.end,
            f"The schedule has another zone than {token.word}.",
            "Name only one of them.",
        )
    try:
        return zone_named(token.word)
    except ScheduleInvalid as error:
        refuse(text, token.start, token.end, error.message, error.hint)
