"""Secrets out of what runs write, line after line: a value may begin in one line and end in another."""

from __future__ import annotations

from dataclasses import replace

from foliot.domain.logs import LogLine
from foliot.domain.masking import Masks, masked, merged


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
