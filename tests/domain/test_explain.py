"""Why it ran, did not run, or waits."""

from __future__ import annotations

from datetime import time
from typing import Any

import pytest

from foliot.domain.explain.instants import Question, explain
from foliot.domain.explain.reasons import SENTENCES
from foliot.domain.explain.records import QueuePosition, Recorded, Verdict, explain_record
from foliot.domain.freeze import Freeze
from foliot.domain.ids import FreezeId
from foliot.domain.job import Job
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.run import RunError, WaitsFor
from foliot.domain.schedule import (
    Calendar,
    CalendarKind,
    Cron,
    Interval,
    IntervalMode,
    Manual,
    Otherwise,
    SkipReason,
    Weekly,
    Window,
)
from tests.domain.builders import HOUR, at, make_job, make_uuid, run_id

BOGOTA = make_job(Cron("0 6 * * *", "America/Bogota"))


def asked(when: str, job: Job = BOGOTA, **rest: Any) -> Question:
    created = rest.pop("created_at", at("2027-01-01 00:00"))
    return Question(
        job, rest.pop("status", JobStatus.ACTIVE), created, at(when), rest.pop("now", at("12:00")), **rest
    )


def a_record(status: RunStatus, **rest: Any) -> Recorded:
    return Recorded(run_id(7), 12, status, rest.pop("planned_for", at("11:00")), **rest)


def test_every_skip_reason_has_a_sentence_and_a_next_step() -> None:
    for reason in SkipReason:
        reported = explain_record(BOGOTA, a_record(RunStatus.SKIPPED, skip_reason=reason))
        assert reported.verdict is Verdict.SKIPPED
        assert reported.sentence.startswith(
            "The planned time of 2027-01-05 06:00:00 America/Bogota (UTC-05:00) was skipped because "
        )
        assert reported.sentence.endswith(".")
        assert reported.next_step is not None
        assert reported.next_step.endswith(".")
    assert set(SENTENCES) == set(SkipReason)


def test_a_run_whose_own_code_skipped_it_names_no_operator() -> None:
    begun = a_record(RunStatus.SKIPPED, skip_reason=SkipReason.OPERATOR, started_at=at("11:00"))
    reported = explain_record(BOGOTA, begun)
    assert "because its own code asked for that" in reported.sentence
    assert "audit" not in (reported.next_step or "")


def test_a_past_run_tells_how_it_ended() -> None:
    record = a_record(
        RunStatus.FAILED,
        started_at=at("11:00"),
        finished_at=at("11:01"),
        attempt_count=4,
        error=RunError("boom", "It broke."),
    )
    reported = explain(asked("11:00", record=record))
    assert reported.verdict is Verdict.RAN
    assert reported.sentence == (
        "Run 12, planned for 2027-01-05 06:00:00 America/Bogota (UTC-05:00), failed"
        " at 2027-01-05 06:01:00 America/Bogota (UTC-05:00) after 4 attempts."
    )
    assert "boom: It broke." in reported.facts
    assert reported.next_step is not None


def test_a_good_run_needs_no_next_step() -> None:
    assert explain(asked("11:00", record=a_record(RunStatus.SUCCEEDED))).next_step is None


def test_a_gap_record_tells_how_many_it_stands_for() -> None:
    hourly = make_job(Cron("0 * * * *"))
    gap = a_record(
        RunStatus.SKIPPED,
        planned_for=at("01:00"),
        planned_until=at("07:00"),
        count=7,
        skip_reason=SkipReason.MISFIRE,
    )
    reported = explain(asked("03:00", hourly, record=gap))
    assert reported.sentence.startswith(
        "7 planned times from 2027-01-05 01:00:00 UTC to 2027-01-05 07:00:00 UTC did not run"
    )
    endless = a_record(RunStatus.SKIPPED, planned_until=at("07:00"), skip_reason=SkipReason.PAUSED)
    assert explain_record(hourly, endless).sentence.startswith("More than 10,000 planned times")


def test_between_the_times_of_a_gap_there_was_still_no_planned_time() -> None:
    gap = a_record(
        RunStatus.SKIPPED,
        planned_for=at("01:00"),
        planned_until=at("07:00"),
        count=7,
        skip_reason=SkipReason.MISFIRE,
    )
    assert explain(asked("03:20", make_job(Cron("0 * * * *")), record=gap)).verdict is Verdict.NOT_PLANNED


