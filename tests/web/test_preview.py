"""Previews: what a schedule means and when it fires, with nothing kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import ApiHarness, problems

pytestmark = pytest.mark.anyio


async def test_words_become_a_sentence_a_schedule_and_times(shared_api: ApiHarness) -> None:
    answer = await shared_api.request(
        "POST",
        "/preview",
        role="viewer",
        params={"n": 2},
        json={"words": "every weekday at 9am", "timezone": "America/New_York"},
    )
    found = answer.json()
    assert answer.status_code == 200
    assert found["words"] == found["schedule"]["words"] == "Every weekday at 09:00, America/New_York"
    assert found["schedule"]["expr"] == "0 9 * * 1-5"
    assert [each["planned_for"] for each in found["items"]] == [
        "2027-01-15T14:00:00Z",
        "2027-01-18T14:00:00Z",
    ]
    assert (found["notes"], found["warnings"]) == ([], [])
    assert (await shared_api.request("GET", "/jobs")).json()["items"] == []


async def test_clock_changes_are_reported(shared_api: ApiHarness) -> None:
    answer = await shared_api.request(
        "POST",
        "/preview",
        params={"n": 1, "after": "2027-03-13T12:00:00Z"},
        json={"kind": "cron", "expr": "30 2 * * *", "timezone": "America/New_York"},
    )
    assert "does not exist in America/New_York" in answer.json()["notes"][0]


@pytest.mark.parametrize(
    ("expr", "word"),
    [("0 9 13 * 5", "day_match"), ("* 2 * * *", "every minute"), ("0 0 31 * *", "passed over")],
)
async def test_what_is_often_not_meant_is_a_warning(shared_api: ApiHarness, expr: str, word: str) -> None:
    (warning,) = (await shared_api.request("POST", "/preview", json={"kind": "cron", "expr": expr})).json()[
        "warnings"
    ]
    assert word in warning


@pytest.mark.parametrize(
    ("schedule", "pointer"),
    [
        ({"kind": "cron", "expr": "0 25 * * *"}, "/expr"),
        ({"kind": "cron", "expr": "0 9 30 2 *"}, "/expr"),
        ({"kind": "cron", "expr": "* * * * *", "timezone": "Europe/Pariss"}, "/timezone"),
        ({"kind": "interval", "every": "10ms"}, "/every"),
        ({"kind": "interval"}, "/every"),
        ({"kind": "cron", "expr": "* * * * *", "every": "1m"}, "/every"),
        ({"kind": "fortnightly"}, ""),
        ({}, ""),
        ("every day", ""),
    ],
)
async def test_a_schedule_that_cannot_be_is_refused_where_it_is_wrong(
    shared_api: ApiHarness, schedule: Any, pointer: str
) -> None:
    answer = await shared_api.request("POST", "/preview", json=schedule)
    assert (answer.status_code, list(problems(answer))) == (422, [pointer])


async def test_an_instant_without_an_offset_is_refused(shared_api: ApiHarness) -> None:
    answer = await shared_api.request(
        "POST", "/preview", params={"after": "2027-03-13T12:00:00"}, json={"words": "hourly"}
    )
    assert (answer.status_code, list(problems(answer))) == (422, ["/after"])
