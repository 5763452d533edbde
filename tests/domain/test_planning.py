"""What a tick records, as tables of a due job, the time, and the answer."""

from __future__ import annotations

from datetime import time, timedelta

import pytest

from foliot.domain.dependencies import Dependencies, Edge, EdgeFacts, EdgeMode, JoinRule, UpstreamEnd
from foliot.domain.freeze import Freeze, FreezePolicy
from foliot.domain.ids import FreezeId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobEvent, JobStatus, RunStatus
from foliot.domain.planning.plan import ERROR_RETRY_DELAYS, plan, plan_error, plan_resume, plan_start
from foliot.domain.policy import Limits, Misfire, MisfireRule, Overlap, OverlapRule
from foliot.domain.run import WaitsFor
from foliot.domain.run_plan import FIRED_LATE, NewRun, SkippedRange, SkippedTime
from foliot.domain.schedule import (
    Calendar,
    CalendarKind,
    Cron,
    Interval,
    IntervalMode,
    Manual,
    Once,
    Otherwise,
    Timetable,
    Weekly,
    Window,
)
from tests.domain.builders import (
    DAY,
    HOUR,
    MINUTE,
    at,
    describe_plan,
    every,
    job_id,
    make_due_job,
    make_job,
    run_id,
)

SKIP, LATEST, ALL = MisfireRule.SKIP, MisfireRule.LATEST, MisfireRule.ALL


def test_an_on_time_planned_time_runs_and_the_timer_moves_to_the_next() -> None:
    made = plan(make_due_job(make_job(), at("07:55")), at("08:00"))
    assert describe_plan(made) == ["run 08:00"]
    assert made.timer == Timer(at("08:00"), at("08:10"), at("08:10"))
    assert made.counters.fires == 1


def test_nothing_is_recorded_before_it_is_due() -> None:
    job = make_due_job(make_job(), at("07:55"))
    made = plan(job, at("07:59:59"))
    assert made.records == ()
    assert made.timer == job.timer


def test_within_grace_every_planned_time_is_decided_on_its_own() -> None:
    job = make_job(every(10))
    assert describe_plan(plan(make_due_job(job, at("08:00")), at("08:00:35"))) == [
        "run 08:00:10",
        "skip 08:00:20 misfire",
        "skip 08:00:30 misfire",
    ]


def test_times_of_a_late_tick_are_an_overlap_only_behind_a_run_that_was_live_before() -> None:
    """An outage shorter than the grace: nothing was running, so nothing was overlapped."""
    job = make_job(every(10))
    idle = plan(make_due_job(job, at("08:00")), at("08:00:35"))
    assert [record.note for record in idle.records if isinstance(record, SkippedTime)] == [FIRED_LATE] * 2
    busy = plan(make_due_job(job, at("08:00"), live=1), at("08:00:35"))
    assert describe_plan(busy) == [f"skip 08:00:{second} overlap" for second in (10, 20, 30)]


@pytest.mark.parametrize("late", [timedelta(0), timedelta(milliseconds=5), timedelta(seconds=59)])
def test_a_time_at_the_end_of_its_window_has_a_minute_to_start(late: timedelta) -> None:
    job = make_job(Cron("0 17 * * *"), window=Window(time(9), time(17)))
    made = plan(make_due_job(job, at("16:00")), at("17:00") + late)
    assert describe_plan(made) == ["run 17:00"]
    assert made.runs[0].expires_at == at("17:01")


def test_a_late_time_does_not_start_in_the_last_instant_of_its_window() -> None:
    job = make_job(Cron("30 16 * * *"), window=Window(time(9), time(17)), misfire=Misfire(grace=HOUR))
    [run] = plan(make_due_job(job, at("16:00")), at("17:00")).runs
    assert (run.waits_for, run.not_before) == (WaitsFor.WINDOW, at("2027-01-06 09:00"))


