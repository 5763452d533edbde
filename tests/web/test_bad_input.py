"""Whatever comes in: a 4xx that says what is wrong and where, never a 5xx."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
JSON = {"Content-Type": "application/json"}


def deep(levels: int) -> bytes:
    return b'{"name": ' + b"[" * levels + b"]" * levels + b"}"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "The body is not JSON"),
        (b"", 422, ""),
        (b"nonsense", 400, "line 1, column 1"),
        (b'{"name": NaN}', 400, "NaN is no number"),
        (b'{"name": -Infinity}', 400, "-Infinity is no number"),
        (b'{"name": 1e999}', 400, "too large for a number"),
        (b'{"name": ' + b"9" * 5000 + b"}", 400, "at most 1,000 digits"),
        (b'{"name": "a", "name": "b"}', 400, "'name' twice"),
        (b'{"config": {"a": 1, "a": 1}}', 400, "'a' twice"),
        (b'{"name": "\xff"}', 400, "not UTF-8"),
        (b"\xef\xbb\xbf{}", 400, "not JSON"),
        (b'{"name": "a\\u0000b"}', 422, "NUL"),
        (b'{"name": "a\x00b"}', 400, "not JSON"),
        (b'{"config": {"\\u0000": 1}}', 422, "NUL"),
        (b'{"name": "\\ud800"}', 422, "surrogate"),
        (deep(40), 400, "deeper than 32"),
        (deep(100_000), 400, "deeper than 32"),
        (b"[" * 500_000, 400, "deeper than 32"),
        (b'{"name": "' + b"x" * (1 << 20) + b'"}', 413, "larger than 1024 KiB"),
        (b"x" * 10_000_000, 413, "larger than 1024 KiB"),
        (b"[]", 422, ""),
        (b'"text"', 422, ""),
        (b"null", 422, ""),
        (b"1", 422, ""),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused_with_the_reason(
    shared_api: ApiHarness, body: bytes, status: int, said: str
) -> None:
    answer = await shared_api.request("POST", "/jobs", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]


async def test_a_body_without_its_length_is_cut_off_at_the_bound(shared_api: ApiHarness) -> None:
    sent = 0

    async def endless() -> Any:
        nonlocal sent
        while True:
            sent += 65_536
            yield b" " * 65_536

    answer = await shared_api.request("POST", "/jobs", content=endless(), headers=JSON)
    assert answer.status_code == 413
    assert sent < 2 << 20


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/xml"])
async def test_another_type_than_json_is_refused_with_a_hint(shared_api: ApiHarness, kind: str) -> None:
    answer = await shared_api.request(
        "POST", "/jobs", content=json.dumps(job()), headers={"Content-Type": kind}
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert "--json" in answer.json()["errors"][0]["hint"]


async def test_brackets_inside_text_are_not_depth(api: ApiHarness) -> None:
    assert (await api.create_job(payload={"text": '[{\\"' * 200}))["payload"] == {"text": '[{\\"' * 200}


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, {"/name"}),
        ({"name": "   "}, {"/name"}),
        ({"name": "x" * 256}, {"/name"}),
        ({"name": 7}, {"/name"}),
        ({"name": None}, {"/name"}),
        ({"type": "No Such Type"}, {"/type"}),
        ({"schedule": None}, {"/schedule"}),
        ({"schedule": []}, {"/schedule"}),
        ({"schedule": {"kind": 7}}, {"/schedule"}),
        ({"schedule": {"kind": "cron", "expr": "*/0 * * * *"}}, {"/schedule/expr"}),
        ({"schedule": {"kind": "cron", "expr": "x" * 257}}, {"/schedule/expr"}),
        ({"schedule": {"kind": "cron", "expr": "0 0 30 2 *"}}, {"/schedule/expr"}),
        ({"schedule": {"kind": "interval", "every": "0s"}}, {"/schedule/every"}),
        ({"schedule": {"kind": "interval", "every": "-5m"}}, {"/schedule/every"}),
        ({"schedule": {"kind": "interval", "every": 600}}, {"/schedule/every"}),
        ({"schedule": {"kind": "interval", "every": "1y"}}, {"/schedule/every"}),
        ({"schedule": {"kind": "interval", "every": "999999999w"}}, {"/schedule/every"}),
        ({"schedule": {"kind": "once", "at": "2027-01-01"}}, {"/schedule/at"}),
        ({"schedule": {"kind": "once", "at": "2027-01-01T00:00:00Z"}}, {"/schedule/at"}),
        ({"schedule": {"kind": "once", "at": "2027-02-30T00:00:00Z"}}, {"/schedule/at"}),
        ({"schedule": {"kind": "once", "at": "9999-12-31T23:59:59-14:00"}}, {"/schedule/at"}),
        ({"schedule": {"kind": "once", "at": "0001-01-01T00:00:00+14:00"}}, {"/schedule/at"}),
        ({"schedule": {"kind": "cron", "expr": "* * * * *", "anchor": "0001-01-01"}}, {"/schedule/anchor"}),
        ({"schedule": {"kind": "interval", "every": "1h", "spread": "2d"}}, {"/schedule/spread"}),
        ({"schedule": {"words": "sometimes"}}, {"/schedule/words"}),
        ({"schedule": {"words": "every day at 9am", "expr": "0 9 * * *"}}, {"/schedule/expr"}),
        ({"schedule": {"words": "hourly", "timezone": "Mars/Olympus"}}, {"/schedule/timezone"}),
        ({"timeout": "soon"}, {"/timeout"}),
        ({"timeout": "0s"}, {"/timeout"}),
        ({"grace": "700d"}, {"/grace"}),
        ({"max_runs": 0}, {"/max_runs"}),
        ({"max_runs": 1e10}, {"/max_runs"}),
        ({"max_runs": True}, {"/max_runs"}),
        ({"retry": {"strategy": "list", "delays": []}}, {"/retry/delays"}),
        ({"retry": {"delays": ["5m", "400d"]}}, {"/retry/delays/1"}),
        ({"retry": {"jitter": 2}}, {"/retry/jitter"}),
        ({"retry": 3}, {"/retry"}),
        ({"window": {"start": "25:00", "end": "9am"}}, {"/window/start", "/window/end"}),
        ({"window": {"start": "09:00", "end": "10:00", "days": []}}, {"/window/days"}),
        ({"window": {"start": "09:00", "end": "10:00", "days": ["Monday"]}}, {"/window/days/0"}),
        ({"end_at": "2027-01-01T00:00:00Z"}, {"/end_at"}),
        ({"start_at": "2027-03-02T00:00:00Z", "end_at": "2027-03-01T00:00:00Z"}, {"/end_at"}),
        ({"calendars": ["weekends"]}, {"/calendars/0"}),
        ({"calendars": ["0192f0c1-2b3a-7c4d-8e5f-60718293a4b5"]}, {"/calendars/0"}),
        ({"depends_on": [{"job": 7}]}, {"/depends_on/0/job"}),
        ({"depends_on": [{"job": "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5"}]}, {"/depends_on/0/mode"}),
        (
            {"depends_on": [{"job": "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5", "mode": "gate"}]},
            {"/depends_on/0/job"},
        ),
        ({"tags": ["ok", ""]}, {"/tags/1"}),
        ({"tags": "billing"}, {"/tags"}),
        ({"payload": []}, {"/payload"}),
        ({"payload": {"x": "y" * 300_000}}, {"/payload"}),
        ({"priority": 40_000}, {"/priority"}),
        ({"enabled": "yes"}, {"/enabled"}),
    ],
)
async def test_a_field_that_cannot_be_is_named(
    shared_api: ApiHarness, fields: dict[str, Any], wrong: set[str]
) -> None:
    answer = await shared_api.request("POST", "/jobs", json=job(**fields))
    assert (answer.status_code, set(problems(answer))) == (422, wrong), answer.text
    assert (await shared_api.request("GET", "/jobs")).json()["items"] == []


async def test_all_that_is_wrong_with_the_shape_is_reported_at_once(shared_api: ApiHarness) -> None:
    answer = await shared_api.request(
        "POST",
        "/jobs",
        json={"type": 7, "schedule": {"kind": "interval"}, "overlap": "skp", "retry": {"maxx": 1}},
    )
    reported = {each["pointer"]: each for each in answer.json()["errors"]}
    assert answer.json()["detail"] == "5 fields are not as they should be."
    assert set(reported) == {"/name", "/type", "/schedule/every", "/overlap", "/retry/maxx"}
    assert reported["/type"]["message"] == "This must be text, not a number."
    assert reported["/overlap"]["hint"] == 'Did you mean "skip"?'
    assert reported["/retry/maxx"]["hint"] == 'Did you mean "max"?'


async def test_all_that_is_wrong_with_the_meaning_is_reported_at_once(shared_api: ApiHarness) -> None:
    answer = await shared_api.request(
        "POST",
        "/jobs",
        json=job(
            schedule={"kind": "cron", "expr": "0 25 * * *"},
            timeout="0s",
            end_at="2020-01-01T00:00:00Z",
            retry={"delays": []},
        ),
    )
    assert answer.status_code == 422
    assert set(problems(answer)) == {"/schedule/expr", "/timeout", "/end_at", "/retry/delays"}


@pytest.mark.parametrize(
    ("unknown", "hint"),
    [
        ("shedule", 'Did you mean "schedule"?'),
        ("Timeout", 'Did you mean "timeout"?'),
        ("id", None),
        ("status", None),
        ("next_run_at", None),
        ("workspace_id", None),
        ("owner_id", None),
        ("created_by", None),
        ("revision", None),
    ],
)
async def test_what_a_client_may_not_set_is_refused_as_unknown(
    shared_api: ApiHarness, unknown: str, hint: str | None
) -> None:
    answer = await shared_api.request("POST", "/jobs", json=job(**{unknown: "x"}))
    (reported,) = answer.json()["errors"]
    assert (answer.status_code, reported["pointer"]) == (422, f"/{unknown}")
    assert reported["message"] == f'There is no field "{unknown}" here.'
    if hint is not None:
        assert reported["hint"] == hint


async def test_odd_but_sound_text_is_kept_as_it_is(api: ApiHarness) -> None:
    odd = "\u202e<script>{}\\'; DROP TABLE jobs; -- \U0001f600 \x7f\x1b[31m %s %(name)s"
    one_line = odd.replace("\x7f\x1b", "")
    made = await api.create_job(
        name=one_line, description=odd, payload={odd: [odd, 0.1, 10**900]}, tags=["a~b/c"]
    )
    assert (made["name"], made["description"]) == (one_line, odd)
    assert made["payload"] == {odd: [odd, 0.1, 10**900]}
    refused = await api.request("POST", "/jobs", json=job(name=odd))
    assert problems(refused) == {"/name": "A name must be on one line and have a visible character."}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/jobs/bulk", {"q": "", "action": "pause", "expected_count": 0}),
        ("POST", "/jobs/batch-delete", {"q": "", "expected_count": 0}),
    ],
)
async def test_a_dry_run_of_what_cannot_be_tried_so_does_nothing(
    api: ApiHarness, method: str, path: str, body: dict[str, Any]
) -> None:
    answer = await api.request(method, path, params={"dry_run": "true"}, json=body, role="admin")
    assert problems(answer) == {"/dry_run": 'There is no parameter "dry_run" here.'}
    assert "Nothing was done." in answer.json()["errors"][0]["hint"]


async def test_unknown_parameters_are_refused_with_what_was_meant(api: ApiHarness) -> None:
    answer = await api.request("GET", "/jobs", params={"stauts": "failed", "nonsense": "1"})
    assert set(problems(answer)) == {"/stauts", "/nonsense"}
    assert answer.json()["errors"][0]["hint"] == 'Did you mean "status"?'
