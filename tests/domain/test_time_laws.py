"""What holds for every schedule, zone and instant."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule import (
    Cron,
    Gap,
    Interval,
    Manual,
    Once,
    OverlapTime,
    PlannedTime,
    Timetable,
    next_time,
    planned_after,
    preview,
    times_between,
)
from tests.examples import examples
from tests.oracle.chance import clock_changes, crons, instants, near_a_change, patterns
from tests.oracle.compare import Case, cron_of
from tests.oracle.fields import MONTHS, WEEKDAYS, Pattern, numbers

FAR = timedelta(days=40)
MOST = 30  # planned times looked at in one example
slow = examples(60)
changes = st.deferred(near_a_change)


@pytest.mark.requirement("X-2")
@given(changes, st.data())
@slow
def test_planned_times_strictly_rise_and_no_name_is_given_twice(
    change: tuple[str, datetime], data: DataObject
) -> None:
    zone, after = change
    chain = _chain(_timetable(data, zone), after)
    assert all(planned.planned_for > after for planned in chain)
    assert all(one.planned_for < other.planned_for for one, other in pairwise(chain))
    assert len({(planned.local, planned.fold) for planned in chain}) == len(chain)


@given(changes, st.data())
@slow
def test_instants_are_utc_and_names_are_wall_times_of_whole_seconds(
    change: tuple[str, datetime], data: DataObject
) -> None:
    zone, after = change
    for planned in _chain(_timetable(data, zone), after):
        assert planned.planned_for.tzinfo is UTC
        assert planned.due_at.tzinfo is UTC
        assert planned.local.tzinfo is None
        assert planned.planned_for.microsecond == planned.local.microsecond == 0
        assert planned.local.fold == 0  # fold has its own field


@given(changes, st.data())
@slow
def test_the_next_time_is_the_head_of_the_preview_and_of_the_chain(
    change: tuple[str, datetime], data: DataObject
) -> None:
    zone, after = change
    timetable = _timetable(data, zone)
    shown = preview(timetable, after, 5)
    running = [planned for planned in _chain(timetable, after) if planned.skip is None]
    assert next_time(timetable, after) == next(iter(shown), None)
    assert list(shown[: len(running)]) == running[:5]
    assert preview(timetable, after, 6)[:5] == shown
    assert preview(timetable, after, 0) == ()


@given(changes, st.lists(st.timedeltas(timedelta(0), FAR), min_size=2, max_size=2), st.data())
@slow
def test_times_between_is_iterating_and_a_split_interval_concatenates(
    change: tuple[str, datetime], lengths: list[timedelta], data: DataObject
) -> None:
    zone, start = change
    timetable = Timetable(_thinned(data, zone))
    middle, end = start + min(lengths), start + max(lengths)
    whole = times_between(timetable, start, end, limit=100_000)
    assert (
        times_between(timetable, start, middle, limit=100_000)
        + times_between(timetable, middle, end, limit=100_000)
        == whole
    )
    chain = list(islice(_iterate(timetable, start), len(whole) + 1))
    assert tuple(chain[: len(whole)]) == whole
    assert len(chain) == len(whole) or chain[-1].planned_for > end
    assert times_between(timetable, start, end, limit=3) == whole[:3]


@pytest.mark.requirement("S2-41")
@given(changes, st.sampled_from(["Asia/Kolkata", "America/St_Johns", "Pacific/Apia"]), st.data())
@slow
def test_the_machines_own_zone_plays_no_part(
    change: tuple[str, datetime], machine: str, data: DataObject
) -> None:
    zone, after = change
    timetable = _timetable(data, zone)
    start = after - timedelta(days=1)  # other instants than the memory holds from the first asking
    here = _chain(timetable, after)
    with _machine_in(machine):
        assert _chain(timetable, after) == here
        there = _chain(timetable, start)
    assert _chain(timetable, start) == there


@given(changes, st.data())
@slow
def test_an_instant_may_be_given_in_any_zone(change: tuple[str, datetime], data: DataObject) -> None:
    zone, after = change
    timetable = _timetable(data, zone)
    elsewhere = after.astimezone(_fixed(data.draw(st.integers(-720, 840))))
    assert planned_after(timetable, elsewhere) == planned_after(timetable, after)


@given(
    st.deferred(lambda: st.sampled_from([case for case in clock_changes() if abs(_moved(case)) < 86400])),
    st.integers(0, 23),
    st.integers(0, 59),
    st.sampled_from(Gap),
    st.sampled_from([OverlapTime.FIRST, OverlapTime.SECOND]),
)
@slow
def test_a_daily_time_has_one_planned_time_for_each_date_whatever_the_clocks_do(
    case: Case, hour: int, minute: int, gap: Gap, overlap: OverlapTime
) -> None:
    cron = Cron(f"{minute} {hour} * * *", case.zones[0], gap=gap, overlap_time=overlap)
    planned = times_between(Timetable(cron), case.at - timedelta(days=4), case.at + timedelta(days=4))
    dates = [each.local.date() for each in planned]
    assert len(dates) in (7, 8, 9)
    assert [(later - earlier).days for earlier, later in pairwise(dates)] == [1] * (len(dates) - 1)
    assert {(each.local.hour, each.local.minute) for each in planned} == {(hour, minute)}


@given(patterns(), instants, st.sampled_from(OverlapTime))
@slow
def test_an_expression_and_its_spelled_out_twin_name_the_same_times(
    pattern: Pattern, after: datetime, overlap: OverlapTime
) -> None:
    """There is no other text form of an expression than the user's own; the twin takes the place of print and parse."""
    twin = _spelled_out(pattern)
    respaced = "\t" + pattern.expr.lower().replace(" ", "  ") + " "
    cron = cron_of(pattern, "America/New_York", Gap.NEXT_VALID, overlap)
    assume(_accepted(Timetable(cron)))
    assume(len(twin) <= 256)  # longer text is refused, whatever it says
    times = _chain(Timetable(cron), after, 5)
    assert _chain(Timetable(replace(cron, expr=twin)), after, 5) == times
    assert _chain(Timetable(replace(cron, expr=respaced)), after, 5) == times