@pytest.mark.requirement("C-16")
@pytest.mark.parametrize(
    ("misfire", "records"),
    [
        (Misfire(LATEST), ["gap 01:00..06:00 6 misfire", "run 07:00 late"]),
        (Misfire(SKIP), ["gap 01:00..07:00 7 misfire"]),
        (
            Misfire(ALL, max_catch_up=3),
            [
                "gap 01:00..04:00 4 misfire",
                "run 05:00 late",
                "run 06:00 waits for turn late",
                "run 07:00 waits for turn late",
            ],
        ),
        (
            Misfire(LATEST, grace=2 * HOUR),
            ["gap 01:00..04:00 4 misfire", "run 05:00 late", "skip 06:00 misfire", "skip 07:00 misfire"],
        ),
    ],
)
def test_after_a_night_of_downtime_the_misfire_policy_decides(misfire: Misfire, records: list[str]) -> None:
    job = make_job(Cron("0 * * * *"), misfire=misfire)
    made = plan(make_due_job(job, at("00:00")), at("07:30"))
    assert describe_plan(made) == records
    assert made.timer.due_at == at("08:00")


def test_late_begins_just_after_grace() -> None:
    job = make_job(misfire=Misfire(SKIP))
    assert describe_plan(plan(make_due_job(job, at("07:55")), at("08:01:00"))) == ["run 08:00"]
    assert describe_plan(plan(make_due_job(job, at("07:55")), at("08:01:00.000001"))) == [
        "skip 08:00 misfire"
    ]


def test_catch_up_runs_stand_behind_live_work_whatever_the_overlap_rule() -> None:
    job = make_job(Cron("0 * * * *"), misfire=Misfire(ALL, max_catch_up=2))
    made = plan(make_due_job(job, at("00:00"), live=1), at("03:30"))
    assert describe_plan(made) == [
        "skip 01:00 misfire",
        "run 02:00 waits for turn late",
        "run 03:00 waits for turn late",
    ]


def test_concurrent_catch_up_runs_all_start() -> None:
    job = make_job(Cron("0 * * * *"), misfire=Misfire(ALL), overlap=Overlap(OverlapRule.CONCURRENT))
    assert describe_plan(plan(make_due_job(job, at("00:00"), live=1), at("02:30"))) == [
        "run 01:00 late",
        "run 02:00 late",
    ]


@pytest.mark.requirement("S1-EC-1")
@pytest.mark.parametrize(
    ("rule", "live", "waiting", "record"),
    [
        (OverlapRule.SKIP, 0, 0, "run 08:00"),
        (OverlapRule.SKIP, 1, 0, "skip 08:00 overlap"),
        (OverlapRule.QUEUE, 1, 0, "run 08:00 waits for turn"),
        (OverlapRule.QUEUE, 1, 2, "run 08:00 waits for turn"),
        (OverlapRule.QUEUE, 1, 3, "skip 08:00 overlap"),
        (OverlapRule.QUEUE_ONE, 1, 0, "run 08:00 waits for turn"),
        (OverlapRule.QUEUE_ONE, 1, 1, "skip 08:00 overlap"),
        (OverlapRule.CANCEL_RUNNING, 0, 0, "run 08:00"),
        (OverlapRule.CANCEL_RUNNING, 1, 0, "run 08:00 waits for turn cancels"),
        (OverlapRule.CANCEL_RUNNING, 1, 1, "skip 08:00 overlap"),
        (OverlapRule.CONCURRENT, 5, 0, "run 08:00"),
    ],
)
def test_overlap_is_decided_by_what_is_live_and_waiting(
    rule: OverlapRule, live: int, waiting: int, record: str
) -> None:
    job = make_job(overlap=Overlap(rule, max_queued=3))
    assert describe_plan(plan(make_due_job(job, at("07:55"), live=live, waiting=waiting), at("08:00"))) == [
        record
    ]


@pytest.mark.parametrize(
    ("rule", "records"),
    [
        (OverlapRule.QUEUE, ["run 08:00:10", "run 08:00:20 waits for turn", "skip 08:00:30 misfire"]),
        (OverlapRule.QUEUE_ONE, ["run 08:00:10", "run 08:00:20 waits for turn", "skip 08:00:30 misfire"]),
        (OverlapRule.CANCEL_RUNNING, ["run 08:00:10", "skip 08:00:20 misfire", "skip 08:00:30 misfire"]),
        (OverlapRule.CONCURRENT, ["run 08:00:10", "run 08:00:20", "run 08:00:30"]),
    ],
)
def test_a_run_made_in_a_pass_is_live_for_the_next_planned_time_of_the_pass(
    rule: OverlapRule, records: list[str]
) -> None:
    job = make_job(every(10), overlap=Overlap(rule, max_queued=1))
    assert describe_plan(plan(make_due_job(job, at("08:00")), at("08:00:30"))) == records


