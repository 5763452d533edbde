"""What people see, at a fixed width: from shapes made in the test, without a server."""

from __future__ import annotations

import typing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from rich.text import Text

from foliot.cli.events import event_line
from foliot.cli.jobs.edit import change_table
from foliot.cli.jobs.views import created_page, job_list, job_page, planned_time_table
from foliot.cli.output import pluralize
from foliot.cli.runs import run_table
from foliot.cli.tables import Column, Table, render
from foliot.cli.times import (
    format_duration,
    local_time,
    parse_past_stretch,
    parse_past_time,
    parse_time,
    relative_short,
)
from foliot.domain import lifecycle
from foliot.domain.errors import Invalid
from foliot.sdk.sync.plan import JobChange
from foliot.wire.audit import EventOut
from foliot.wire.jobs import JobOut, JobStatus
from foliot.wire.runs import RunOut, RunStatus
from foliot.wire.schedules import PlannedOut

NOW = datetime(2027, 3, 13, 12, 0, tzinfo=UTC)
CRON = {
    "kind": "cron",
    "expr": "*/30 * * * *",
    "timezone": "UTC",
    "words": "Every 30 minutes by the clock, UTC",
}
EVERY = {"kind": "interval", "every": "5m", "timezone": "UTC", "words": "Every 5 minutes"}


def job(number: int, name: str, **fields: Any) -> JobOut:
    base = {
        "id": f"0192f0c1-{number:04}-7c4d-8e5f-60718293a4b5",
        "name": name,
        "type": "http",
        "status": "active",
        "status_reason": None,
        "status_at": NOW,
        "paused_until": None,
        "next_run_at": NOW + timedelta(minutes=28),
        "schedule": CRON,
        "owner": None,
        "owner_name": None,
        "enabled": True,
        **dict.fromkeys(("fire_count", "run_count", "success_count", "failure_count"), 1),
        **dict.fromkeys(("skip_count", "consecutive_failures"), 0),
        "last_fire_at": None,
        "last_run_at": NOW - timedelta(minutes=2),
        "last_run_id": None,
        "last_run_status": "succeeded",
        "last_error": None,
        "revision": 1,
        "created_by": "x",
        "created_at": NOW,
        "updated_at": NOW,
    }
    return JobOut.model_validate(base | fields, strict=False)


def paused() -> JobOut:
    return job(
        2,
        "Deploy Watch",
        status="paused",
        schedule=EVERY,
        next_run_at=None,
        status_reason="Paused after 5 failures in a row.",
        consecutive_failures=5,
        last_run_status="failed",
    )


def test_the_list_of_jobs_reads_as_a_person_would_tell_it() -> None:
    assert render(job_list([job(1, "Email Check"), paused()], NOW), 110) == (
        "Jobs (1 active, 1 paused):\n"
        "  ✓  Email Check   http  */30 * * * *  Last: 2 m ago (succeeded)        Next: in 28 m  0192f0c1-0001\n"
        "  ‖  Deploy Watch  http  every 5m      Paused (5 consecutive failures)                 0192f0c1-0002"
    )


def test_a_job_whose_first_run_is_retried_has_not_never_run() -> None:
    retried = job(
        1, "Email Check", last_run_at=None, last_run_status=None, run_count=0, failed_attempt_count=2
    )
    shown = render(job_list([retried], NOW), 110).splitlines()[1]
    assert shown.startswith("  ✗  Email Check")
    assert "Retrying (2 failed attempts)" in shown
    page = render(job_page(retried, NOW), 110)
    assert "no run has ended yet; 0 skipped; 2 failed attempts" in page


@pytest.mark.requirement("S4-CLI-5")
def test_the_list_shows_who_owns_each_job() -> None:
    jobs = [job(1, "Email Check", owner_name="frank"), job(2, "Deploy Watch")]
    assert render(job_list(jobs, NOW), 120).splitlines()[1:] == [
        "  ✓  Email Check   frank  http  */30 * * * *  Last: 2 m ago (succeeded)  Next: in 28 m  0192f0c1-0001",
        "  ✓  Deploy Watch         http  */30 * * * *  Last: 2 m ago (succeeded)  Next: in 28 m  0192f0c1-0002",
    ]