def test_where_nothing_was_planned_the_nearest_times_are_named() -> None:
    reported = explain(asked("09:00"))
    assert (reported.verdict, reported.sentence) == (
        Verdict.NOT_PLANNED,
        "There was no planned time at 2027-01-05 04:00:00 America/Bogota (UTC-05:00).",
    )
    assert reported.facts == (
        "The nearest before is 2027-01-04 06:00:00 America/Bogota (UTC-05:00).",
        "The nearest after is 2027-01-05 06:00:00 America/Bogota (UTC-05:00).",
    )


def test_before_its_creation_the_job_did_not_exist() -> None:
    reported = explain(asked("2026-12-01 11:00"))
    assert reported.verdict is Verdict.NOT_CREATED
    assert "created on 2026-12-31 19:00:00 America/Bogota" in reported.sentence
    assert reported.facts == ("The nearest after is 2027-01-01 06:00:00 America/Bogota (UTC-05:00).",)


def test_people_ask_by_the_minute() -> None:
    every_7_seconds_past = make_job(Cron("7 0 6 * * *", "America/Bogota", seconds=True))
    assert explain(asked("2027-01-06 11:00", every_7_seconds_past)).verdict is Verdict.WILL_RUN


def test_a_future_time_will_run() -> None:
    reported = explain(asked("2027-01-06 11:00"))
    assert (reported.verdict, reported.sentence) == (
        Verdict.WILL_RUN, "It will run, planned for 2027-01-06 06:00:00 America/Bogota (UTC-05:00).",
    )  # fmt: skip


def test_a_deferred_future_time_says_when_it_goes_off() -> None:
    job = make_job(Cron("0 6 * * *"), window=Window(time(8), time(20)))
    reported = explain(asked("2027-01-06 06:00", job))
    assert reported.facts == (
        "It goes off at 2027-01-06 08:00:00 UTC: its window is closed until 2027-01-06 08:00:00 UTC.",
    )


def test_a_deferred_future_time_names_the_calendars_and_the_spread_that_move_it() -> None:
    night = Calendar("night", CalendarKind.BLACKOUT, (Weekly(time(5), time(7)),), "UTC", Otherwise.DEFER)
    idle = Calendar("idle", CalendarKind.BLACKOUT, (Weekly(time(22), time(23)),), "UTC", Otherwise.DEFER)
    job = make_job(Cron("0 6 * * *"), window=Window(time(7, 30), time(20)), calendars=(night, idle))
    [fact] = explain(asked("2027-01-06 06:00", job)).facts
    assert fact == (
        "It goes off at 2027-01-06 07:30:00 UTC: its window is closed until 2027-01-06 07:30:00 UTC"
        ' and the calendar "night" is closed until 2027-01-06 07:00:00 UTC.'
    )
    spread = make_job(Cron("0 6 * * *", spread=HOUR))
    [fact] = explain(asked("2027-01-06 06:00", spread)).facts
    assert "its spread adds " in fact
    assert "closed" not in fact


def test_an_instant_ahead_without_a_planned_time_says_that_the_job_is_stopped() -> None:
    until = at("2027-01-06 18:00")
    paused: dict[str, Any] = {"status": JobStatus.PAUSED, "status_by": "ada", "paused_until": until}
    within = explain(asked("2027-01-06 12:34", **paused))
    assert within.verdict is Verdict.NOT_PLANNED
    assert any(fact.startswith("Now the job is paused until") for fact in within.facts)
    after = explain(asked("2027-01-07 12:34", **paused))
    assert not any("paused" in fact for fact in after.facts)


def test_of_times_deferred_to_one_instant_only_the_newest_will_run() -> None:
    job = make_job(Cron("0 * * * *"), window=Window(time(8), time(20)))
    older = explain(asked("2027-01-06 06:00", job))
    assert older.verdict is Verdict.WILL_NOT_RUN
    assert "gives way to the newer planned time of 2027-01-06 08:00:00 UTC" in older.sentence
    assert "its window is closed until 2027-01-06 08:00:00 UTC" in older.sentence
    assert explain(asked("2027-01-06 08:00", job)).verdict is Verdict.WILL_RUN


def test_a_stopped_job_says_by_whom_since_when_until_when_and_why() -> None:
    reported = explain(
        asked(
            "2027-01-06 11:00",
            make_job(Cron("0 11 * * *")),
            status=JobStatus.PAUSED,
            status_by="ada",
            status_at=at("10:00"),
            status_reason="lunch",
            paused_until=at("2027-01-07 00:00"),
        )
    )
    assert reported.sentence.endswith("the job is paused until 2027-01-07 00:00:00 UTC by ada (lunch).")
    assert reported.facts == (f"It is paused since {at('10:00'):%Y-%m-%d} 10:00:00 UTC.",)
    assert reported.next_step == "Resume it."


FREEZE = Freeze(FreezeId(make_uuid(1)), at("2027-01-06 00:00"), reason="release day")