def test_a_second_a_year_is_one_gap_record_without_a_count() -> None:
    job = make_job(every(1, anchor="2026-01-01 00:00"))
    made = plan(make_due_job(job, at("2026-01-05 00:00")), at("2027-01-05 00:00"))
    gap, *rest = made.records
    assert isinstance(gap, SkippedRange)
    assert gap.count is None
    assert gap.first.planned_for == at("2026-01-05 00:00:01")
    assert gap.last.planned_for == at("2027-01-05 00:00") - MINUTE - timedelta(seconds=2)
    assert describe_plan(made)[1] == "run 23:58:59 late"
    assert len(rest) == 1 + 61
    assert made.timer.due_at == at("2027-01-05 00:00:01")
    assert made.counters.skips == 10_000 + 60 + 1 - 0


@pytest.mark.parametrize(("hours", "count"), [(10_000, 10_000), (10_001, None)])
def test_a_gap_is_counted_exactly_to_ten_thousand(hours: int, count: int | None) -> None:
    start = at("2025-01-05 00:00")
    job = make_job(every(3600, anchor="2025-01-05 00:00"), misfire=Misfire(SKIP))
    made = plan(make_due_job(job, start), start + hours * HOUR + 30 * MINUTE)
    assert [record.count for record in made.records if isinstance(record, SkippedRange)] == [count]


def test_a_pass_is_bounded_and_the_next_goes_on_where_it_stopped() -> None:
    job = make_job(every(1), misfire=Misfire(grace=DAY))
    first = plan(make_due_job(job, at("08:00")), at("08:15:00"))
    assert len(first.records) == 500
    assert first.timer.due_at == at("08:08:21")
    second = plan(make_due_job(job, at("08:00"), timer=first.timer, live=1), at("08:15:00"))
    assert len(second.records) == 400
    assert second.timer.due_at == at("08:15:01")


def test_a_late_one_shot_runs_and_ends_its_job_when_it_settles() -> None:
    made = plan(make_due_job(make_job(Once(at("03:00"))), at("00:00")), at("09:00"))
    assert describe_plan(made) == ["run 03:00 late"]
    assert made.timer == Timer(at("03:00"), None, None, JobEvent.COMPLETE)
    assert made.events == ()


def test_a_one_shot_that_may_not_run_late_expires_its_job() -> None:
    made = plan(make_due_job(make_job(Once(at("03:00")), misfire=Misfire(SKIP)), at("00:00")), at("09:00"))
    assert describe_plan(made) == ["skip 03:00 misfire"]
    assert made.events == (JobEvent.EXPIRE,)


@pytest.mark.requirement("S3-10")
def test_max_runs_counts_created_runs_not_skips() -> None:
    job = make_job(every(10), max_runs=2)
    first = plan(make_due_job(job, at("08:00"), runs_created=1, live=1), at("08:00:10"))
    assert describe_plan(first) == ["skip 08:00:10 overlap"]
    second = plan(make_due_job(job, at("08:00:10"), runs_created=1), at("08:00:30"))
    assert describe_plan(second) == ["run 08:00:20"]
    assert second.timer == Timer(at("08:00:20"), None, None, JobEvent.COMPLETE)


def test_max_runs_holds_in_catching_up_and_every_late_time_is_still_accounted_for() -> None:
    job = make_job(Cron("0 * * * *"), max_runs=5, misfire=Misfire(ALL))
    made = plan(make_due_job(job, at("00:00"), runs_created=3), at("07:30"))
    assert describe_plan(made) == [
        "gap 01:00..05:00 5 misfire",
        "run 06:00 late",
        "run 07:00 waits for turn late",
    ]
    assert made.timer.ending is JobEvent.COMPLETE


def test_a_job_whose_runs_are_all_made_completes_at_once_when_nothing_is_live() -> None:
    made = plan(make_due_job(make_job(max_runs=2), at("07:55"), runs_created=2), at("08:00"))
    assert (describe_plan(made), made.events) == ([], (JobEvent.COMPLETE,))