def test_what_stands_in_the_way_of_a_new_jobs_runs_is_said_at_once() -> None:
    reported = render(created_page(job(1, "backup", warnings=["No live worker serves it."]), NOW), width=100)
    assert reported.splitlines()[-1].strip() == "Note: No live worker serves it."


def test_upstream_jobs_and_calendars_are_shown_by_name() -> None:
    extract, holidays = UUID(int=1), UUID(int=2)
    found = job(1, "load", depends_on=[{"job": extract, "delay": "5m"}], calendars=[holidays])
    page = render(job_page(found, NOW, names={extract: "extract", holidays: "Holidays"}), 120)
    assert "extract (success, trigger, delay 5m)" in page
    assert "Holidays" in page
    assert str(extract) not in page


def test_a_narrow_terminal_loses_columns_before_words_are_broken() -> None:
    shown = render(job_list([job(1, "Email Check"), paused()], NOW), 80)
    assert "0192f0c1" not in shown
    assert "  ✓  Email Check   */30 * * * *  Last: 2 m ago (succeeded)" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    jobs = [job(1, "a name that goes on and on, " * 5), paused(), job(3, "界" * 40)]
    for line in render(job_list(jobs, NOW), width).splitlines():
        assert Text(line).cell_len <= width


def test_names_are_never_read_as_markup_or_escapes() -> None:
    shown = render(
        job_list([job(1, "x").model_copy(update={"name": "[red]x[/red] \x1b[2J :smile:"})], NOW),
        120,
        colour=True,
    )
    assert "[red]x[/red] \\x1b[2J :smile:" in shown
    assert "\x1b[2J" not in shown


def test_without_utf_8_the_marks_are_plain() -> None:
    assert render(job_list([job(1, "x")], NOW), 80, ascii_marks=True).isascii()


def test_next_times_are_reported_on_the_jobs_own_clock_from_now_and_in_utc() -> None:
    at = datetime(2027, 3, 14, 13, 0, tzinfo=UTC)
    times = [
        PlannedOut(planned_for=at, planned_local=datetime(2027, 3, 14, 9, 0), notes=["Clocks went forward."])
    ]
    assert render(planned_time_table(times, "America/New_York", NOW), 110) == (
        "NEXT                       IN          UTC                NOTE\n"
        "Sun 14 Mar 2027 09:00 EDT  in 1 d 1 h  2027-03-14T13:00Z  Clocks went forward."
    )


def test_runs_are_called_as_the_commands_take_them() -> None:
    run = RunOut.model_construct(
        id=UUID(int=1),
        job_id=UUID(int=2),
        job_name="hello",
        number=12,
        status="skipped",
        skip_reason="overlap",
        note=None,
        trigger="schedule",
        planned_for=NOW - timedelta(hours=3),
        planned_local=datetime(2027, 3, 13, 9, 0),
        planned_until=None,
        count=None,
        duration_ms=None,
        error=None,
        attempt_count=0,
    )
    last = render(run_table([run], NOW), 100).splitlines()[-1]
    assert last.startswith("hello#12  Sat 13 Mar 09:00  3 h ago  ○ skipped (overlap)")


def test_seconds_are_shown_everywhere_in_a_table_or_nowhere() -> None:
    times = [
        PlannedOut.model_construct(planned_for=NOW + timedelta(seconds=each), notes=[]) for each in (2, 60)
    ]
    uneven = render(planned_time_table(times, "UTC", NOW), 100)
    assert "12:00:02 UTC" in uneven
    assert "12:01:00 UTC" in uneven
    assert "12:01:00Z" in uneven
    even = render(planned_time_table(times[1:], "UTC", NOW), 100)
    assert "12:01 UTC" in even
    assert "12:01Z" in even


def test_an_event_is_one_line() -> None:
    event = EventOut.model_construct(
        id="1",
        kind="run.failed",
        at=NOW,
        object_id=None,
        job_id=None,
        job_name="hello",
        run_id=None,
        number=12,
        planned_for=None,
        attempt=2,
        skip_reason=None,
        error_code="http_status",
        actor="7",
    )
    shown = render(event_line(event, {"7": "Ada"}, "UTC"), 80)
    assert shown == "12:00:00  run.failed         hello#12  (http_status, attempt 2, by Ada)"


def test_numbers_have_separators_and_one_is_not_several() -> None:
    assert [pluralize(each, "run") for each in (0, 1, 43_200)] == ["0 runs", "1 run", "43,200 runs"]


