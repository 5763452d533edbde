"""The table "Cron from elsewhere" of docs/how-to/schedules.md, held against croniter: where it reads day fields as Foliot does, and where not."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from croniter import croniter

from foliot.domain.schedule import Cron, DayMatch, Timetable, preview

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "schedules.md"
ROW = re.compile(r"^\| `(0 0 [^`]+)`(?: with `day_match: and`)? \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)
TIMES = 60


def foliot(expression: str, **fields: Any) -> list[datetime]:
    found = preview(Timetable(Cron(expression, "UTC", **fields)), NOON, TIMES)
    return [each.planned_for for each in found]


def peer(expression: str, **options: Any) -> list[datetime]:
    times = croniter(expression, NOON, ret_type=datetime, **options)
    return [times.get_next() for _ in range(TIMES)]


def test_the_page_has_a_row_for_each_kind() -> None:
    assert len(ROW.findall(PAGE.read_text())) == 4


@pytest.mark.parametrize("expression", ["0 0 13 * FRI", "0 0 1-31/2 * MON", "0 0 1-7 * MON", "0 0 * * MON"])
def test_croniter_names_the_same_days(expression: str) -> None:
    assert foliot(expression) == peer(expression)


@pytest.mark.parametrize("expression", ["0 0 */2 * MON", "0 0 13 * */2"])
def test_a_day_field_that_begins_with_a_star_is_read_differently(expression: str) -> None:
    assert foliot(expression) != peer(expression), "one of both days"
    assert foliot(expression) == peer(expression, day_or=False), "both days"


def test_croniter_has_an_option_for_both_days() -> None:
    assert foliot("0 0 13 * FRI", day_match=DayMatch.AND) == peer("0 0 13 * FRI", day_or=False)
