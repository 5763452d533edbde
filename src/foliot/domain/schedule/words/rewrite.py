"""Put other ways to say the same into the words of the grammar, before it is read. A rewrite never changes what a phrase means.

Characters are replaced one for one, and words keep their place, so that an error still points at what was written.
"""

from __future__ import annotations

import re
from dataclasses import replace

from foliot.domain.schedule.words.tokens import WordToken, refuse
from foliot.domain.schedule.words.vocabulary import WORDS, WordKind

_CHARACTERS = str.maketrans({"&": ",", "\u2013": "-", "\u2014": "-", ";": ","})
_WEEKDAY = "|".join(word for word, (kind, _) in WORDS.items() if kind is WordKind.WEEKDAY)
_SLASHED = re.compile(rf"\b(?:{_WEEKDAY})(?:/(?:{_WEEKDAY}))+\b", re.IGNORECASE)
_POINTED = re.compile(r"\b(\d{1,2})\.(\d\d)(?=\s*[ap]\.?m)", re.IGNORECASE)

# Words of the phrase -> words of the grammar. `?` marks a word that may be missing.
_REWRITES: tuple[tuple[str, str], ...] = (
    ("everyday", "every day"),
    ("every|each night|nights", "nightly"),
    ("every day of week", "every day"),
    ("every day of month|year", "every day"),
    ("business|working|work day", "weekday"),
    ("business|working|work days", "weekdays"),
    ("workday|workingday", "weekday"),
    ("workdays", "weekdays"),
    ("at|on? end of each|every? month", "on last day of month"),
    ("at|on? month end", "on last day of month"),
    ("at|on? start|beginning of each|every? month", "on 1st of month"),
    ("at? top of each|every hour", "every hour"),
    ("at? top of hour", "at :00"),
    ("every|each other|alternate|second hour", "every 2 hours"),
    ("every|each other|alternate minute", "every 2 minutes"),
    ("every|each other|alternate day", "every 2 days"),
    ("every|each alternate", "every other"),
    ("alternate", "every other"),
    ("every|each fortnight", "every 2 weeks"),
    ("per|a|an day", "every day"),
    ("per|a week", "weekly"),
    ("per|a month", "monthly"),
    ("per|a|an year", "yearly"),
    ("per|an|a hour", "every hour"),
    ("per|a minute", "every minute"),
    ("half hourly", "every 30 minutes"),
    ("on|at? day ### of", "on ###th of"),
    ("at? minute ### of|past each|every hour", "every hour at :###"),
    ("at? minute ###", "at :###"),
    ("every noon", "every day at noon"),
    ("every midnight", "every day at midnight"),
)
_BEFORE_A_RATE = frozenset({"once", "twice", "thrice", "times"})
# Dropped wherever they stand: they add nothing.
_FILLERS = frozenset({"only", "sharp", "exactly", "precisely", "please"})
_OPENINGS = frozenset({"run", "schedule", "execute", "trigger", "start", "do", "fire"})
_OBJECTS = frozenset({"it", "this", "job", "task", "my"})
ZONES = {
    **dict.fromkeys(("et", "est", "edt", "eastern"), "America/New_York"),
    **dict.fromkeys(("ct", "cdt", "central"), "America/Chicago"),
    **dict.fromkeys(("mt", "mst", "mdt"), "America/Denver"),
    **dict.fromkeys(("pt", "pst", "pdt", "pacific"), "America/Los_Angeles"),
    **dict.fromkeys(("cet", "cest"), "CET"),
    **dict.fromkeys(("eet", "eest"), "EET"),
    **dict.fromkeys(("wet", "west"), "WET"),
    "jst": "Asia/Tokyo",
    **dict.fromkeys(("aest", "aedt"), "Australia/Sydney"),
    **dict.fromkeys(("nzst", "nzdt"), "Pacific/Auckland"),
}
UNCLEAR_ZONES = {
    "cst": "Central Standard Time or China Standard Time",
    "ist": "Indian, Irish or Israel Standard Time",
    "bst": "British Summer Time or Bangladesh Standard Time",
}