@pytest.mark.requirement("S2-20")
def test_past_end_at_the_job_expires_with_its_last_run() -> None:
    job = make_job(end_at=at("08:05"))
    made = plan(make_due_job(job, at("07:55")), at("08:00"))
    assert (describe_plan(made), made.timer.ending) == (["run 08:00"], JobEvent.EXPIRE)
    skipped = plan(make_due_job(make_job(end_at=at("08:05")), at("07:55"), skip_next=True), at("08:00"))
    assert (describe_plan(skipped), skipped.events, skipped.timer.due_at) == (
        ["skip 08:00 operator"], (JobEvent.EXPIRE,), None,
    )  # fmt: skip


@pytest.mark.requirement("S2-20")
def test_a_pending_job_starts_at_start_at_and_shows_its_first_time_before() -> None:
    job = make_job(Cron("0 9 * * *"), start_at=at("08:00"))
    waiting = make_due_job(job, at("07:00"), status=JobStatus.PENDING)
    armed = plan_start(waiting, at("07:00"))
    assert armed.timer == Timer(at("07:00"), at("08:00"), at("09:00"))
    made = plan(make_due_job(job, at("07:00"), status=JobStatus.PENDING, timer=armed.timer), at("08:00"))
    assert (describe_plan(made), made.events, made.timer.due_at) == ([], (JobEvent.START,), at("09:00"))


@pytest.mark.requirement("S0-6")
@pytest.mark.parametrize("status", sorted(set(JobStatus) - {JobStatus.ACTIVE, JobStatus.PENDING}))
def test_a_job_that_is_not_active_records_nothing(status: JobStatus) -> None:
    made = plan(make_due_job(make_job(), at("07:55"), status=status), at("09:00"))
    assert (made.records, made.events, made.timer.due_at, made.timer.cursor) == ((), (), None, at("07:55"))


def test_resume_writes_one_gap_and_catches_nothing_up() -> None:
    made = plan_resume(make_due_job(make_job(), at("07:00"), status=JobStatus.PAUSED), at("08:00:30"))
    assert describe_plan(made) == ["gap 07:10..08:00 6 paused"]
    assert made.events == (JobEvent.RESUME,)
    assert made.timer == Timer(at("08:00"), at("08:10"), at("08:10"))


def test_resume_with_catch_up_runs_by_the_misfire_policy() -> None:
    paused = make_due_job(
        make_job(misfire=Misfire(ALL, max_catch_up=2)), at("07:30"), status=JobStatus.PAUSED
    )
    assert describe_plan(plan_resume(paused, at("08:05"), catch_up=True)) == [
        "skip 07:40 paused", "run 07:50 late", "run 08:00 waits for turn late",
    ]  # fmt: skip
    lazy = make_due_job(make_job(misfire=Misfire(SKIP)), at("07:30"), status=JobStatus.PAUSED)
    assert describe_plan(plan_resume(lazy, at("08:05"), catch_up=True)) == [
        "gap 07:40..07:50 2 paused",
        "run 08:00 late",
    ]


def test_resuming_within_the_same_beat_writes_nothing() -> None:
    made = plan_resume(make_due_job(make_job(), at("08:00"), status=JobStatus.PAUSED), at("08:01"))
    assert (made.records, made.timer.due_at) == ((), at("08:10"))


def test_resuming_a_one_shot_whose_time_has_passed_never_leaves_it_active_with_nothing_due() -> None:
    made = plan_resume(
        make_due_job(make_job(Once(at("03:00"))), at("00:00"), status=JobStatus.PAUSED), at("09:00")
    )
    assert (describe_plan(made), made.events) == (["skip 03:00 paused"], (JobEvent.RESUME, JobEvent.EXPIRE))


def test_resuming_lets_the_oldest_waiting_run_go_on() -> None:
    made = plan_resume(make_due_job(make_job(), at("08:00"), status=JobStatus.PAUSED, waiting=2), at("08:01"))
    assert made.promotes


def test_resuming_before_start_at_leaves_the_job_pending() -> None:
    job = make_due_job(make_job(start_at=at("12:00")), at("08:00"), status=JobStatus.PAUSED)
    assert plan_resume(job, at("09:00")).events == (JobEvent.RESUME, JobEvent.POSTPONE)


