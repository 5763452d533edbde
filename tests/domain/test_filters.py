"""The filter language: what a line of text means, and how it is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import QueryInvalid
from foliot.domain.filters import Between, Query, Term, Value, read_parameters, read_query
from foliot.domain.filters.fields import JOBS, RUNS

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
DAY, HOUR, TICK = timedelta(days=1), timedelta(hours=1), timedelta(microseconds=1)
SOME_ID = "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5"


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", ()),
        ("   ", ()),
        ("status:failed", (Term("status", ("failed",)),)),
        ("STATUS:Failed", (Term("status", ("failed",)),)),
        ("status:failed,paused", (Term("status", ("failed", "paused")),)),
        ("-tag:x", (Term("tag", ("x",), negated=True),)),
        ('name:"daily sync"', (Term("name", ("daily sync",)),)),
        ("daily sync", (Term("name", ("daily",)), Term("name", ("sync",)))),
        ('"daily sync" -test', (Term("name", ("daily sync",)), Term("name", ("test",), negated=True))),
        ('"status:failed"', (Term("name", ("status:failed",)),)),
        (r'"say \"hi\" \\"', (Term("name", ('say "hi" \\',)),)),
        ('tag:"a,b",c', (Term("tag", ("a,b", "c")),)),
        ("tag:a:b", (Term("tag", ("a:b",)),)),
        (f"id:{SOME_ID}", (Term("id", (UUID(SOME_ID),)),)),
        ("owner:ana", (Term("owner", ("ana",)),)),
        (f"owner:{SOME_ID}", (Term("owner", (UUID(SOME_ID),)),)),
        ('""', ()),
    ],
)
def test_a_line_is_read_as_terms(text: str, terms: tuple[Term, ...]) -> None:
    assert read_query(text, JOBS, NOW).terms == terms


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("failures:3", "failures", Between(3, 4)),
        ("failures:=3", "failures", Between(3, 4)),
        ("failures:>3", "failures", Between(4, None)),
        ("failures:>=3", "failures", Between(3, None)),
        ("failures:<3", "failures", Between(None, 3)),
        ("failures:<=3", "failures", Between(None, 4)),
        # Since and until take their own day in, after and before do not.
        ("since:24h", "created", Between(NOW - DAY, None)),
        ("since:2026-11-01", "created", Between(at(2026, 11, 1), None)),
        ("after:2026-11-01", "created", Between(at(2026, 11, 2), None)),
        ("until:2026-11-01", "created", Between(None, at(2026, 11, 2))),
        ("before:2026-11-01", "created", Between(None, at(2026, 11, 1))),
        ("since:2026-11-01T09:00:00Z", "created", Between(at(2026, 11, 1, 9), None)),
        ("since:2026-11-01T09:00:00+02:00", "created", Between(at(2026, 11, 1, 7), None)),
        ("before:7d", "created", Between(None, NOW - 7 * DAY)),
        ("created:2026-11-01", "created", Between(at(2026, 11, 1), at(2026, 11, 2))),
        ("created:today", "created", Between(at(2026, 11, 15), at(2026, 11, 16))),
        # Of what has been, a duration is a distance: less than a day ago.
        ("created:24h", "created", Between(NOW - DAY, None)),
        ("created:<24h", "created", Between(NOW - DAY + TICK, None)),
        ("created:>24h", "created", Between(None, NOW - DAY)),
        ("last:>1w2d", "last", Between(None, NOW - 9 * DAY)),
        # Of what is to come it lies ahead.
        ("next:<1h", "next", Between(None, NOW + HOUR)),
        ("next:1h30m", "next", Between(None, NOW + 1.5 * HOUR + TICK)),
        ("next:>now", "next", Between(NOW + TICK, None)),
        ("next:tomorrow", "next", Between(at(2026, 11, 16), at(2026, 11, 17))),
    ],
)
def test_numbers_and_times_become_half_open_stretches(text: str, field: str, value: Value) -> None:
    assert read_query(text, JOBS, NOW).terms == (Term(field, (value,)),)


def test_a_day_is_a_day_of_the_zone_and_has_its_own_length() -> None:
    paris = ZoneInfo("Europe/Paris")
    (term,) = read_query("created:2026-10-25", JOBS, NOW, paris).terms
    assert term.values == (Between(at(2026, 10, 24, 22), at(2026, 10, 25, 23)),)
    (term,) = read_query("since:2026-11-01T09:00", JOBS, NOW, paris).terms
    assert term.values == (Between(at(2026, 11, 1, 8), None),)


@pytest.mark.parametrize(
    ("text", "column", "says", "hints"),
    [
        (
            "stauts:failed",
            1,
            'There is no field "stauts"',
            'Did you mean "status"? Known for jobs: status, tag',
        ),
        ("tag:x stat:failed", 7, 'There is no field "stat"', 'Did you mean "status"?'),
        ("http://x", 1, 'There is no field "http"', "quotes"),
        ("status:faild", 8, 'There is no status "faild"', 'Did you mean "failed"? status is one of pending'),
        ("status:failed,active,ufo", 22, 'There is no status "ufo"', "status is one of"),
        ("tag:", 5, "A value is missing", "status:failed"),
        ("tag:a,", 7, "A value is missing", "status:failed"),
        ("failures:many", 10, '"many" is not a whole number', "failures:>3"),
        ("since:>24h", 7, "since takes no >", "since:24h"),
        ("since:lately", 7, '"lately" is not a time', "since:24h"),
        ("since:2026-02-30", 7, "There is no such day", ""),
        ("since:9999-12-31T23:59:59.999999Z", 7, "There is no such day", ""),
        ("created:999999w", 9, "more than a hundred years", ""),
        ("id:7", 4, '"7" is not an id', "The filter name: searches in names."),
        ('name:"daily', 6, "This quote is not closed", 'Put a "'),
        ("tag:a -", 7, "A minus", "-tag:old"),
        ("da\0ily", 1, "NUL", ""),
    ],
)
def test_what_cannot_be_read_is_pointed_at(text: str, column: int, says: str, hints: str) -> None:
    with pytest.raises(QueryInvalid) as caught:
        read_query(text, JOBS, NOW)
    error = caught.value
    assert says in error.message
    assert f"(column {column})" in error.message
    assert hints in (error.hint or "")
    assert (error.pointer, error.mark and error.mark.start) == ("/q", column - 1)


def test_all_that_is_wrong_is_reported_at_once() -> None:
    with pytest.raises(QueryInvalid) as caught:
        read_query("stauts:failed status:nope tag:ok failures:x", JOBS, NOW)
    assert len(caught.value.parts) == 3


@pytest.mark.parametrize("text", ["x" * 2_001, "a " * 51, "tag:" + ",".join("x" * 101)])
def test_a_filter_has_bounds(text: str) -> None:
    with pytest.raises(QueryInvalid, match="at most"):
        read_query(text, JOBS, NOW)


def test_parameters_are_as_good_as_terms() -> None:
    given_ = {
        "status": ["failed", "paused"],
        "tag": ["billing"],
        "failures": [">3"],
        "limit": ["5"],
        "type": [],
    }
    assert read_parameters(given_, JOBS, NOW) == read_query(
        "status:failed,paused tag:billing failures:>3", JOBS, NOW
    )


def test_a_wrong_parameter_is_named() -> None:
    with pytest.raises(QueryInvalid) as caught:
        read_parameters({"status": ["faild"], "since": ["x"]}, RUNS, NOW)
    assert [part.pointer for part in caught.value.parts] == ["/status", "/since"]


def test_queries_add_up() -> None:
    both = read_query("tag:a", JOBS, NOW) & read_query("tag:b", JOBS, NOW)
    assert [term.values for term in both.of("tag")] == [("a",), ("b",)]
    assert not Query()


@given(st.text(max_size=200), st.sampled_from([JOBS, RUNS]))
def test_any_text_is_read_or_refused_where_it_stands(text: str, fields: object) -> None:
    try:
        found = read_query(text, fields, NOW)  # type: ignore[arg-type]
    except QueryInvalid as error:
        for part in error.parts or (error,):
            assert part.mark is None or 0 <= part.mark.start <= part.mark.end <= len(text)
    else:
        assert {term.field for term in found.terms} <= {
            field.target for each in (JOBS, RUNS) for field in each.fields
        }


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
        min_size=1,
        max_size=5,
    )
)
def test_quoted_values_come_back_as_they_were(values: list[str]) -> None:
    quoted = ",".join('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values)
    assert read_query(f"tag:{quoted}", JOBS, NOW).terms == (Term("tag", tuple(values)),)