@pytest.mark.requirement("S0-4")
@given(patterns(), instants)
@examples(200)
def test_on_utc_our_cron_is_cronsims(pattern: Pattern, after: datetime) -> None:
    """Where both accept. cronsim does not know `?`, and reads `7-7/2` as `7/2`; we read a range of one as one."""
    assume(not re.search(r"\b(\d+)-\1/", pattern.expr))
    try:
        theirs = CronSim(pattern.expr.replace("?", "*"), after.replace(microsecond=0))
    except CronSimError:
        return
    ours = Timetable(Cron(pattern.expr, seconds=pattern.seconds))
    assume(_accepted(ours))
    wanted = list(islice(theirs, 5))
    assert [planned.planned_for for planned in _chain(ours, after, len(wanted))] == wanted


@pytest.mark.parametrize(
    "name,expr",
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_a_name_with_an_at_is_its_expression(name: str, expr: str) -> None:
    after = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    named, written = (_chain(Timetable(Cron(each, "America/New_York")), after) for each in (name, expr))
    assert named == written


@given(st.text(max_size=20), instants)
@slow
def test_hashed_fields_are_stable_for_a_job_and_stay_in_their_field(seed: str, after: datetime) -> None:
    daily = _chain(
        Timetable(Cron("H H * * *", "Europe/Paris", overlap_time=OverlapTime.BOTH), seed), after, 8
    )
    assert len({(planned.local.hour, planned.local.minute) for planned in daily}) == 1
    again = Timetable(Cron("H H * * *", "Europe/Paris", overlap_time=OverlapTime.BOTH), seed)
    assert _chain(again, after, 8) == daily
    evening = _chain(Timetable(Cron("H H(20-22) * * *"), seed), after, 2)
    assert {planned.local.hour for planned in evening} <= {20, 21, 22}


@given(changes, st.text(max_size=10), st.timedeltas(timedelta(0), timedelta(hours=6)), st.data())
@slow
def test_a_spread_moves_only_when_the_timer_goes_off_and_never_past_the_next_planned_time(
    change: tuple[str, datetime], seed: str, spread: timedelta, data: DataObject
) -> None:
    zone, after = change
    plain = data.draw(crons(zone=zone))
    assume(_accepted(Timetable(plain)))
    spread_out = _chain(Timetable(replace(plain, spread=spread), seed), after)
    on_time = _chain(Timetable(plain, seed), after)
    assert [replace(planned, due_at=planned.planned_for) for planned in spread_out] == on_time
    assert all(
        planned.planned_for <= planned.due_at <= planned.planned_for + spread for planned in spread_out
    )
    assert all(one.due_at <= other.planned_for for one, other in pairwise(spread_out))
    assert _chain(Timetable(replace(plain, spread=spread), seed), after) == spread_out


@given(instants, st.timedeltas(timedelta(seconds=1), timedelta(days=400)), instants)
@slow
def test_an_interval_keeps_step_with_its_anchor(anchor: datetime, every: timedelta, after: datetime) -> None:
    every = timedelta(seconds=int(every.total_seconds()))
    planned = planned_after(Timetable(Interval(every, anchor)), after)
    assert planned is not None
    expected = anchor + every * max(1, (after - anchor) // every + 1)
    assert planned.planned_for == expected
    assert (planned.local, planned.fold) == (expected.replace(tzinfo=None), 0)


@given(instants, instants)
@slow
def test_a_one_shot_has_one_time_and_a_manual_schedule_none(at: datetime, after: datetime) -> None:
    once = planned_after(Timetable(Once(at)), after)
    assert (once is not None) == (at > after)
    assert once is None or once.planned_for == at
    assert planned_after(Timetable(Manual()), after) is None


def _timetable(data: DataObject, zone: str) -> Timetable:
    timetable = Timetable(data.draw(crons(zone=zone)), data.draw(st.sampled_from(["", "job-1"])))
    assume(_accepted(timetable))
    return timetable


def _thinned(data: DataObject, zone: str) -> Cron:
    """At most four times a day, so that forty days stay a short list."""
    minute, hours = (
        data.draw(st.integers(0, 59)),
        data.draw(st.sets(st.integers(0, 23), min_size=1, max_size=4)),
    )
    gap, overlap = data.draw(st.sampled_from(Gap)), data.draw(st.sampled_from(OverlapTime))
    return Cron(f"{minute} {','.join(map(str, hours))} * * *", zone, gap=gap, overlap_time=overlap)


def _accepted(timetable: Timetable) -> bool:
    """Expressions by chance may name no day at all; that only those are refused is the oracle's to judge."""
    try:
        planned_after(timetable, datetime(2000, 1, 1, tzinfo=UTC))
    except ScheduleInvalid:
        return False
    return True


def _iterate(timetable: Timetable, after: datetime) -> Iterator[PlannedTime]:
    while (planned := planned_after(timetable, after)) is not None:
        yield planned
        after = planned.planned_for


def _chain(timetable: Timetable, after: datetime, most: int = MOST) -> list[PlannedTime]:
    return list(islice(_iterate(timetable, after), most))


def _spelled_out(pattern: Pattern) -> str:
    """Lists of plain numbers in place of names, ranges and steps. What starts with * decides open and either-day: it stays."""
    *clock, of_month, month, of_week = pattern.expr.upper().split()
    limits = (59, 59, 23) if pattern.seconds else (59, 23)
    return " ".join(
        (
            *(
                text if text.startswith("*") else _listed(numbers(text, 0, high))
                for text, high in zip(clock, limits, strict=True)
            ),
            of_month if set(of_month) & set("*?L") else _listed(numbers(of_month, 1, 31)),
            _listed(numbers(month, 1, 12, MONTHS)),
            of_week
            if set(of_week) & set("*?#L")
            else _listed({day % 7 for day in numbers(of_week, 0, 7, WEEKDAYS)}),
        )
    )


def _listed(found: set[int]) -> str:
    return ",".join(map(str, sorted(found, reverse=True)))


def _moved(case: Case) -> int:
    return case.change.after - case.change.before


def _fixed(minutes: int) -> timezone:
    return timezone(timedelta(minutes=minutes))


@contextmanager
def _machine_in(zone: str) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()
