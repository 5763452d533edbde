"""Definitions survive the way to the database and back, and equal specs are equal text."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

import pytest

from foliot.domain.definition import Definition, Spec
from foliot.domain.dependencies import Edge, EdgeCondition, EdgeMode
from foliot.domain.ids import CalendarId, JobId
from foliot.domain.policy import Backoff, Breaker, Limits, Misfire, MisfireRule, Overlap, OverlapRule, Retry
from foliot.domain.schedule import (
    Absolute,
    Calendar,
    CalendarKind,
    Cron,
    DayMatch,
    Gap,
    Interval,
    IntervalMode,
    Manual,
    Once,
    OverlapTime,
    Weekly,
    Window,
)
from foliot.storage.codec import decode, encode
from foliot.storage.jobs.definitions import definition_json, definition_of, rules_of, spec_text

NOW = datetime(2026, 11, 15, 10, 0, 0, 5, tzinfo=UTC)

SPECS = [
    Spec(Cron("0 6 * * *"), "http"),
    Spec(
        Cron(
            "0 6 * * 2",
            "Europe/Paris",
            True,
            DayMatch.AND,
            2,
            date(2026, 11, 17),
            Gap.SHIFT,
            OverlapTime.BOTH,
            timedelta(minutes=2),
        ),
        "python",
        queue="mail",
        priority=-3,
        concurrency_key="db",
        tags=("billing", "nightly"),
        start_at=NOW,
        end_at=NOW + timedelta(days=3),
        max_runs=7,
        window=Window(time(22), time(4, 30), frozenset((0, 4))),
        calendars=(CalendarId(UUID(int=7)),),
        retry=Retry(
            5, Backoff.EXPONENTIAL, (), timedelta(seconds=2.5), timedelta(minutes=10), 0.1, past_next=True
        ),
        overlap=Overlap(OverlapRule.QUEUE, 3),
        misfire=Misfire(MisfireRule.ALL, timedelta(hours=1), 4),
        breaker=Breaker(2),
        limits=Limits(timedelta(seconds=90), timedelta(hours=2)),
    ),
    Spec(Interval(timedelta(seconds=30), NOW, IntervalMode.FIXED_DELAY), "python"),
    Spec(Once(NOW, "Asia/Tokyo"), "python"),
    Spec(Manual(), "python"),
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_comes_back_as_it_was(spec: Spec) -> None:
    assert rules_of(spec_text(spec)).spec == spec


def test_a_plain_spec_is_short_text() -> None:
    assert spec_text(SPECS[0]) == '{"schedule":{"expr":"0 6 * * *","kind":"cron"},"type":"http"}'


def test_equal_specs_share_one_value() -> None:
    assert rules_of(spec_text(Spec(Cron("1 6 * * *"), "http"))) is rules_of(
        spec_text(Spec(Cron("1 6 * * *"), "http"))
    )


def test_a_definition_comes_back_as_it_was() -> None:
    definition = Definition(
        "daily sync",
        SPECS[1],
        "Brings the day's orders over.",
        {"url": "https://example.test", "headers": {"x": [1, None, True]}},
        {"full": True},
        depends_on=(Edge(JobId(UUID(int=3)), EdgeCondition.ANY, EdgeMode.GATE, max_age=timedelta(hours=3)),),
        external_ref={"source": "crontab", "id": "7"},
    )
    assert definition_of(json.loads(json.dumps(definition_json(definition)))) == definition


def test_a_field_called_kind_is_not_taken_for_the_tag_of_a_union() -> None:
    calendar = Calendar(
        "nights", CalendarKind.ALLOW, (Weekly(time(22), time(4)), Absolute(NOW, NOW + timedelta(1)))
    )
    assert decode(Calendar, json.loads(json.dumps(encode(calendar)))) == calendar