def normalise(text: str) -> str:
    """Replace signs by those of the grammar, one character for one."""
    text = _SLASHED.sub(lambda found: found.group().replace("/", ","), text)
    text = _POINTED.sub(r"\1:\2", text)
    return text.replace(" + ", " , ").translate(_CHARACTERS)


def rewrite(text: str, tokens: list[WordToken]) -> list[WordToken]:
    """Return the tokens in the words of the grammar."""
    tokens = _without_opening(_with_zone(text, tokens))
    tokens = [token for token in tokens if token.word not in _FILLERS]
    place = 0
    while place < len(tokens):
        for pattern, instead in _REWRITES:
            length = _match(tokens, place, pattern.split())
            is_rate = pattern.startswith("per|")  # "once a day", but not "in a day"
            if length and not (is_rate and (place == 0 or tokens[place - 1].word not in _BEFORE_A_RATE)):
                tokens[place : place + length] = _made(tokens[place : place + length], instead)
                break
        place += 1
    return tokens


def _match(tokens: list[WordToken], place: int, pattern: list[str]) -> int:
    """Return how many tokens the pattern takes from `place` on; 0 if it does not fit."""
    at = place
    for part in pattern:
        token = tokens[at] if at < len(tokens) else tokens[-1]
        if part == "###":
            fits = token.kind is WordKind.NUMBER
        else:
            fits = token.word in part.removesuffix("?").split("|")
        if fits:
            at += 1
        elif not part.endswith("?"):
            return 0
    return at - place


def _made(taken: list[WordToken], instead: str) -> list[WordToken]:
    number = next((token.number for token in taken if token.kind is WordKind.NUMBER), 0)
    made = []
    for word in instead.replace("###", str(number)).split():
        start, end = taken[0].start, taken[-1].end
        if word[0] == ":":
            made.append(WordToken(WordKind.PAST, word, start, end, int(word[1:])))
        elif word[0].isdigit():
            is_ordinal = word.endswith(("st", "th"))
            value = int(word.rstrip("sth"))
            made.append(
                WordToken(WordKind.ORDINAL if is_ordinal else WordKind.NUMBER, word, start, end, value)
            )
        else:
            kind, value = WORDS[word]
            made.append(WordToken(kind, word, start, end, value))
    return [replace(made[0], after_comma=taken[0].after_comma), *made[1:]]


def _without_opening(tokens: list[WordToken]) -> list[WordToken]:
    """Drop `run this job` and the like at the start; `once` says something and stays."""
    place = 0
    while tokens[place].word in _OPENINGS | _OBJECTS | {"please"}:
        if tokens[place].word == "this" and tokens[place + 1].kind is WordKind.WEEKDAY:
            break
        if tokens[place].word == "start" and tokens[place + 1].word == "of":
            break
        place += 1
    return tokens[place:]


def _with_zone(text: str, tokens: list[WordToken]) -> list[WordToken]:
    """Read the usual short name of a zone at the end of a phrase."""
    if len(tokens) < 2:
        return tokens
    has_time = tokens[-2].word == "time" and len(tokens) > 2
    token = tokens[-3] if has_time else tokens[-2]
    if token.word in UNCLEAR_ZONES:
        refuse(
            text,
            token.start,
            token.end,
            f"{token.word.upper()} can be {UNCLEAR_ZONES[token.word]}.",
            "Name the zone by its place, such as 'America/Chicago' or 'Asia/Shanghai'.",
        )
    if token.word not in ZONES or len(tokens) < 3:
        return tokens
    zone = WordToken(WordKind.ZONE, ZONES[token.word], token.start, token.end)
    return [*tokens[: -3 if has_time else -2], zone, tokens[-1]]
