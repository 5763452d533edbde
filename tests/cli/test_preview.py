"""`foliot preview` from text to terminal, with the commands of the README."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.fork_server import run_foliot

FROM = ("--after", "2027-03-13T00:00:00Z")


def preview(*args: str) -> subprocess.CompletedProcess[str]:
    return run_foliot("preview", *args, cwd=Path.cwd())


def test_a_cron_expression_in_a_zone_is_said_and_listed() -> None:
    done = preview("0 9 * * 1-5", "--tz", "America/New_York", *FROM)
    assert (done.returncode, done.stderr) == (0, "")
    sentence, blank, heading, *rows = done.stdout.splitlines()
    assert sentence
    assert blank == ""
    assert heading.split() == ["LOCAL", "UTC", "FROM", "NOW"]
    assert len(rows) >= 5
    assert rows[0].startswith("Mon 15 Mar 2027 09:00 EDT  2027-03-15 13:00Z")
    assert rows[4].startswith("Fri 19 Mar 2027 09:00 EDT")


def test_words_are_read_too() -> None:
    done = preview("every other tuesday at 14:30")
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(line.startswith("Tue ") for line in done.stdout.splitlines()) == 5


def test_words_need_no_quotes_and_intervals_count_from_the_instant_given() -> None:
    done = preview("every", "10", "minutes", *FROM, "-n", "2", "-o", "json")
    assert [each["utc"] for each in json.loads(done.stdout)["times"]] == [
        "2027-03-13T00:10:00Z",
        "2027-03-13T00:20:00Z",
    ]


def test_no_time_has_fractions_of_a_second() -> None:
    done = preview("every 90 seconds", "-o", "json")
    assert all("." not in each["utc"] for each in json.loads(done.stdout)["times"])


def test_json_is_exact_and_after_is_exclusive() -> None:
    done = preview("0 0 * * *", "-n", "2", *FROM, "-o", "json")
    said = json.loads(done.stdout)
    assert list(said) == ["words", "times", "notes"]
    assert said["times"] == [
        {"local": "2027-03-14T00:00:00+00:00", "utc": "2027-03-14T00:00:00Z"},
        {"local": "2027-03-15T00:00:00+00:00", "utc": "2027-03-15T00:00:00Z"},
    ]


@pytest.mark.parametrize(
    ("gap", "first"),
    [
        ("next_valid", "2027-03-14T03:00:00-04:00"),
        ("shift", "2027-03-14T03:30:00-04:00"),
        ("skip", "2027-03-15T02:30:00-04:00"),
    ],
)
def test_the_rule_for_gaps_is_followed_and_noted(gap: str, first: str) -> None:
    done = preview(
        "30 2 * * *",
        "--tz",
        "America/New_York",
        "--after",
        "2027-03-14T00:00:00Z",
        "--gap",
        gap,
        "-o",
        "json",
    )
    said = json.loads(done.stdout)
    times = [each["local"] for each in said["times"]]
    assert first in times[:2]
    assert said["notes"]


def test_an_overlap_can_count_twice() -> None:
    done = preview(
        "30 1 * * *",
        "--tz",
        "America/New_York",
        "--after",
        "2026-11-01T00:00:00Z",
        "--overlap",
        "both",
        "-n",
        "2",
        "-o",
        "json",
    )
    assert [each["local"] for each in json.loads(done.stdout)["times"]] == [
        "2026-11-01T01:30:00-04:00",
        "2026-11-01T01:30:00-05:00",
    ]


def test_a_wrong_field_is_pointed_at() -> None:
    done = preview("0 25 * * *")
    assert (done.returncode, done.stdout) == (2, "")
    said, text, caret, *_ = done.stderr.splitlines()
    assert said.startswith("error[schedule.invalid]: ")
    assert (text, caret) == ("  0 25 * * *", "    ^^")


@pytest.mark.parametrize(
    "args",
    [
        ["0 9 * * *", "--tz", "Mars/Base"],
        ["every blue moon"],
        ["0 9 30 2 *"],
        [""],
        ["0 9 * * *", "--after", "soon"],
    ],
)
def test_what_cannot_be_read_is_a_usage_error_without_a_traceback(args: list[str]) -> None:
    done = preview(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error[")
    assert "Traceback" not in done.stderr


def test_a_cron_expression_that_the_shell_tore_apart_gets_a_hint() -> None:
    done = preview("0", "9", "LICENSE", "README.md", "1-5")
    assert done.returncode == 2
    assert "quotes" in done.stderr


def test_stars_that_became_file_names_get_the_hint_first() -> None:
    done = preview("ARCHITECTURE.md", "LICENSE", "README.md", "docs", "src")
    assert done.returncode == 2
    assert done.stderr.splitlines()[3].startswith("  Put a cron expression in quotes")


def test_misspelt_words_without_quotes_are_not_taken_for_a_torn_expression() -> None:
    assert "in quotes" not in preview("every", "10", "mintes").stderr


def test_a_change_of_the_clocks_far_down_the_list_is_noted() -> None:
    done = preview("*/5 2 * * *", "--tz", "America/New_York", "--after", "2027-01-15T00:00:00Z", "-n", "1000")
    assert "Note: Sun 14 Mar 2027 02:55 does not exist in America/New_York" in done.stdout


def test_a_schedule_that_is_often_a_mistake_or_means_another_thing_elsewhere_is_noted() -> None:
    stepped = preview("0 0 */2 * MON").stdout
    assert stepped.count("croniter and cron-parser run on days that match either") == 1
    assert "Note: It has a field for seconds" in preview("*/5 * * * * *", "--seconds").stdout
    moved = preview("30 2 * * *", "--tz", "Europe/Madrid", "--after", "2027-03-27T12:00:00Z").stdout
    assert moved.count("the clocks jump over it") == 1


def test_hashed_fields_are_shown_as_an_example() -> None:
    said = json.loads(preview("H 3 * * *", *FROM, "-n", "1", "-o", "json").stdout)
    minute = int(said["times"][0]["utc"][14:16])
    assert said["notes"] == [
        f"H stands for values that differ from job to job. These times show minute {minute}; a job has its own."
    ]


def test_a_start_at_the_end_of_the_calendar_is_reported() -> None:
    done = preview("0 9 * * *", "--after", "9999-12-31T00:00:00Z")
    assert done.returncode == 2
    assert "The calendar ends with the year 9990" in done.stderr