NIGHT_CLOSED = Window(time(8), time(20))


def test_times_deferred_to_one_instant_become_one_run_and_one_record() -> None:
    job = make_job(window=NIGHT_CLOSED)
    made = plan(make_due_job(job, at("2027-01-04 20:00")), at("08:00"))
    assert describe_plan(made) == ["gap 20:10..07:50 71 window", "run 08:00"]
    assert made.timer.due_at == at("08:10")


def test_a_deferred_night_of_seconds_is_still_one_run_and_one_record() -> None:
    job = make_job(every(1, anchor="2027-01-04 00:00"), window=NIGHT_CLOSED)
    made = plan(make_due_job(job, at("2027-01-04 20:00")), at("08:00"))
    assert describe_plan(made) == ["gap 20:00:01..07:59:59 None window", "run 08:00"]


def test_deferred_times_found_late_keep_the_window_as_their_reason() -> None:
    job = make_job(Cron("0 * * * *"), window=NIGHT_CLOSED)
    made = plan(make_due_job(job, at("2027-01-04 20:00")), at("08:05"))
    assert describe_plan(made) == ["gap 21:00..07:00 11 window", "run 08:00 late"]


@pytest.mark.requirement("X-11")
def test_a_late_run_found_outside_its_window_waits_for_the_window() -> None:
    job = make_job(Cron("0 18 * * *"), window=NIGHT_CLOSED)
    made = plan(make_due_job(job, at("12:00")), at("22:00"))
    assert describe_plan(made) == ["run 18:00 waits for window late"]
    run = made.runs[0]
    assert (run.not_before, run.expires_at) == (at("2027-01-06 08:00"), at("2027-01-06 20:00"))


def test_a_late_run_found_outside_a_skipping_window_is_skipped() -> None:
    job = make_job(Cron("0 18 * * *"), window=Window(time(8), time(20), otherwise=Otherwise.SKIP))
    assert describe_plan(plan(make_due_job(job, at("12:00")), at("22:00"))) == ["skip 18:00 window"]


SUNDAYS = Calendar("sundays", CalendarKind.BLACKOUT, (Weekly(time(2), time(3), frozenset({6})),))


def test_a_blackout_skips_at_the_planned_time() -> None:
    job = make_job(Cron("30 2 * * *"), calendars=(SUNDAYS,))
    made = plan(make_due_job(job, at("2027-01-09 12:00")), at("2027-01-10 02:30"))
    assert describe_plan(made) == ["skip 02:30 blackout"]


def test_a_missed_time_that_was_blacked_out_says_blackout_not_misfire() -> None:
    job = make_job(Cron("30 2 * * *"), calendars=(SUNDAYS,))
    assert describe_plan(plan(make_due_job(job, at("2027-01-09 12:00")), at("2027-01-10 09:00"))) == [
        "skip 02:30 blackout"
    ]


def test_skips_amid_a_deferred_stretch_wait_with_it_and_nothing_deferred_is_lost() -> None:
    defer = Calendar(
        "maintenance", CalendarKind.BLACKOUT, (Weekly(time(2), time(4)),), otherwise=Otherwise.DEFER
    )
    skip = Calendar("backup", CalendarKind.BLACKOUT, (Weekly(time(2, 30), time(2, 40)),))
    job = make_job(calendars=(defer, skip))
    late = plan(make_due_job(job, at("01:40")), at("02:45"))
    assert describe_plan(late) == ["run 01:50 waits for window late"]
    assert late.timer.due_at == at("04:00")
    assert describe_plan(plan(make_due_job(job, at("01:50")), at("04:00"))) == [
        "gap 02:00..03:50 12 blackout",
        "run 04:00",
    ]


def test_a_job_whose_calendar_never_opens_is_planned_like_any_other() -> None:
    always = Calendar("always", CalendarKind.BLACKOUT, (Weekly(time(0), time(0)),), otherwise=Otherwise.DEFER)
    made = plan(make_due_job(make_job(calendars=(always,)), at("07:00")), at("07:25"))
    assert describe_plan(made) == ["gap 07:10..07:20 2 blackout"]
    assert made.timer.due_at == at("07:30")


