"""Words -> schedule: "every weekday at 9am" as a value. The way back, schedule -> sentence, is `describe.py`.

    vocabulary.py   the words there are, and those refused with a reason
    tokens.py       the cutting of a text into tokens
    parts.py       the cursor, and the small pieces: clock times, durations, dates, ordinals
    days.py         which days
    phrase.py       the clauses of a phrase, noted as what was said
    clauses.py         the notes
    interpret.py      what was said -> a schedule, or why it is none
    one_shot.py      one-shots: a wall time -> an instant that exists and lies ahead

Every token is read by some clause or the phrase is refused with examples: never guessed, never half-read. Only ScheduleInvalid
is raised. `now` and the zone come in as values.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule.kinds import Schedule
from foliot.domain.schedule.words.interpret import meaning_of
from foliot.domain.schedule.words.one_shot import Place
from foliot.domain.schedule.words.parts import Cursor
from foliot.domain.schedule.words.phrase import Phrase
from foliot.domain.schedule.words.tokens import Token, refuse
from foliot.domain.schedule.words.vocabulary import EXAMPLES

__all__ = ["examples", "read_words"]


def read_words(
    text: str, *, now: datetime, timezone: str, tz: tzinfo, zone_named: Callable[[str], tzinfo] | None = None
) -> Schedule:
    """The schedule that `text` says; wall times are in `timezone` (whose rules are `tz`) unless the phrase ends in another zone.

    `zone_named` finds such a zone by its name and raises ScheduleInvalid where there is none.
    """
    try:
        cursor = Cursor(text, timezone)
        if cursor.zone is not None and cursor.zone.word != timezone:
            timezone, tz = cursor.zone.word, _zone(text, cursor.zone, zone_named)
        phrase = Phrase(cursor, now.astimezone(tz).date())
        return meaning_of(phrase.read(), Place(now, timezone, tz))
    except OverflowError:
        raise ScheduleInvalid("This lies beyond the year 9999.", hint="Name an earlier time.") from None


def examples() -> tuple[str, ...]:
    """Phrases that Foliot understands, for hints and pages."""
    return EXAMPLES


def _zone(text: str, token: Token, zone_named: Callable[[str], tzinfo] | None) -> tzinfo:
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
