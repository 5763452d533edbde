"""Remove the values of secrets from text, in every common spelling.

Masks are compared without line ends on both sides. This finds keys of several lines, values that two pieces of output divide, and
base64 broken into lines of 76 characters.

Why: docs/decisions/712-masks.md
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote, quote_plus, unquote

MASK = "***"
SHORTEST = 4  # characters; shorter values occur in innocent words
SHORTEST_OF_URL = 8  # characters of a secret part of an address; shorter ones are words such as /hook
GLANCE = 32  # characters that exclude most texts before a full comparison
LONGEST_PART = 16  # characters at the end of a text that certainly begin a secret
MOST_GUESSES = 16  # positions to test before the whole end is compared

_ENDS = re.compile("[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")  # everything that str.splitlines splits at
_BETWEEN = re.compile("[^\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_ESCAPED = re.compile(r"%[0-9A-F]{2}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9-]*\s+(\S+)\s*")
_URL = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@:]*:(?P<password>[^/?#@]*)@)?[^/?#]*(?P<path>[^?#]*)(?P<query>[^#]*)"
)


class Masks:
    """The masks of one attempt. False if nothing is to be masked, so that the common case costs one check."""

    __slots__ = ("_borders", "_spellings")

    def __init__(self, values: Iterable[str]) -> None:
        found = {each for value in values for each in spellings(value)}
        self._spellings = sorted(found, key=len, reverse=True)
        self._borders: dict[str, list[int]] = {}  # of used masks; most are never used

    def __bool__(self) -> bool:
        return bool(self._spellings)

    def __repr__(self) -> str:
        return f"Masks({len(self._spellings)})"

    def __iter__(self) -> Iterator[str]:
        return iter(self._spellings)

    def text(self, text: str) -> str:
        """Mask the text. A value that the end of the text cuts off counts too."""
        if not self._spellings or len(text) < SHORTEST:
            return text
        joined, places = without_ends(text)
        spans = self.spans(joined)
        if cut := self.cut_off(joined):
            spans = merged([*spans, (len(joined) - cut, len(joined))])
        return masked(text, [(places[start], places[end - 1] + 1) for start, end in spans]) if spans else text

    def json(self, value: Any) -> Any:
        """Mask every text inside, keys included, and numbers: a PIN may be a secret."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.json(key): self.json(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(each) for each in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and self.spans(json.dumps(value)):
            return MASK
        return value

    def spans(self, joined: str) -> list[tuple[int, int]]:
        """Find the masks in a text without line ends."""
        found = []
        for each in self._spellings:
            at = joined.find(each)
            while at >= 0:
                period = len(each) - self._borders_of(each)[-1]
                end = _repeated(joined, each, period, at + len(each))
                found.append((at, end))
                # An overlapping match is at least a period later; repetitions in step are counted already.
                at = joined.find(each, end - len(each) + max(period, len(each) - period + 1))
        return merged(found) if len(found) > 1 else found

    def begun(self, joined: str, least: int = SHORTEST) -> int:
        """Return how many characters at the end, at least `least`, may begin a secret that continues in the next text."""
        return max((self._begun(joined, mask, least) for mask in self._spellings), default=0)

    def cut_off(self, joined: str) -> int:
        """Return the same when no text follows: shorter ends are often innocent words."""
        return max((self._begun(joined, mask, _surely(mask)) for mask in self._spellings), default=0)

    def _begun(self, joined: str, mask: str, least: int) -> int:
        """Return how much of the mask's beginning, at least `least`, ends the text."""
        at = joined.find(mask[:least], max(0, len(joined) - len(mask) + 1))
        for _ in range(MOST_GUESSES):
            if at < 0:
                return 0
            if mask.startswith(joined[at : at + GLANCE]) and mask.startswith(joined[at:]):
                return len(joined) - at
            at = joined.find(mask[:least], at + 1)
        begun = 0 if at < 0 else _end_in(joined[at:], mask, self._borders_of(mask))
        return begun if begun >= least else 0

    def _borders_of(self, mask: str) -> list[int]:
        if mask not in self._borders:
            self._borders[mask] = _borders(mask)
        return self._borders[mask]