def test_a_local_time_that_the_clocks_skip_is_recorded_once() -> None:
    from foliot.domain.schedule import Gap as ClockGap

    job = make_job(Cron("30 2 * * *", "America/New_York", gap=ClockGap.SKIP))
    made = plan(make_due_job(job, at("2027-03-13 12:00")), at("2027-03-14 07:00"))
    assert [record.reason for record in made.records if isinstance(record, SkippedTime)] == ["dst_gap"]


def test_skip_next_lasts_until_the_time_it_names_and_not_a_time_longer() -> None:
    until = {"skip_next": True, "skip_until": at("08:10")}
    first = plan(make_due_job(make_job(), at("07:55"), **until), at("08:00"))
    assert (describe_plan(first), first.uses_skip_next) == (["skip 08:00 operator"], False)
    last = plan(make_due_job(make_job(), at("08:05"), **until), at("08:10"))
    assert (describe_plan(last), last.uses_skip_next) == (["skip 08:10 operator"], True)
    beyond = plan(make_due_job(make_job(), at("08:10"), **until), at("08:20"))
    assert (describe_plan(beyond), beyond.uses_skip_next) == (["run 08:20"], True)


def test_skip_next_takes_the_first_time_that_would_run() -> None:
    made = plan(make_due_job(make_job(), at("07:55"), skip_next=True), at("08:00"))
    assert (describe_plan(made), made.uses_skip_next) == (["skip 08:00 operator"], True)
    idle = plan(make_due_job(make_job(misfire=Misfire(SKIP)), at("07:55"), skip_next=True), at("08:05"))
    assert (describe_plan(idle), idle.uses_skip_next) == (["skip 08:00 misfire"], False)


def a_freeze(
    start: str, end: str | None, after: FreezePolicy = FreezePolicy.SKIP, per_minute: int = 60
) -> Freeze:
    return Freeze(FreezeId(run_id(1)), at(start), None if end is None else at(end), after, per_minute)


def test_a_freeze_that_skips_records_each_time_at_its_time() -> None:
    job = make_due_job(make_job(), at("07:55"), freezes=(a_freeze("07:30", "12:00"),))
    made = plan(job, at("08:00"))
    assert (describe_plan(made), made.timer.due_at) == (["skip 08:00 frozen"], at("08:10"))


def test_a_freeze_that_holds_records_nothing_until_it_is_over() -> None:
    freeze = a_freeze("07:30", "12:05", FreezePolicy.LATEST)
    job = make_due_job(make_job(), at("07:55"), freezes=(freeze,))
    held = plan(job, at("08:00"))
    assert (held.records, held.timer) == ((), Timer(at("07:55"), at("12:05"), at("12:05")))
    thawed = plan(make_due_job(make_job(), at("07:55"), timer=held.timer, freezes=(freeze,)), at("12:05"))
    assert describe_plan(thawed) == ["gap 08:00..11:50 24 frozen", "run 12:00 late"]


def test_a_freeze_without_an_end_holds_until_it_is_lifted() -> None:
    held = plan(
        make_due_job(make_job(), at("07:55"), freezes=(a_freeze("07:30", None, FreezePolicy.ALL),)),
        at("08:00"),
    )
    assert held.timer.due_at is None


def test_all_held_times_are_released_at_the_freezes_rate() -> None:
    freeze = a_freeze("07:30", "08:25", FreezePolicy.ALL, per_minute=2)
    held = Timer(at("07:55"), at("08:25"), at("08:25"))
    made = plan(make_due_job(make_job(), at("07:55"), timer=held, freezes=(freeze,)), at("08:25"))
    assert describe_plan(made) == [
        "run 08:00 late",
        "run 08:10 waits for turn late",
        "run 08:20 waits for turn late",
    ]
    assert [run.not_before for run in made.runs] == [at("08:25"), at("08:25:30"), at("08:26")]


def test_late_times_before_a_freeze_and_held_ones_in_it_are_kept_apart() -> None:
    freeze = a_freeze("03:30", "05:30", FreezePolicy.LATEST)
    job = make_job(Cron("0 * * * *"), overlap=Overlap(OverlapRule.CONCURRENT))
    made = plan(make_due_job(job, at("00:00"), freezes=(freeze,)), at("07:30"))
    assert describe_plan(made) == [
        "gap 01:00..02:00 2 misfire", "run 03:00 late", "skip 04:00 frozen", "run 05:00 late", "skip 06:00 misfire", "run 07:00 late",
    ]  # fmt: skip


