"""Secrets out of what runs write and keep, piece after piece: a value may begin in one and end in another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from foliot.domain.artifacts import charset_of
from foliot.domain.logs import LogLine
from foliot.domain.masking import Masks, joined_lines, masked, merged, without_ends

PIECE = 256 * 1024  # characters of a file looked through at once
_WIDE = (
    "utf-16",
    "utf-32",
)  # charsets in which letters take several bytes; all others are looked through as UTF-8


class MaskedLines:
    """Of one stream of one attempt. A line that ends with the beginning of a secret waits for the one behind it."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._before = (
            ""  # of what has been let go, the end that may be the beginning of a secret, as it was written
        )
        self._held: list[LogLine] = []

    def take(self, lines: list[LogLine]) -> list[LogLine]:
        """These, or those held until now, as far as no secret can begin in them that goes on later."""
        self._held += lines
        joined = self._joined()
        return self._let_go(joined, len(joined) - self._masks.begun(joined), self._masks.spans(joined))

    def rest(self) -> list[LogLine]:
        """Nothing follows."""
        joined = self._joined()
        cut = self._masks.cut_off(joined)
        spans = merged([*self._masks.spans(joined), *([(len(joined) - cut, len(joined))] if cut else ())])
        return self._let_go(joined, len(joined), spans)

    def _joined(self) -> str:
        return self._before + "".join(line.text for line in self._held)

    def _let_go(self, joined: str, until: int, spans: list[tuple[int, int]]) -> list[LogLine]:
        free: list[LogLine] = []
        at = len(self._before)
        for line in self._held:
            end = at + len(line.text)
            if end > until:
                break
            inside = [(max(a, at) - at, min(b, end) - at) for a, b in spans if a < end and b > at]
            free.append(replace(line, text=masked(line.text, inside)) if inside else line)
            at = end
        self._held = self._held[len(free) :]
        self._before = joined[at - self._masks.begun(joined[:at], least=1) : at]
        return free


def masked_file(masks: Masks, data: bytes, media_type: str) -> bytes:
    """Of a file that says that it is text. Bytes that are none stay as they are."""
    charset = charset_of(media_type)
    if charset is None:
        return data
    charset = charset.lower().replace("_", "-")
    if charset.startswith(_WIDE):
        data = _masked_as(masks, data, charset, "strict")
    return _masked_as(masks, data, "utf-8", "surrogateescape")  # it need not be what it says


def _masked_as(masks: Masks, data: bytes, charset: str, errors: str) -> bytes:
    try:
        text = data.decode(charset, errors)
    except (LookupError, UnicodeError):  # it is not what it says
        return data
    clean = "".join(_masked_pieces(masks, text))
    return data if clean == text else clean.encode(charset, errors)


def _masked_pieces(masks: Masks, text: str) -> Iterator[str]:
    held, at = "", 0
    while True:
        # As much again as could not be let go: what repeats a secret without end is then not read again for each piece of it.
        until = at + max(PIECE, len(held))
        held, at = held + text[at:until], until
        if at >= len(text):
            yield masks.text(held)
            return
        joined = joined_lines(held)
        spans, until = masks.spans(joined), len(joined) - masks.begun(joined, least=1)
        if not spans and until == len(joined):
            yield held
            held = ""
            continue
        until = min([until, *(start for start, end in spans if end > until)])
        _, places = without_ends(held)
        cut = places[until] if until < len(joined) else len(held)
        yield masked(
            held[:cut], [(places[start], places[end - 1] + 1) for start, end in spans if end <= until]
        )
        held = held[cut:]
