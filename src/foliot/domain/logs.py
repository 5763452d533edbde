"""Log lines of a run, and the limits on what is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

MOST_LINES = 10_000  # of one run, all attempts together
MOST_BYTES = 5 * 1024 * 1024
LONGEST_LINE = 8 * 1024  # characters
CUT = " … (cut)"
# PostgreSQL stores neither of these in JSON.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class LogStream(StrEnum):
    LOG = "log"  # written by the handler through its context
    STDOUT = "stdout"
    STDERR = "stderr"
    SYSTEM = "system"  # written by Foliot about an attempt


@dataclass(frozen=True, slots=True)
class LogLine:
    at: datetime
    stream: LogStream
    text: str

    @property
    def size(self) -> int:
        return len(self.text.encode())


@dataclass(frozen=True, slots=True)
class LogLimits:
    """The limits of the log of one run, all attempts together. Workers send at most the defaults."""

    lines: int = MOST_LINES
    bytes: int = MOST_BYTES


DEFAULT_LIMITS = LogLimits()


@dataclass(frozen=True, slots=True)
class LogHead:
    """The size of the log of a run so far. A truncated log stays truncated: lines after a gap would look complete."""

    lines: int = 0
    bytes: int = 0
    truncated: bool = False


def lines_of(text: str) -> list[str]:
    """Split text into lines that can be stored."""
    return [fitted(line) for line in whole_lines(text)]


def whole_lines(text: str) -> list[str]:
    """Split text into lines of any length."""
    return storable(text[:MOST_BYTES]).splitlines() or [""]


def fitted(line: str) -> str:
    """Cut a line to the maximum length."""
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + CUT


def storable(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)


def fitting(
    head: LogHead, lines: Iterable[LogLine], limits: LogLimits = DEFAULT_LIMITS
) -> tuple[list[LogLine], LogHead]:
    """Return the lines that still fit, and the new head."""
    kept: list[LogLine] = []
    count, size, truncated = head.lines, head.bytes, head.truncated
    for line in lines:
        if truncated or count + 1 > limits.lines or size + line.size > limits.bytes:
            truncated = True
            break
        kept.append(line)
        count, size = count + 1, size + line.size
    return kept, LogHead(count, size, truncated)