def test_a_time_due_just_before_a_freeze_waits_for_its_end() -> None:
    made = plan(
        make_due_job(make_job(), at("07:55"), freezes=(a_freeze("08:00:10", "09:00"),)), at("08:00:20")
    )
    assert describe_plan(made) == ["run 08:00 waits for freeze"]


def test_where_freezes_overlap_skipping_wins() -> None:
    freezes = (a_freeze("07:30", "12:00", FreezePolicy.LATEST), a_freeze("07:45", "09:00"))
    assert describe_plan(plan(make_due_job(make_job(), at("07:55"), freezes=freezes), at("08:00"))) == [
        "skip 08:00 frozen"
    ]


def chained(seconds: int = 600) -> Interval:
    return Interval(timedelta(seconds=seconds), at("00:00"), IntervalMode.FIXED_DELAY)


def test_after_a_fixed_delay_run_the_timer_waits_for_its_end() -> None:
    made = plan(make_due_job(make_job(chained()), at("08:00")), at("08:10"))
    assert describe_plan(made) == ["run 08:10"]
    assert made.timer == Timer(at("08:10"), None, None)


def test_a_fixed_delay_time_that_does_not_run_is_followed_by_another() -> None:
    made = plan(make_due_job(make_job(chained()), at("08:00"), live=1), at("08:10:05"))
    assert describe_plan(made) == ["skip 08:10 overlap"]
    assert made.timer.due_at == at("08:20:05")


def test_a_late_fixed_delay_time_runs_once_or_is_skipped() -> None:
    assert describe_plan(plan(make_due_job(make_job(chained()), at("00:00")), at("08:00"))) == [
        "run 00:10 late"
    ]
    lazy = plan(make_due_job(make_job(chained(), misfire=Misfire(SKIP)), at("00:00")), at("08:00"))
    assert (describe_plan(lazy), lazy.timer.due_at) == (["skip 00:10 misfire"], at("08:10"))
    asked = make_due_job(make_job(chained(), misfire=Misfire(SKIP)), at("00:00"))
    assert describe_plan(plan(asked, at("00:11"))) == ["run 00:10"], "as old as the grace"
    assert describe_plan(plan(asked, at("00:11:00.000001"))) == ["skip 00:10 misfire"]


def test_resuming_a_fixed_delay_job_counts_from_the_resume() -> None:
    made = plan_resume(make_due_job(make_job(chained()), at("00:00"), status=JobStatus.PAUSED), at("08:00"))
    assert (describe_plan(made), made.timer.due_at) == (["skip 00:10 paused"], at("08:10"))
    busy = plan_resume(
        make_due_job(make_job(chained()), at("00:00"), status=JobStatus.PAUSED, live=1), at("08:00")
    )
    assert (describe_plan(busy), busy.timer.due_at) == ([], None)


def test_a_manual_job_has_no_timer_but_an_end() -> None:
    assert plan_start(make_due_job(make_job(Manual()), at("08:00")), at("08:00")).timer.due_at is None
    job = make_job(Manual(), end_at=at("12:00"))
    armed = plan_start(make_due_job(job, at("08:00")), at("08:00"))
    assert armed.timer.due_at == at("12:00")
    over = plan(make_due_job(job, at("08:00"), timer=armed.timer), at("12:00"))
    assert over.events == (JobEvent.EXPIRE,)


def gate(*edges: EdgeFacts, when: JoinRule = JoinRule.ALL) -> Dependencies:
    return Dependencies(edges, when)


NEEDS = Edge(job_id(7), mode=EdgeMode.GATE)


