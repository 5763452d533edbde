"""Put a Spanish phrase into the English words of the grammar: "cada lunes a las 9" -> "every monday at 09:00".

The phrase is scanned once from left to right. Each place must match a clock time, a date or an entry of PHRASES, the longest first;
a word that matches nothing is refused. The English phrase is then read like any other.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NoReturn

from foliot.domain.schedule.words.spanish_vocabulary import CLASSES, HINT, PHRASES
from foliot.domain.schedule.words.tokens import refuse
from foliot.domain.schedule.words.vocabulary import OTHER_WORDS, REFUSED, WORDS

_PATTERNS = sorted(
    ((pattern.split(), english) for pattern, english in PHRASES.items()), key=lambda each: -len(each[0])
)
_SHAPE = re.compile(
    r"\d{4}-\d\d-\d\d(?:t[\d:.]+(?:z|[+-]\d\d:\d\d)?)?|\d{1,2}[:.]\d\d|\d+|[a-z][\w+-]*(?:/[\w+-]+)+|[a-z]+|\S"
)
_SPOKEN = frozenset(word for pattern in PHRASES for word in pattern.split() if word.isalpha()) | {
    word for name in ("{W}", "{M}", "{U}", "{U}s", "{N}") for word in CLASSES[name]
}
_MARKERS = _SPOKEN - set(WORDS) - OTHER_WORDS - set(REFUSED) - {"y", "a"}
_BEFORE_TIMES = {
    ("a", "las"): "at",
    ("a", "la"): "at",
    ("entre", "las"): "between",
    ("desde", "las"): "from",
    ("de",): "from",
}
_PARTS = {"manana": range(1, 12), "madrugada": range(1, 7), "tarde": range(12, 21), "noche": range(19, 24)}


def to_english(text: str) -> str | None:
    """Return the phrase in the words of the grammar; None if it is not Spanish."""
    plain = _without_accents(text)
    found = [(match.group(), match.start()) for match in _SHAPE.finditer(plain)]
    words = [word for word, _ in found]
    if not _MARKERS & set(words):
        return None
    return _Scan(text, words, [start for _, start in found]).read()


def _without_accents(text: str) -> str:
    """Lower case without accents, one character for one, so that places in the text stay."""
    return "".join(unicodedata.normalize("NFD", character)[0] for character in text.lower())


class _Scan:
    def __init__(self, text: str, words: list[str], starts: list[int]) -> None:
        self.text, self.words, self.starts = text, words, starts
        self.at = 0
        self.said: list[str] = []

    def read(self) -> str:
        while self.at < len(self.words):
            if not (self.times() or self.phrase() or self.as_written()):
                self.refuse(f"Foliot does not know {self.words[self.at]!r} here.")
        return " ".join(self.said).replace(" ,", ",")

    def phrase(self) -> bool:
        for pattern, english in _PATTERNS:
            taken = self.words[self.at : self.at + len(pattern)]
            values = [_value(part, word) for part, word in zip(pattern, taken, strict=False)]
            if len(taken) == len(pattern) and None not in values:
                said = english
                for part, value in zip(pattern, values, strict=True):
                    if part[0] == "{":
                        said = said.replace(part[:3], str(value), 1)
                self.said.append(re.sub(r"\b([123]?)([123])th\b", _ordinal_of, said))
                self.at += len(pattern)
                return True
        return False

    def as_written(self) -> bool:
        """Zones, dates and stamps are the same in every language."""
        word, start = self.words[self.at], self.starts[self.at]
        if "/" in word[1:] or re.match(r"\d{4}-", word) or word in {"utc", "gmt"}:
            self.said.append(self.text[start : start + len(word)])
            self.at += 1
            return True
        return False

    def times(self) -> bool:
        """`a las 9 y a las 17`, `entre las 9 y las 17`, `de 9 a 17`."""
        opening = next(
            (
                words
                for words in _BEFORE_TIMES
                if tuple(self.words[self.at : self.at + len(words)]) == words
                and _is_time(self.peek(len(words)))
            ),
            None,
        )
        if opening is None:
            return False
        word = _BEFORE_TIMES[opening]
        self.at += len(opening)
        if word == "at":
            times = [self.time()]
            while self.peek() in {"y", ","} and (ahead := self.time_ahead()):
                self.at += ahead
                times.append(self.time())
            self.said.append("at " + " and ".join(times))
            return True
        start = self.at
        first = self.time(in_range=True)
        joints = {"between": {"y"}, "from": {"a", "hasta"}}[word]
        if self.peek() not in joints:
            self.refuse("This window has no end.")
        self.at += 1
        if self.peek() in {"las", "la"}:
            self.at += 1
        if not _is_time(self.peek()):
            self.refuse("This window has no end.")
        last = self.time(in_range=True)
        if first.endswith("am") and last.endswith("am") and int(last[:-2]) % 12 <= int(first[:-2]) % 12:
            self.refuse(
                "The end of this window can be morning or evening.", start, "Write 'de 9:00 a 17:00'."
            )
        self.said.append(f"{word} {first} {'and' if word == 'between' else 'to'} {last}")
        return True

    def time_ahead(self) -> int:
        """Return how many words stand before another time after `y` or a comma; 0 if none follows."""
        for ahead in (1, 3):
            is_introduced = ahead == 1 or (self.peek(1) == "a" and self.peek(2) in {"las", "la"})
            if (
                is_introduced
                and _is_time(self.peek(ahead))
                and self.peek(ahead + 1) not in CLASSES["{U}s"] | CLASSES["{U}"] | {"veces": ""}
            ):
                return ahead
        return 0

    def time(self, *, in_range: bool = False) -> str:
        start, word = self.at, self.words[self.at]
        self.at += 1
        if ":" in word or "." in word:
            hour, minute = (int(part) for part in re.split("[:.]", word))
            is_exact = True
        else:
            hour, minute, is_exact = int(CLASSES["{N}"].get(word, word)), 0, in_range
            minute, is_exact = self.minutes(hour, is_exact=is_exact)
            if minute < 0:
                hour, minute = hour - 1, 60 + minute
        if self.peek() in {"h", "hs", "hrs", "horas"}:
            self.at += 1
            is_exact = True
        elif self.peek() == "en" and self.peek(1) == "punto":
            self.at += 2
        if hour > 23 or minute > 59:
            self.refuse(f"{word!r} is not a time of day.", start)
        if self.peek() == "de" and self.peek(1) == "la" and self.peek(2) in _PARTS:
            hour = self.hour_in_part(hour, self.peek(2), start)
            self.at += 3
        elif self.peek() in {"am", "pm"}:
            if not 1 <= hour <= 12:
                self.refuse(f"There is no hour {hour} {self.peek()}.", start)
            hour = hour % 12 + (12 if self.peek() == "pm" else 0)
            self.at += 1
        elif not is_exact and (hour < 7 or hour == 12):
            instead = (
                "al mediodía' or 'a medianoche"
                if hour == 12
                else f"a las {hour} de la tarde' or 'a las {hour:02}:00"
            )
            self.refuse(f"{word!r} can be morning or evening.", start, f"Write '{instead}'.")
        if in_range and ":" not in word:  # the grammar leaves the end out of "from 9am to 5pm", as people do
            return (
                f"{hour % 12 or 12}{'am' if hour < 12 else 'pm'}" if minute == 0 else f"{hour:02}:{minute:02}"
            )
        return f"{hour:02}:{minute:02}"

    def minutes(self, hour: int, *, is_exact: bool) -> tuple[int, bool]:
        """`y media`, `y cuarto`, `menos cuarto`, `y 40` after an hour."""
        after = self.peek(1)
        if self.peek() == "menos" and after == "cuarto":
            self.at += 2
            return -15, is_exact
        if self.peek() != "y" or is_exact:
            return 0, is_exact
        if after in {"media", "cuarto"}:
            self.at += 2
            return (30 if after == "media" else 15), is_exact
        if after.isdigit() and self.peek(2) not in CLASSES["{U}s"]:
            if int(after) < 24:
                self.refuse(
                    f"'{hour} y {after}' can be one time or two.",
                    self.at,
                    f"Write 'a las {hour}:{int(after):02}' or 'a las {hour} y a las {after}'.",
                )
            self.at += 2
            return int(after), is_exact
        return 0, is_exact

    def hour_in_part(self, hour: int, part: str, start: int) -> int:
        if hour == 12 and part in {"noche", "madrugada"}:
            return 0
        found = next((each for each in (hour, hour + 12) if each in _PARTS[part]), None)
        if found is None:
            self.refuse(f"{hour} is not a time of the {part}.".replace("manana", "mañana"), start)
        return found

    def peek(self, ahead: int = 0) -> str:
        return self.words[self.at + ahead] if self.at + ahead < len(self.words) else ""

    def refuse(self, message: str, start: int | None = None, hint: str | None = None) -> NoReturn:
        first = min(self.at if start is None else start, len(self.words) - 1)
        last = min(max(first, self.at - 1), len(self.words) - 1)
        refuse(
            self.text,
            self.starts[first],
            self.starts[last] + len(self.words[last]),
            message,
            hint or HINT,
        )


def _is_time(word: str) -> bool:
    return (word[:1].isdigit() and "-" not in word and len(word) < 6) or word in CLASSES["{N}"]


def _value(part: str, word: str) -> str | None:
    if part == "{N}" and word.isdigit():
        return word
    if part[0] == "{":
        return CLASSES[part].get(word)
    return word if part == word else None


def _ordinal_of(found: re.Match[str]) -> str:
    tens, ones = found.groups()
    return f"{tens}{ones}th" if tens == "1" else f"{tens}{ones}" + ("st", "nd", "rd")[int(ones) - 1]
