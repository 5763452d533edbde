"""Split text into tokens with their positions, and raise errors that point at a token."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import NoReturn

from foliot.domain.errors import Mark, ScheduleInvalid
from foliot.domain.schedule.words.vocabulary import EXAMPLES, OTHER_WORDS, REFUSED, WORDS, WordKind

LONGEST = 256
AROUND_A_ZONE = " ,.\t\n"


@dataclass(frozen=True, slots=True)
class WordToken:
    kind: WordKind
    word: str  # in lower case; zones, dates and stamps as they were written
    start: int
    end: int
    number: int = 0
    after_comma: bool = False


# No repetition stands beside another that could take the same characters: a match never backtracks far.
SHAPE = re.compile(
    r"""(?P<space>\s+|\.$) | (?P<comma>,) | (?P<dash>-)
    | (?P<stamp>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)?) | (?P<date>\d{4}-\d\d-\d\d)(?![\d-])
    | (?P<numeric_date>\d+/\d+(?:/\d+)?|\d+\.\d+\.\d+) | (?P<fraction>\d+\.\d+)
    | (?P<clock>\d{1,2}:\d\d(?::\d\d)?)(?!\d) | (?P<past>:\d\d)(?!\d)
    | (?P<ordinal>\d+(?:st|nd|rd|th))\b | (?P<number>\d+)
    | (?P<zone>[a-z][\w+-]*(?:/[\w+-]+)+|(?:utc|gmt)\b) | (?P<half_of_day>[ap]m\b|[ap]\.m\b\.?)
    | (?P<word>o'clock|[a-z]+)""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


def tokens_of(text: str, timezone: str) -> list[WordToken]:
    """Return every piece of the text, the last one END. `the` and commas leave no token of their own."""
    if len(text) > LONGEST:
        raise ScheduleInvalid(
            f"This is {len(text)} characters long; a phrase has at most {LONGEST}.", hint=hint_for("")
        )
    tokens: list[WordToken] = []
    at, after_comma = 0, False
    while at < len(text):
        if _is_zone_at(text, at, timezone):
            token: WordToken | None = WordToken(WordKind.ZONE, timezone, at, at + len(timezone))
            at += len(timezone)
        else:
            found = SHAPE.match(text, at)
            if found is None:
                refuse(text, at, at + 1, f"Foliot cannot read {text[at]!r} here.")
            token, at = _token(text, found), found.end()
            after_comma = after_comma or found.lastgroup == "comma"
        if token is not None and token.word != "the":
            tokens.append(replace(token, after_comma=after_comma))
            after_comma = False
    return [*tokens, WordToken(WordKind.END, "", len(text), len(text))]


def refuse(text: str, start: int, end: int, message: str, hint: str | None = None) -> NoReturn:
    raise ScheduleInvalid(message, hint=hint or hint_for(text), mark=Mark(text, start, end))


def hint_for(text: str) -> str:
    """Three examples, those that share the most words with the text."""
    said = set(text.lower().replace(",", " ").split())
    nearest = sorted(EXAMPLES, key=lambda example: -len(said & set(example.split())))[:3]
    return "Foliot understands, for example, " + ", ".join(f"'{example}'" for example in nearest) + "."


def _is_zone_at(text: str, at: int, timezone: str) -> bool:
    """Return whether a zone name starts here. The schedule's own zone counts, also without a slash, such as Japan."""
    end = at + len(timezone)
    is_whole = (at == 0 or text[at - 1] in AROUND_A_ZONE) and text[end : end + 1] in AROUND_A_ZONE
    return bool(timezone) and is_whole and text[at:end].lower() == timezone.lower()


def _token(text: str, found: re.Match[str]) -> WordToken | None:
    shape, written, (start, end) = found.lastgroup, found.group(), found.span()
    word = written.lower()
    match shape:
        case "space" | "comma":
            return None
        case "dash":
            return WordToken(WordKind.WORD, "to", start, end)
        case "number" | "ordinal" | "past":
            return WordToken(WordKind(shape), word, start, end, _number(text, start, end))
        case "half_of_day":
            return WordToken(WordKind.HALF_OF_DAY, word[0] + "m", start, end)
        case "zone":
            return WordToken(WordKind.ZONE, written if "/" in word else written.upper(), start, end)
        case "clock" | "date" | "stamp":
            return WordToken(WordKind(shape), written.upper(), start, end)
        case "numeric_date":
            refuse(
                text,
                start,
                end,
                f"{word!r} can be read with the day or the month first.",
                "Write 'on 3 march 2027 at 9am' or 'on 2027-03-03 at 9am'.",
            )
        case "fraction":
            refuse(
                text,
                start,
                end,
                f"{word!r} is not a whole number.",
                "Write 'every 90 minutes' or 'every day at 9:30am'.",
            )
        case _:
            return _word(text, word, start, end)


def _number(text: str, start: int, end: int) -> int:
    digits = "".join(character for character in text[start:end] if character.isdigit())
    if len(digits) > 9:
        refuse(text, start, end, "This number is too large.")
    return int(digits)


def _word(text: str, word: str, start: int, end: int) -> WordToken:
    if word in WORDS:
        kind, number = WORDS[word]
        return WordToken(kind, word, start, end, number)
    if word in REFUSED or word in OTHER_WORDS:
        return WordToken(WordKind.WORD, word, start, end)
    near = get_close_matches(word, WORDS, n=1, cutoff=0.7) if 3 < len(word) < 16 else []
    mended = text[:start] + near[0] + text[end:] if near else text
    meant = f"Did you mean {near[0]!r}? " if near else ""
    refuse(text, start, end, f"Foliot does not know the word {word!r}.", meant + hint_for(mended))
