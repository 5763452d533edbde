"""Hypothesis strategies: cron expressions, zones, clock changes and schedules by chance."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from foliot.domain.schedule import Cron, Gap, OverlapTime
from tests.oracle.compare import Case, cases, cron_of
from tests.oracle.fields import MONTHS, WEEKDAYS, Pattern
from tests.oracle.tzif import zone_names

ZONES = sorted(zone_names())
instants = st.datetimes(datetime(1990, 1, 1), datetime(2037, 12, 31), timezones=st.just(UTC))


@cache
def clock_changes() -> list[Case]:
    return cases(1990, 2037, ZONES)


@st.composite
def near_a_change(draw: DrawFn, reach: timedelta = timedelta(hours=30)) -> tuple[str, datetime]:
    """A zone, and an instant near one of its clock changes: where time goes wrong if it does."""
    case = draw(st.sampled_from(clock_changes()))
    return draw(st.sampled_from(case.zones)), case.at + draw(st.timedeltas(-reach, reach))


def number_field(
    low: int, high: int, names: dict[str, int] | None = None, stars: int = 1
) -> SearchStrategy[str]:
    number = st.integers(low, high).map(str)
    if names:
        number |= st.sampled_from([*names, *(name.lower() for name in names)])
    span = st.tuples(st.integers(low, high), st.integers(low, high)).map(
        lambda ends: f"{min(ends)}-{max(ends)}"
    )
    step = st.integers(1, high - low)  # the engine refuses a step that reaches past the field
    single = (
        number
        | span
        | st.builds("{}/{}".format, span, step)
        | st.builds("{}/{}".format, st.integers(low, high), step)
    )
    stepped = st.builds("*/{}".format, step)
    lists = st.lists(single, min_size=1, max_size=3).map(",".join)
    return st.one_of(*[st.just("*")] * stars, stepped, lists)


day_of_month = st.one_of(
    number_field(1, 31, stars=3),
    st.just("?"),
    st.just("L"),
    st.just("LW"),
    st.integers(1, 31).map("{},L".format),
)
day_of_week = st.one_of(
    number_field(0, 7, WEEKDAYS, stars=3),
    st.just("?"),
    st.integers(0, 7).map("{}L".format),
    st.builds("{}#{}".format, st.sampled_from(list(WEEKDAYS)) | st.integers(0, 7), st.integers(1, 5)),
)
month = number_field(1, 12, MONTHS, stars=4)
night_hours = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(lambda hours: ",".join(map(str, hours)))


@st.composite
def patterns(draw: DrawFn, seconds: bool | None = None) -> Pattern:
    """Hours of the night come often: that is where clocks change."""
    with_seconds = draw(st.booleans()) if seconds is None else seconds
    parts = [
        draw(number_field(0, 59)),
        draw(number_field(0, 23) | night_hours),
        draw(day_of_month),
        draw(month),
        draw(day_of_week),
    ]
    if with_seconds:
        parts.insert(0, draw(st.integers(0, 59).map(str) | st.just("*/20") | st.just("5,55")))
    weeks = draw(st.sampled_from([1, 1, 1, 2, 3]))
    anchor = draw(st.dates(date(1980, 1, 1), date(2040, 1, 1))) if weeks > 1 else None
    return Pattern(" ".join(parts), with_seconds, draw(st.booleans()), weeks, anchor)


@st.composite
def crons(draw: DrawFn, zone: str | None = None) -> Cron:
    return cron_of(
        draw(patterns()),
        zone or draw(st.sampled_from(ZONES)),
        draw(st.sampled_from(Gap)),
        draw(st.sampled_from(OverlapTime)),
    )