def test_a_change_shows_old_and_new_and_not_what_follows_from_it() -> None:
    changes = [
        JobChange("/schedule/every", "5s", "7s"),
        JobChange("/schedule/anchor", "x", "y"),
        JobChange("/schedule/words", "x", "y"),
    ]
    assert render(change_table(changes), 80) == "  /schedule/every  5s  ->  7s"


def test_a_list_without_rows_and_columns_that_fit_stay_whole() -> None:
    columns: list[Column[tuple[str, str]]] = [
        Column("NAME", lambda row: row[0], drop=1),
        Column("WHAT", lambda row: row[1], wrap=True),
    ]
    table = Table(columns, [("a", "one two three")])
    assert render(table, 40) == "NAME  WHAT\na     one two three"


@pytest.mark.parametrize(
    ("text", "past", "wanted"),
    [
        ("2027-01-02T18:00:00-03:00", False, "2027-01-02T21:00:00"),
        ("2027-07-02 18:00", False, "2027-07-02T16:00:00"),
        ("2h", False, "2027-03-13T14:00:00"),
        ("1h30m", True, "2027-03-13T10:30:00"),
        ("-1d", False, "2027-03-12T12:00:00"),
        ("2h ago", False, "2027-03-13T10:00:00"),
        ("09:00", False, "2027-03-14T08:00:00"),
        ("09:00", True, "2027-03-13T08:00:00"),
        ("now", False, "2027-03-13T12:00:00"),
        ("tomorrow at 9am", False, "2027-03-14T08:00:00"),
    ],
)
def test_times_in_flags_are_read_as_people_write_them(text: str, past: bool, wanted: str) -> None:
    found = parse_time(text, NOW, "Europe/Paris", flag="--at", past=past)
    assert found.replace(tzinfo=None).isoformat() == wanted


@pytest.mark.parametrize("text", ["every day at 9am", "soon", "25:00", ""])
def test_what_names_no_single_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_time(text, NOW, "Europe/Paris", flag="--until")
    assert caught.value.message.startswith("--until is not a time.")
    assert "tomorrow at 9am" in (caught.value.hint or "")


def test_distances_are_short_in_lists_and_have_two_units_elsewhere() -> None:
    assert relative_short(NOW - timedelta(seconds=12), NOW) == "12 s ago"
    assert relative_short(NOW + timedelta(hours=3, minutes=59), NOW) == "in 3 h"
    assert format_duration(timedelta(hours=4, minutes=12, seconds=9)) == "4 h 12 m"
    assert local_time(NOW, "Europe/Paris") == "Sat 13 Mar 2027 13:00 CET"


def test_the_words_of_flags_are_those_of_the_wire() -> None:
    assert [each.value for each in lifecycle.JobStatus] == list(typing.get_args(JobStatus))
    assert [each.value for each in lifecycle.RunStatus] == list(typing.get_args(RunStatus))


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("yesterday", "2027-01-04T23:00Z", "2027-01-05T23:00Z"),
        ("Last  night", "2027-01-05T17:00Z", "2027-01-06T05:00Z"),
        ("monday", "2027-01-03T23:00Z", "2027-01-04T23:00Z"),
        ("last wed", "2026-12-29T23:00Z", "2026-12-30T23:00Z"),
        ("this morning", "2027-01-05T23:00Z", "2027-01-06T11:00Z"),
    ],
)
def test_a_stretch_of_the_past_is_read_in_the_zone_of_the_job(text: str, start: str, end: str) -> None:
    now = datetime(2027, 1, 6, 15, tzinfo=UTC)  # a Wednesday
    found = parse_past_stretch(text, now, "Europe/Paris")
    assert found == (datetime.fromisoformat(start), datetime.fromisoformat(end))


def test_a_day_of_the_past_with_a_time_is_an_instant() -> None:
    now = datetime(2027, 1, 6, 15, tzinfo=UTC)
    assert parse_past_time("yesterday at 14:30", now, "UTC") == datetime(2027, 1, 5, 14, 30, tzinfo=UTC)
    assert parse_past_time("last night 02:00", now, "UTC") == datetime(2027, 1, 6, 2, tzinfo=UTC)
    assert parse_past_time("every monday", now, "UTC") is None
