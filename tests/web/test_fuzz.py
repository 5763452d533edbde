"""Any JSON at all, and jobs with one part replaced by it: never a 5xx, and what was accepted can be read back."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "0 9 * * *", "@daily", "H H * * *", "every weekday at 9am", "in 2 hours", "10m", "PT10M", "1s", "0s", "100000w",
            "2027-06-01T00:00:00Z", "8999-12-31T23:59:59+14:00", "1970-01-01T00:00:00Z", "Europe/Paris", "Asia/Kolkata", "09:00",
            "23:59:59", "2027-01-02", "mon", "list", "exponential", "fixed_delay", "skip", "both", "and", "default", "\u0000",
        ]
    ),
)  # fmt: skip
ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=8,
)
SCHEDULES: list[dict[str, Any]] = [
    {"kind": "cron", "expr": "0 9 * * *", "timezone": "UTC", "seconds": False, "day_match": "or", "every_n_weeks": 1,
     "anchor": None, "gap": "skip", "overlap_time": "first", "spread": "1m"},
    {"kind": "interval", "every": "10m", "mode": "fixed_rate", "anchor": None, "spread": "0s", "timezone": "UTC"},
    {"kind": "once", "at": "2027-06-01T00:00:00Z", "timezone": "UTC"},
    {"kind": "manual", "timezone": "UTC"},
    {"words": "every day at 9am", "timezone": "UTC", "seconds": False, "gap": "skip"},
]  # fmt: skip
FULL: dict[str, Any] = {
    "name": "x", "description": "", "type": "http", "config": {"url": "https://example.test"}, "payload": {}, "start_at": None, "end_at": None,
    "max_runs": 3, "window": {"start": "09:00", "end": "17:00", "days": ["mon"], "otherwise": "defer"},
    "retry": {"max": 1, "strategy": "list", "delays": ["5m"], "base": "1m", "cap": None, "jitter": 0.5, "past_next": False},
    "overlap": "skip", "max_queued": 1, "misfire": "all", "grace": "1m", "max_catch_up": 1, "timeout": "1m",
    "breaker": {"after": 1, "action": "pause"}, "start_deadline": "1m", "on_lost": "fail", "priority": 0, "queue": "default",
    "concurrency_key": "k", "retention": {"keep": "1d", "keep_last": 1, "mode": "any"}, "tags": ["t"], "external_ref": None,
    "enabled": True, "calendars": [], "depends_on": [], "depends_when": "any",
}  # fmt: skip


@st.composite
def jobs(draw: st.DrawFn) -> Any:
    """A whole job with one or two of its parts replaced."""
    whole = copy.deepcopy({**FULL, "schedule": draw(st.sampled_from(SCHEDULES))})
    for _ in range(draw(st.integers(1, 2))):
        place = whole
        name = draw(st.sampled_from(sorted(place)))
        if isinstance(place[name], dict) and place[name] and draw(st.booleans()):
            place = place[name]
            name = draw(st.sampled_from(sorted(place)))
        place[name] = draw(st.one_of(TEXTS, ANYTHING))
    return whole


def fuzzed(count: int) -> settings:
    return settings(
        examples(count),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@fuzzed(100)
@given(body=st.one_of(jobs(), ANYTHING))
async def test_a_job_is_made_or_refused_with_reasons(api: ApiHarness, body: Any) -> None:
    answer = await api.request("POST", "/jobs", json=body)
    assert answer.status_code in (201, 422), (body, answer.text)
    if answer.status_code == 422:
        assert answer.json()["detail"]
        return
    made = answer.json()
    read = (await api.request("GET", f"/jobs/{made['id']}")).json()
    assert read == {**made, "warnings": []}  # a writer also gets the warning that no worker does such jobs
    assert (await api.request("GET", f"/jobs/{made['id']}/next")).status_code == 200
    again = await api.request("POST", "/preview", json=made["schedule"])
    assert again.status_code == 200, (made["schedule"], again.text)
    assert again.json()["words"] == made["schedule"]["words"]


@fuzzed(100)
@given(body=st.one_of(st.sampled_from(SCHEDULES), ANYTHING, jobs().map(lambda job: job.get("schedule"))))
async def test_a_schedule_is_previewed_or_refused_with_reasons(api: ApiHarness, body: Any) -> None:
    answer = await api.request("POST", "/preview", json=body)
    assert answer.status_code in (200, 422), (body, answer.text)


@fuzzed(100)
@given(
    raw=st.one_of(st.binary(max_size=60), jobs().map(lambda job: json.dumps(job).encode()), st.just(b"{}")),
    at=st.integers(0, 400),
    byte=st.integers(0, 255),
)
async def test_bytes_are_never_too_odd(api: ApiHarness, raw: bytes, at: int, byte: int) -> None:
    broken = raw[:at] + bytes([byte]) + raw[at + 1 :]
    answer = await api.request("POST", "/jobs", content=broken, headers={"Content-Type": "application/json"})
    assert answer.status_code in (201, 400, 422), (broken, answer.text)