@pytest.mark.parametrize(
    ("facts", "record"),
    [
        (EdgeFacts(NEEDS, UpstreamEnd(run_id(5), at("07:30"))), "run 08:00"),
        (EdgeFacts(NEEDS, UpstreamEnd(run_id(5), at("07:30")), run_id(5)), "skip 08:00 dependency_failed"),
        (EdgeFacts(NEEDS, None), "skip 08:00 dependency_failed"),
        (EdgeFacts(NEEDS, None, upstream_has_run=False), "skip 08:00 dependency_missing"),
        (EdgeFacts(NEEDS, None, upstream_is_live=True), "run 08:00 waits for upstream"),
        (
            EdgeFacts(
                Edge(job_id(7), mode=EdgeMode.GATE, max_age=20 * MINUTE), UpstreamEnd(run_id(5), at("07:30"))
            ),
            "skip 08:00 dependency_failed",
        ),
    ],
)
def test_a_gate_decides_at_the_jobs_own_planned_time(facts: EdgeFacts, record: str) -> None:
    assert describe_plan(plan(make_due_job(make_job(), at("07:55"), gate=gate(facts)), at("08:00"))) == [
        record
    ]


def test_an_upstream_success_opens_a_gate_once() -> None:
    job = make_job(every(10), overlap=Overlap(OverlapRule.CONCURRENT))
    made = plan(
        make_due_job(job, at("08:00"), gate=gate(EdgeFacts(NEEDS, UpstreamEnd(run_id(5), at("07:30"))))),
        at("08:00:20"),
    )
    assert describe_plan(made) == ["run 08:00:10", "skip 08:00:20 dependency_failed"]
    assert [(used.upstream, used.run_id) for used in made.runs[0].consumes] == [(job_id(7), run_id(5))]
    assert isinstance(made.records[1], SkippedTime)
    assert made.records[1].note == "no fresh data"


def test_a_run_that_waits_at_its_gate_gives_way_at_the_next_planned_time() -> None:
    live_upstream = gate(EdgeFacts(NEEDS, None, upstream_is_live=True))
    first = plan(make_due_job(make_job(), at("07:55"), gate=live_upstream), at("08:00"))
    assert first.runs[0].expires_at == at("08:10")
    second = make_due_job(make_job(), at("08:00"), gate=live_upstream, live=1, live_until=at("08:10"))
    assert describe_plan(plan(second, at("08:10"))) == [
        "end wait dependency_failed",
        "run 08:10 waits for upstream",
    ]


def test_a_start_deadline_that_has_passed_is_a_skip_and_else_an_expiry() -> None:
    job = make_job(limits=Limits(start_deadline=5 * MINUTE))
    assert plan(make_due_job(job, at("07:55")), at("08:00")).runs[0].expires_at == at("08:05")
    assert describe_plan(plan(make_due_job(job, at("07:55")), at("08:04:59.999999"))) == ["run 08:00 late"]
    for late in ("08:05", "08:06"):
        assert describe_plan(plan(make_due_job(job, at("07:55")), at(late))) == ["skip 08:00 deadline"]


def test_a_job_that_cannot_be_planned_backs_off_and_fails_the_third_time() -> None:
    job = make_due_job(make_job(), at("07:55"))
    first = plan_error(job.timer, at("08:00"), 0)
    assert (describe_plan(first), first.timer.due_at) == (
        ["skip 08:00 scheduler_error"],
        at("08:00") + ERROR_RETRY_DELAYS[0],
    )
    assert plan_error(job.timer, at("08:00"), 1).timer.due_at == at("08:00") + ERROR_RETRY_DELAYS[1]
    third = plan_error(job.timer, at("08:00"), 2)
    assert (third.events, third.timer.due_at) == ((JobEvent.FAIL,), None)


def test_status_and_reason_agree_on_every_new_run() -> None:
    made = plan(make_due_job(make_job(), at("07:55"), live=1), at("08:00"))
    for record in made.records:
        if isinstance(record, NewRun):
            assert (record.status is RunStatus.WAITING) == (record.waits_for is not None)


def test_a_spread_job_goes_off_at_its_own_second_and_never_before() -> None:
    timetable = Timetable(Cron("0 * * * *", spread=10 * MINUTE), seed="a job")
    job = make_job()
    spread = make_due_job(type(job)(job.id, job.workspace_id, timetable), at("07:30"))
    assert spread.timer.due_at is not None
    assert at("08:00") < spread.timer.due_at < at("08:10")
    assert plan(spread, spread.timer.due_at - timedelta(microseconds=1)).records == ()
    assert describe_plan(plan(spread, spread.timer.due_at)) == ["run 08:00"]
