"""Secrets in what runs write: whole, in two pieces, over several lines. None of them comes through."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.domain.logs import LogLine, LogStream
from foliot.domain.masking import MASK, SHORTEST, Masks
from foliot.worker import output_masking
from foliot.worker.output_masking import MaskedLines, masked_file

AT = datetime(2027, 1, 1, tzinfo=UTC)
TOKEN = "abcdefghijklmnop"


def lines(*texts: str) -> list[LogLine]:
    return [LogLine(AT, LogStream.STDOUT, text) for text in texts]


def texts(found: list[LogLine]) -> list[str]:
    return [line.text for line in found]


def test_an_ordinary_line_goes_on_at_once() -> None:
    assert texts(MaskedLines(Masks([TOKEN])).take(lines("hello", ""))) == ["hello", ""]


def test_a_value_in_two_pieces_waits_for_its_end_and_is_masked_in_both() -> None:
    stream = MaskedLines(Masks([TOKEN]))
    assert texts(stream.take(lines("one", "key abcdefgh"))) == ["one"]
    assert texts(stream.take(lines("ijklmnop end"))) == [f"key {MASK}", f"{MASK} end"]


def test_what_only_began_like_a_secret_is_let_go_by_the_next_line() -> None:
    stream = MaskedLines(Masks([TOKEN]))
    assert texts(stream.take(lines("abcdef"))) == []
    assert texts(stream.take(lines("and so on"))) == ["abcdef", "and so on"]


def test_what_is_cut_off_by_the_end_is_masked_and_what_is_too_little_to_tell_is_not() -> None:
    stream = MaskedLines(Masks([TOKEN]))
    assert texts(stream.take(lines("x abcdefghijkl"))) == []
    assert texts(stream.rest()) == [f"x {MASK}"]
    stream = MaskedLines(Masks([TOKEN]))
    assert texts(stream.take(lines("x abcde"))) == []
    assert texts(stream.rest()) == ["x abcde"]


printable = st.text("abcXYZ =/+", min_size=SHORTEST, max_size=30)


@given(
    st.lists(printable, min_size=1, max_size=3),
    st.lists(st.one_of(st.integers(0, 2), st.text("abcXYZ =/+", max_size=12)), max_size=8),
    st.lists(st.integers(0, 200), max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_wherever_the_borders_fall_at_most_three_characters_of_a_value_come_through(
    secrets: list[str], pieces: list[int | str], cuts: list[int], together: list[bool]
) -> None:
    """A text with secrets in it, cut anywhere into lines, which come one by one or several at once."""
    whole = "".join(secrets[each % len(secrets)] if isinstance(each, int) else each for each in pieces)
    places = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    parts = [whole[a:b] for a, b in pairwise(places)]
    masks = Masks(secrets)
    stream, found, waiting = MaskedLines(masks), list[str](), list[str]()
    for part, waits in zip(parts, together * 20, strict=False):
        waiting.append(part)
        if not waits:
            found += texts(stream.take(lines(*waiting)))
            waiting = []
    found += texts(stream.take(lines(*waiting))) + texts(stream.rest())
    assert len(found) == len(parts)
    shown = shown_of(parts, found)
    for secret in secrets:
        for at in range(len(whole)):
            if whole.startswith(secret, at):
                assert sum(shown[at : at + len(secret)]) < SHORTEST
        assert secret not in "".join(found)


def shown_of(parts: list[str], found: list[str]) -> list[bool]:
    """For each character that was written, whether it can still be read."""
    shown: list[bool] = []
    for part, line in zip(parts, found, strict=True):
        pieces = line.split(MASK)
        if len(pieces) == 1:
            shown += [True] * len(part)
            continue
        head, tail = pieces[0], pieces[-1]
        assert part.startswith(head)
        assert part.endswith(tail)
        middle = len(part) - len(head) - len(tail)
        shown += [True] * len(head) + [False] * middle + [True] * len(tail)
    return shown


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "text/csv; charset=utf-8",
        "application/json",
        "application/problem+json",
        "text/plain; charset=latin-1",
    ],
)
def test_files_that_say_they_are_text_are_masked_and_keep_bytes_that_are_none(media_type: str) -> None:
    data = b"\xff\xfe key=" + TOKEN.encode() + b"\r\n\x80 end"
    assert masked_file(Masks([TOKEN]), data, media_type) == b"\xff\xfe key=***\r\n\x80 end"


@pytest.mark.parametrize("media_type", ["application/pdf", "application/octet-stream", "image/png"])
def test_other_files_stay_as_they_are(media_type: str) -> None:
    assert masked_file(Masks([TOKEN]), TOKEN.encode(), media_type) == TOKEN.encode()


def test_a_file_in_wide_letters_is_read_as_its_charset_says() -> None:
    data = f"é {TOKEN}".encode("utf-16")
    assert masked_file(Masks([TOKEN]), data, "text/plain; charset=UTF-16").decode("utf-16") == "é ***"
    odd = b"\x00" * 3
    assert masked_file(Masks([TOKEN]), odd, "text/plain; charset=utf-16") == odd


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(printable, min_size=1, max_size=3),
    st.lists(st.one_of(st.integers(0, 2), st.text("abcXYZ =/+\n", max_size=12)), max_size=10),
    st.integers(1, 20),
)
def test_a_file_in_pieces_is_masked_as_it_would_be_whole(
    monkeypatch: pytest.MonkeyPatch, values: list[str], parts: list[int | str], size: int
) -> None:
    monkeypatch.setattr(output_masking, "PIECE", size)
    masks = Masks(values)
    text = "".join(values[part % len(values)] if isinstance(part, int) else part for part in parts)
    found = masked_file(masks, text.encode(), "text/plain").decode()
    joined = text.replace("\n", "")
    assert not any(each in found.replace("\n", "") for each in masks)
    if not masks.spans(joined) and not masks.cut_off(joined):
        assert found == text


def test_a_file_that_is_not_written_as_it_says_is_looked_through_all_the_same() -> None:
    for data in (f"key={TOKEN}", f"key={TOKEN}!"):  # of which one can be read as UTF-16, too
        found = masked_file(Masks([TOKEN]), data.encode(), "text/plain; charset=utf-16")
        assert found == data.replace(TOKEN, MASK).encode()


def test_a_file_that_is_one_long_secret_is_read_through_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_through: list[int] = []
    spans = Masks.spans

    def counted(self: Masks, joined: str) -> list[tuple[int, int]]:
        looked_through.append(len(joined))
        return spans(self, joined)

    monkeypatch.setattr(Masks, "spans", counted)
    monkeypatch.setattr(output_masking, "PIECE", 100)
    assert masked_file(Masks(["a" * 8]), b"a" * 100_000, "text/plain") == MASK.encode()
    assert sum(looked_through) < 4 * 100_000


@pytest.mark.parametrize(
    "shown",
    [
        r"https:\/\/ops:a&b<c>\"d'e@db\/x",
        "https://ops:a&amp;b&lt;c&gt;&quot;d&#x27;e@db/x",
        "https://ops:a&amp;b&lt;c&gt;&#34;d&#39;e@db/x",
        "https://ops:a&amp;b&lt;c&gt;\"d'e@db/x",
    ],
)
def test_spellings_of_json_with_slashes_and_of_pages_are_masked(shown: str) -> None:
    masks = Masks(["https://ops:a&b<c>\"d'e@db/x"])
    assert masks.text(f"see {shown} there") == "see *** there"
