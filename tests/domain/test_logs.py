"""Lines: cut where they are too long, and counted up to a bound."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from foliot.domain.logs import (
    CUT,
    LONGEST_LINE,
    MOST_BYTES,
    MOST_LINES,
    LogHead,
    LogLine,
    LogStream,
    fitting,
    lines_of,
)

NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)


def line(text: str = "x") -> LogLine:
    return LogLine(NOON, LogStream.LOG, text)


@pytest.mark.parametrize(
    "text, lines",
    [
        ("one", ["one"]),
        ("one\ntwo\r\nthree\n", ["one", "two", "three"]),
        ("", [""]),
        ("a\x00b\ud800c", ["a\ufffdb\ufffdc"]),
        ("y" * (LONGEST_LINE + 1), ["y" * LONGEST_LINE + CUT]),
    ],
)
def test_text_becomes_lines_that_can_be_kept(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


def test_lines_are_kept_up_to_a_number_and_what_follows_is_left_out_for_good() -> None:
    kept, head = fitting(LogHead(lines=MOST_LINES - 2), [line()] * 3)
    assert (len(kept), head.lines, head.truncated) == (2, MOST_LINES, True)
    assert fitting(LogHead(truncated=True), [line()]) == ([], LogHead(truncated=True))


def test_bytes_are_kept_up_to_a_number() -> None:
    kept, head = fitting(LogHead(bytes=MOST_BYTES - 5), [line("éé"), line("é")])
    assert ([each.text for each in kept], head.truncated) == (["éé"], True)
