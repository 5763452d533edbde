"""A shared plan equals the plan of a walk."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.definition import Rules, Spec
from foliot.domain.freeze import Freeze
from foliot.domain.ids import FreezeId, WorkspaceId
from foliot.domain.planning.fast_path import find_shared_plan
from foliot.domain.planning.plan import plan
from foliot.domain.policy import Limits, Misfire, MisfireRule, Overlap, OverlapRule
from foliot.domain.run_plan import Plan
from foliot.domain.schedule import Cron, Gap, Interval, IntervalMode, Manual, Once, Schedule
from tests.domain.builders import DAY, HOUR, MINUTE, at, describe_plan, every, job_id, make_due_job, make_uuid

START = at("2027-03-13 00:00")  # New York's clocks jump the next night

schedules: st.SearchStrategy[Schedule] = st.one_of(
    st.sampled_from([1, 97, 600, 3600, 40_000]).map(every),
    st.just(replace(every(600), mode=IntervalMode.FIXED_DELAY)),
    st.just(Once(START + HOUR)),
    st.just(Manual()),
    st.builds(
        Cron,
        st.sampled_from(["* * * * *", "*/10 * * * *", "30 2 * * *", "H 6 * * *", "15 6,18 * * 1-5"]),
        st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]),
        gap=st.sampled_from(Gap),
        spread=st.sampled_from([timedelta(0), 4 * MINUTE]),
    ),
)
specs = st.builds(
    Spec,
    schedules,
    st.just("http"),
    start_at=st.none() | st.just(START + HOUR),
    end_at=st.none() | st.just(START + 9 * HOUR),
    max_runs=st.none() | st.integers(1, 3),
    overlap=st.builds(Overlap, st.sampled_from(OverlapRule)),
    misfire=st.builds(
        Misfire, st.sampled_from(MisfireRule), st.sampled_from([timedelta(0), MINUTE, HOUR, DAY])
    ),
    limits=st.builds(Limits, start_deadline=st.none() | st.just(MINUTE)),
)
moments = st.one_of(
    st.timedeltas(timedelta(0), timedelta(hours=36)).map(lambda gone: START + gone),
    st.integers(0, 36 * 6).map(lambda tens: START + tens * 10 * MINUTE),
)


def shared_plan(rules: Rules, cursor: datetime, now: datetime) -> Plan | None:
    asked = make_due_job(rules.job(job_id(1), WorkspaceId(make_uuid(9)), 1), cursor, rules=rules)
    return find_shared_plan(asked, now)


@given(specs, moments, st.lists(moments, min_size=1, max_size=8))
def test_a_shared_plan_equals_the_plan_of_a_walk(spec: Spec, cursor: datetime, nows: list[datetime]) -> None:
    rules = Rules(spec)
    asked = make_due_job(rules.job(job_id(1), WorkspaceId(make_uuid(9)), 1), cursor)
    for now in nows:
        is_due = asked.timer.due_at is not None and asked.timer.due_at <= now
        if is_due and (shared := shared_plan(rules, cursor, now)):
            assert shared == plan(asked, now)


@pytest.mark.parametrize("schedule", [Cron("0 8 * * *"), every(3600)])
def test_a_time_that_is_due_alone_and_not_late_takes_the_fast_path(schedule: Schedule) -> None:
    rules = Rules(Spec(schedule, "http"))
    assert shared_plan(rules, at("07:30"), at("08:00:30")) is not None
    assert shared_plan(rules, at("07:30"), at("07:59:59")) is None
    assert shared_plan(rules, at("07:30"), at("08:01:01")) is None, "late"


def test_a_time_that_the_clocks_skip_takes_no_fast_path() -> None:
    rules = Rules(Spec(Cron("30 2 * * *", "America/New_York", gap=Gap.SKIP), "http"))
    asked = make_due_job(rules.job(job_id(1), WorkspaceId(make_uuid(9)), 1), START + DAY)
    due_at = asked.timer.due_at
    assert due_at is not None
    assert describe_plan(plan(asked, due_at))[0].endswith("dst_gap")
    assert shared_plan(rules, START + DAY, due_at) is None
    assert shared_plan(rules, START + HOUR, START + 7 * HOUR + 30 * MINUTE) is not None, "the night before"


def test_a_freeze_and_a_disabled_type_take_no_fast_path() -> None:
    rules = Rules(Spec(Cron("0 8 * * *"), "http"))
    job = rules.job(job_id(1), WorkspaceId(make_uuid(9)), 1)
    frozen = Freeze(FreezeId(make_uuid(3)), at("06:00"))
    for about in ({"is_type_off": True}, {"freezes": (frozen,)}):
        asked = make_due_job(job, at("07:30"), rules=rules, **about)
        assert find_shared_plan(asked, at("08:00")) is None
    assert find_shared_plan(make_due_job(job, at("07:30"), rules=rules), at("08:00")) is not None


def test_jobs_with_the_same_rules_and_cursor_share_one_plan() -> None:
    rules = Rules(Spec(Interval(HOUR, at("00:00")), "http"))
    assert shared_plan(rules, at("07:00"), at("08:00")) is shared_plan(rules, at("07:00"), at("08:00:01"))