NO_MASKS = Masks(())


def spellings(value: str) -> set[str]:
    """Return all spellings of a value: its lines, the part after `Bearer` or behind a host name, each as JSON, HTML, URL and base64."""
    if len(_ENDS.sub("", value)) < SHORTEST:
        return set()
    found = {value, *value.splitlines()}
    if scheme := _SCHEME.fullmatch(value):
        found.add(scheme[1])
    found.update(_of_url(value.strip()))
    found |= {json.dumps(each)[1:-1] for each in (value, *found)}
    found |= {json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    # Some encoders of JSON write / as \\/, and pages write &, <, > and quotes as HTML does.
    found |= {each.replace("/", "\\/") for each in set(found) if "/" in each}
    for quoted in (html.escape(value), html.escape(value, quote=False)):
        found |= {
            quoted,
            quoted.replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
            quoted.replace("&#x27;", "&apos;"),
        }
    for escaped in (quote(value, safe=""), quote(value), quote_plus(value)):
        found |= {escaped, _ESCAPED.sub(lambda each: each[0].lower(), escaped)}
    for each in {value, value.strip(), scheme[1] if scheme else value}:
        found.update(_in_base64(each.encode("utf-8", "replace")))
    return {each for found_ in found if len(each := _ENDS.sub("", found_)) >= SHORTEST}


def _of_url(value: str) -> Iterator[str]:
    """Return the parts of an address that servers and libraries quote alone: the path, the password."""
    found = _URL.fullmatch(value)
    if found is None:
        return
    path, query, password = found["path"], found["query"], found["password"] or ""
    pieces = {
        path,
        path + query,
        *path.split("/"),
        *(each.partition("=")[2] for each in query[1:].split("&")),
    }
    yield from (each for each in pieces if len(each) >= SHORTEST_OF_URL)
    yield from (password, unquote(password))


def _in_base64(raw: bytes) -> Iterator[str]:
    """Return the base64 spellings. Inside a longer text the letters depend on the number of bytes before."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(raw).decode()
        yield whole
        yield whole.rstrip("=")
        for before in range(3):
            letters = encode(bytes(before) + raw).decode()
            first, last = -(-8 * before // 6), 8 * (before + len(raw)) // 6
            yield letters[first:last]


def joined_lines(text: str) -> str:
    return _ENDS.sub("", text)


def without_ends(text: str) -> tuple[str, Sequence[int]]:
    """Return the text without line ends, and the position of each character."""
    if _ENDS.search(text) is None:
        return text, range(len(text))
    pieces = [(each.start(), each[0]) for each in _BETWEEN.finditer(text)]
    return "".join(piece for _, piece in pieces), [
        at + place for at, piece in pieces for place in range(len(piece))
    ]


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    done: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if done and start <= done[-1][1]:
            done[-1] = (done[-1][0], max(end, done[-1][1]))
        else:
            done.append((start, end))
    return done


def masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in spans:
        pieces += [text[at:start], MASK]
        at = end
    return "".join((*pieces, text[at:]))


def _borders(mask: str) -> list[int]:
    """Return the border table of Knuth, Morris and Pratt: it keeps the search linear for repetitive secrets."""
    found, matched = [0], 0
    for letter in mask[1:]:
        while matched and letter != mask[matched]:
            matched = found[matched - 1]
        matched += letter == mask[matched]
        found.append(matched)
    return found


def _end_in(text: str, mask: str, borders: Sequence[int]) -> int:
    """Return how much of the mask's beginning ends this text, which is shorter."""
    matched = 0
    for letter in text:
        while matched and letter != mask[matched]:
            matched = borders[matched - 1]
        matched += letter == mask[matched]
    return matched


def _repeated(joined: str, mask: str, period: int, end: int) -> int:
    """Return the true end of a mask that repeats its own period."""
    for step in (len(mask) // period * period, period):
        piece = mask[-step:]
        while joined.startswith(piece, end):
            end += step
    return end


def _surely(mask: str) -> int:
    return max(SHORTEST, min(len(mask) // 2, LONGEST_PART))
