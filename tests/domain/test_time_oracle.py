"""The time engine against the brute-force oracle, by samples; `./dev oracle` compares everything."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule import Gap, OverlapTime, Timetable, planned_after, times_between
from tests.examples import examples
from tests.oracle.chance import clock_changes, patterns
from tests.oracle.compare import Case, compare, cron_of
from tests.oracle.expect import expected, watch
from tests.oracle.fields import Matcher, Pattern
from tests.oracle.patterns import PATTERNS

HOUR = timedelta(hours=1)
ALL_CALENDARS = range(
    date(1972, 1, 1).toordinal(), date(2000, 1, 1).toordinal()
)  # 28 years: each of the 14 kinds of year
gaps, overlaps = st.sampled_from(Gap), st.sampled_from(OverlapTime)


@given(
    st.deferred(lambda: st.sampled_from(clock_changes())),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=8),
)
@examples(30)
def test_engine_and_oracle_name_the_same_times_around_a_clock_change(
    case: Case, chosen: list[Pattern]
) -> None:
    compared, differences = compare(case, chosen)
    assert not differences, "\n".join(map(str, differences))
    assert compared >= 0


@given(st.deferred(lambda: st.sampled_from(clock_changes())), patterns(), gaps, overlaps)
@examples(80)
def test_any_expression_agrees_with_the_oracle_around_any_clock_change(
    case: Case, pattern: Pattern, gap: Gap, overlap: OverlapTime
) -> None:
    zone = case.zones[-1]
    clock = watch(zone, case.at - 30 * HOUR, case.at + 30 * HOUR)
    try:
        got = times_between(
            Timetable(cron_of(pattern, zone, gap, overlap)), clock.start, clock.end, limit=100_000
        )
    except ScheduleInvalid:
        assert _never_fires(pattern)
        return
    assert got == expected(Matcher(pattern), clock, gap, overlap)


@given(
    st.deferred(lambda: st.sampled_from(clock_changes())),
    st.sampled_from(PATTERNS) | patterns(),
    gaps,
    overlaps,
    st.timedeltas(-3 * HOUR, 3 * HOUR),
)
@examples(80)
def test_from_any_instant_near_a_clock_change_the_next_planned_time_is_the_oracles(
    case: Case, pattern: Pattern, gap: Gap, overlap: OverlapTime, distance: timedelta
) -> None:
    assume(not _never_fires(pattern))
    after = case.at + distance
    clock = watch(case.zones[0], case.at - 4 * HOUR, case.at + 26 * HOUR)
    later = [
        planned for planned in expected(Matcher(pattern), clock, gap, overlap) if planned.planned_for > after
    ]
    found = planned_after(Timetable(cron_of(pattern, case.zones[0], gap, overlap)), after)
    if later:
        assert found == later[0]
    else:
        assert found is None or found.planned_for > clock.end


def _never_fires(pattern: Pattern) -> bool:
    if (
        pattern.every_n_weeks > 1
    ):  # every combination of date and weekday falls into a counted week sooner or later
        pattern = Pattern(pattern.expr, pattern.seconds, pattern.both_days)
    matcher = Matcher(pattern)
    return not any(matcher.matches_day(day) for day in ALL_CALENDARS)