@pytest.mark.parametrize(
    ("job", "about", "because"),
    [
        (BOGOTA, {"status": JobStatus.PAUSED}, "the job is paused"),
        (BOGOTA, {"status": JobStatus.COMPLETED}, "the job is completed"),
        (BOGOTA, {"freezes": (FREEZE,)}, "a freeze is in force (release day)"),
        (BOGOTA, {"skip_next": True}, "a person asked to skip it"),
        (make_job(Cron("0 11 * * *"), max_runs=3), {"runs_created": 3}, "max_runs (3) is reached"),
        (
            make_job(Cron("0 11 * * *"), window=Window(time(20), time(22), otherwise=Otherwise.SKIP)),
            {},
            "outside the job's window",
        ),
    ],
)
def test_a_future_time_that_will_not_run_says_why_and_what_to_do(
    job: Job, about: dict[str, Any], because: str
) -> None:
    reported = explain(asked("2027-01-06 11:00", job, **about))
    assert reported.verdict is Verdict.WILL_NOT_RUN
    assert because in reported.sentence
    assert reported.next_step


def test_skip_next_touches_only_the_next_time() -> None:
    assert explain(asked("2027-01-07 11:00", skip_next=True)).verdict is Verdict.WILL_RUN


def test_skip_next_lasts_through_the_time_it_names() -> None:
    until = at("2027-01-07 11:00")
    for day, verdict in ((6, Verdict.WILL_NOT_RUN), (7, Verdict.WILL_NOT_RUN), (8, Verdict.WILL_RUN)):
        assert explain(asked(f"2027-01-{day:02} 11:00", skip_next=True, skip_until=until)).verdict is verdict


def test_max_runs_lets_through_as_many_times_as_are_left() -> None:
    job = make_job(Cron("0 11 * * *"), max_runs=3)
    for day, verdict in ((6, Verdict.WILL_RUN), (7, Verdict.WILL_RUN), (8, Verdict.WILL_NOT_RUN)):
        assert explain(asked(f"2027-01-{day:02} 11:00", job, runs_created=1)).verdict is verdict


def test_a_time_at_the_end_of_a_pause_passes_in_it() -> None:
    until = at("2027-01-07 11:00")
    for day, verdict in ((6, Verdict.WILL_NOT_RUN), (7, Verdict.WILL_NOT_RUN), (8, Verdict.WILL_RUN)):
        assert (
            explain(asked(f"2027-01-{day:02} 11:00", status=JobStatus.PAUSED, paused_until=until)).verdict
            is verdict
        )


def test_a_planned_time_without_a_record_says_so() -> None:
    assert explain(asked("11:00")).verdict is Verdict.UNRECORDED
    assert "paused" in explain(asked("11:00", status=JobStatus.PAUSED)).sentence
    assert explain(asked("11:00", now=at("11:00:02"))).verdict is Verdict.WILL_RUN


def test_jobs_without_times_of_their_own_name_what_they_wait_for() -> None:
    chained = make_job(Interval(HOUR, at("00:00"), IntervalMode.FIXED_DELAY))
    assert "waits for run 12" in explain(asked("15:00", chained, waits_for="run 12")).sentence
    assert "waits for the end of its live run" in explain(asked("15:00", chained)).sentence
    assert "upstream" in explain(asked("15:00", make_job(Manual()))).sentence


@pytest.mark.parametrize("waits_for", WaitsFor)
def test_a_waiting_run_says_what_it_waits_for_and_its_place(waits_for: WaitsFor) -> None:
    reported = explain_record(
        BOGOTA, a_record(RunStatus.WAITING), QueuePosition(waits_for, 2, 5, "run 11", at("12:00"))
    )
    assert reported.verdict is Verdict.WAITING
    assert "(run 11)" in reported.sentence
    assert "number 2 of 5 in line" in reported.sentence
    assert "2027-01-05 07:00:00 America/Bogota" in reported.sentence
    assert reported.next_step


def test_a_run_that_waits_for_its_retry_says_when() -> None:
    reported = explain_record(BOGOTA, a_record(RunStatus.READY, attempt_count=1, retry_at=at("11:05")))
    assert (
        reported.sentence == "Run 12 waits for attempt 2 at 2027-01-05 06:05:00 America/Bogota (UTC-05:00)."
    )


def test_ready_and_running_runs_say_where_they_are() -> None:
    assert "waits for a worker" in explain_record(BOGOTA, a_record(RunStatus.READY)).sentence
    running = explain_record(BOGOTA, a_record(RunStatus.RUNNING, started_at=at("11:00"), attempt_count=1))
    assert running.verdict is Verdict.RUNNING
