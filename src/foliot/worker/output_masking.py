"""Mask secrets in log lines and artifacts, piece by piece: a secret may begin in one piece and end in another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from foliot.domain.artifacts import charset_of
from foliot.domain.logs import LogLine
from foliot.domain.masking import Masks, joined_lines, masked, merged, without_ends

PIECE = 256 * 1024  # characters of a file searched at once
# Charsets in which ASCII letters take several bytes; all others are searched as UTF-8.
_WIDE = ("utf-16", "utf-32")


class MaskedLines:
    """Mask the lines of one stream. A line that ends with the beginning of a secret is held until the next one."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._before = ""  # the unmasked end of the lines released so far, which may begin a secret
        self._held: list[LogLine] = []

    def take(self, lines: list[LogLine]) -> list[LogLine]:
        """Add lines and return those in which no secret can begin that goes on later."""
        self._held += lines
        joined = self._joined()
        return self._release(joined, len(joined) - self._masks.begun(joined), self._masks.spans(joined))

    def rest(self) -> list[LogLine]:
        """Return the lines still held: nothing follows."""
        joined = self._joined()
        cut = self._masks.cut_off(joined)
        spans = merged([*self._masks.spans(joined), *([(len(joined) - cut, len(joined))] if cut else ())])
        return self._release(joined, len(joined), spans)

    def _joined(self) -> str:
        return self._before + "".join(line.text for line in self._held)

    def _release(self, joined: str, until: int, spans: list[tuple[int, int]]) -> list[LogLine]:
        released: list[LogLine] = []
        at = len(self._before)
        for line in self._held:
            end = at + len(line.text)
            if end > until:
                break
            inside = [(max(a, at) - at, min(b, end) - at) for a, b in spans if a < end and b > at]
            released.append(replace(line, text=masked(line.text, inside)) if inside else line)
            at = end
        self._held = self._held[len(released) :]
        self._before = joined[at - self._masks.begun(joined[:at], least=1) : at]
        return released


def masked_file(masks: Masks, data: bytes, media_type: str) -> bytes:
    """Mask the secrets in a file whose media type is text. Bytes that are no text stay unchanged."""
    charset = charset_of(media_type)
    if charset is None:
        return data
    charset = charset.lower().replace("_", "-")
    if charset.startswith(_WIDE):
        data = _masked_as(masks, data, charset, "strict")
    return _masked_as(masks, data, "utf-8", "surrogateescape")  # its media type may be wrong


def _masked_as(masks: Masks, data: bytes, charset: str, errors: str) -> bytes:
    try:
        text = data.decode(charset, errors)
    except (LookupError, UnicodeError):  # its media type is wrong
        return data
    clean = "".join(_masked_pieces(masks, text))
    return data if clean == text else clean.encode(charset, errors)


def _masked_pieces(masks: Masks, text: str) -> Iterator[str]:
    held, at = "", 0
    while True:
        # As much again as is held: a text that repeats a secret without end is then not searched again for each piece.
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
