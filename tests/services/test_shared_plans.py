"""The packed plan that jobs share equals the plan that each would make by itself."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.definition import Spec
from foliot.domain.policy import Misfire
from foliot.domain.schedule import Interval, IntervalMode, Schedule
from foliot.services.scheduling.fast_path import find_packed_plan, make_packed_plan
from foliot.storage.arrays import raw_instant
from foliot.storage.jobs.definitions import spec_text
from tests.domain.builders import HOUR, MINUTE, at

START = at("2027-03-13 00:00")
paces = st.sampled_from([timedelta(seconds=1), timedelta(seconds=97), MINUTE, HOUR, timedelta(days=40)])
moments = st.timedeltas(-timedelta(hours=3), timedelta(days=90)).map(lambda gone: START + gone)


@given(
    paces,
    st.sampled_from(IntervalMode),
    st.sampled_from([timedelta(0), MINUTE]),
    st.none() | st.just(START + 9 * HOUR),
    st.sampled_from([timedelta(0), HOUR]),
    st.lists(st.tuples(moments, moments, st.none() | st.integers(0, 5)), min_size=1, max_size=12),
)
def test_intervals_of_one_rhythm_write_what_each_would_alone(
    every: timedelta,
    mode: IntervalMode,
    spread: timedelta,
    end_at: object,
    grace: timedelta,
    asked: list[tuple[object, object, int | None]],
) -> None:
    for anchor, moment, beats in asked:
        schedule: Schedule = Interval(every, anchor, mode, spread=spread)  # type: ignore[arg-type]
        spec = spec_text(Spec(schedule, "http", end_at=end_at, misfire=Misfire(grace=grace)))  # type: ignore[arg-type]
        cursor = raw_instant(moment if beats is None else anchor + beats * every)  # type: ignore[arg-type,operator]
        assert find_packed_plan(spec, cursor) == make_packed_plan(spec, cursor)


def test_intervals_of_one_pace_and_another_phase_have_plans_of_their_own() -> None:
    for anchor in (START, START + timedelta(seconds=7), START + timedelta(seconds=31)):
        spec = spec_text(Spec(Interval(MINUTE, anchor), "http"))
        for beats in (0, 3):
            cursor = raw_instant(START + 5 * MINUTE + beats * MINUTE)
            assert find_packed_plan(spec, cursor) == make_packed_plan(spec, cursor)
