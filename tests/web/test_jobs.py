"""Jobs by the API: made in every way a schedule can be said, read back, listed, and what they did."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.domain.access import Scope
from foliot.domain.ids import JobId
from foliot.services.jobs import job_search
from foliot.services.scheduling.tick import tick
from foliot.testing.clock import ManualClock
from foliot.web.mapping.jobs import job_out
from foliot.wire.jobs import JobOut
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
CANONICAL: dict[str, Any] = {
    "name": "daily sync",
    "type": "http",
    "config": {"url": "https://example.test/hook", "method": "POST"},
    "payload": {"full": True},
    "schedule": {"kind": "cron", "expr": "0 6 * * *", "timezone": "America/Argentina/Buenos_Aires"},
    "retry": {"max": 3, "strategy": "list", "delays": ["5m", "15m", "30m"]},
    "overlap": "skip",
    "timeout": "10m",
    "tags": ["billing"],
}


@pytest.mark.requirement("S0-14")
async def test_the_canonical_job_is_made_and_read_back_as_it_was_written(api: ApiHarness) -> None:
    answer = await api.request("POST", "/jobs", json=CANONICAL)
    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/api/v1/jobs/{made['id']}"
    assert answer.headers["etag"].startswith('"1-')
    assert {name: made[name] for name in CANONICAL if name not in ("schedule", "retry")} == {
        name: value for name, value in CANONICAL.items() if name not in ("schedule", "retry")
    }
    assert CANONICAL["schedule"].items() <= made["schedule"].items()
    assert CANONICAL["retry"].items() <= made["retry"].items()
    assert made["schedule"]["words"] == "Every day at 06:00, America/Argentina/Buenos_Aires"
    assert (made["status"], made["next_run_at"]) == ("active", "2027-01-16T09:00:00Z")
    assert (made["run_count"], made["revision"], made["created_at"]) == (0, 1, "2027-01-15T12:00:00Z")
    read = await api.request("GET", f"/jobs/{made['id']}")
    assert (read.status_code, read.json(), read.headers["etag"]) == (200, made, answer.headers["etag"])


@pytest.mark.requirement("S4-4")
@pytest.mark.parametrize(
    ("schedule", "kind", "next_run_at", "words"),
    [
        ({"kind": "interval", "every": "10m"}, "interval", "2027-01-15T12:10:00Z", "Every 10 minutes"),
        (
            {"kind": "interval", "every": "PT1H30M"},
            "interval",
            "2027-01-15T13:30:00Z",
            "Every 1 hour and 30 minutes",
        ),
        (
            {"kind": "once", "at": "2027-01-16T18:00:00-03:00"},
            "once",
            "2027-01-16T21:00:00Z",
            "Once on Saturday 16 January 2027 at 21:00, UTC",
        ),
        ({"kind": "manual"}, "manual", None, "Manually"),
        (
            {"words": "every weekday at 9am", "timezone": "Europe/Paris"},
            "cron",
            "2027-01-18T08:00:00Z",
            "Every weekday at 09:00, Europe/Paris",
        ),
        ({"words": "0 9 * * 1-5"}, "cron", "2027-01-18T09:00:00Z", "Every weekday at 09:00, UTC"),
        (
            {"words": "in 2 hours"},
            "once",
            "2027-01-15T14:00:00Z",
            "Once on Friday 15 January 2027 at 14:00, UTC",
        ),
        ({"words": "every 2 seconds"}, "interval", "2027-01-15T12:00:02Z", "Every 2 seconds"),
    ],
)
async def test_a_schedule_can_be_said_in_each_of_these_ways(
    api: ApiHarness, schedule: dict[str, Any], kind: str, next_run_at: str | None, words: str
) -> None:
    made = await api.create_job(schedule=schedule)
    assert (made["schedule"]["kind"], made["next_run_at"], made["schedule"]["words"]) == (
        kind,
        next_run_at,
        words,
    )


async def test_a_schedule_of_an_answer_can_be_sent_again(api: ApiHarness) -> None:
    first = await api.create_job(schedule={"words": "every other tuesday at 14:30", "timezone": "Asia/Tokyo"})
    again = await api.create_job(schedule=first["schedule"])
    assert again["schedule"] == first["schedule"]


async def test_words_that_contradict_the_fields_beside_them_are_refused(api: ApiHarness) -> None:
    schedule = {"kind": "interval", "every": "10m", "words": "every day at 9am"}
    answer = await api.request("POST", "/jobs", json=job(schedule=schedule))
    assert answer.status_code == 422
    assert list(problems(answer)) == ["/schedule/words"]


@pytest.mark.requirement("C-15")
async def test_a_schedule_without_a_zone_takes_the_workspace_s(api: ApiHarness, owner: Any) -> None:
    owner.execute("UPDATE foliot.workspaces SET default_timezone = 'Asia/Tokyo' WHERE slug = 'acme'")
    made = await api.create_job(schedule={"words": "every day at 9am"})
    assert (made["schedule"]["timezone"], made["next_run_at"]) == ("Asia/Tokyo", "2027-01-16T00:00:00Z")


@pytest.mark.requirement("S0-3", "S2-19", "S3-3", "S4-API-1", "S4-API-3")
async def test_every_field_comes_back(api: ApiHarness) -> None:
    fields: dict[str, Any] = {
        "description": "all of it",
        "start_at": "2027-02-01T00:00:00Z",
        "end_at": "2027-03-01T00:00:00Z",
        "max_runs": 7,
        "window": {"start": "22:00", "end": "04:30", "days": ["mon", "fri"], "otherwise": "skip"},
        "retry": {
            "max": 5,
            "strategy": "exponential",
            "delays": ["1m"],
            "base": "10s",
            "cap": "1h",
            "jitter": 0.1,
            "past_next": True,
        },
        "overlap": "queue",
        "max_queued": 3,
        "misfire": "all",
        "grace": "2m",
        "max_catch_up": 4,
        "breaker": {"after": 2, "action": "fail"},
        "timeout": "1h30m",
        "start_deadline": "5m",
        "on_lost": "fail",
        "priority": -5,
        "queue": "slow",
        "concurrency_key": "crm",
        "retention": {"keep": "7d", "keep_last": 10, "mode": "any"},
        "tags": ["a", "b"],
        "external_ref": {"source": "crontab", "id": 7},
        "payload": {"deep": [{"er": None}]},
    }
    made = await api.create_job(**fields)
    assert {name: made[name] for name in fields} == fields
    assert (made["status"], made["next_run_at"]) == ("pending", "2027-02-01T00:00:00Z")


@pytest.mark.requirement("S0-6")
async def test_a_job_made_disabled_has_no_next_time(api: ApiHarness) -> None:
    made = await api.create_job(enabled=False)
    assert (made["status"], made["next_run_at"]) == ("disabled", None)
    assert (await api.request("GET", f"/jobs/{made['id']}/next")).json() == {"items": [], "notes": []}


async def test_pages_follow_each_other_newest_first_and_end(api: ApiHarness) -> None:
    names = [(await api.create_job(name=f"job {number}"))["name"] for number in range(5)]
    seen, cursor = [], None
    for _ in range(4):
        page = (
            await api.request("GET", "/jobs", params={"limit": 2, **({"cursor": cursor} if cursor else {})})
        ).json()
        seen.append(len(page["items"]))
        names = [name for name in names if name not in {each["name"] for each in page["items"]}]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert (seen, names) == ([2, 2, 1], [])


@pytest.mark.requirement("S4-API-2")
async def test_a_list_can_be_narrowed_and_is_newest_first(api: ApiHarness, clock: ManualClock) -> None:
    await api.create_job(name="one", tags=["billing"], queue="slow")
    clock.advance(timedelta(seconds=1))
    await api.create_job(name="two", type="python", enabled=False)

    async def names(**params: Any) -> list[str]:
        found = (await api.request("GET", "/jobs", params=params)).json()["items"]
        return [each["name"] for each in found]

    assert await names() == ["two", "one"]
    assert await names(tag="billing") == ["one"]
    assert await names(queue="slow") == ["one"]
    assert await names(type="python") == ["two"]
    assert await names(status="disabled") == ["two"]
    assert await names(status=["active", "disabled"]) == ["two", "one"]
    assert await names(status="archived") == []


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"limit": 0}, "/limit"),
        ({"limit": 201}, "/limit"),
        ({"limit": "many"}, "/limit"),
        ({"cursor": "nonsense"}, "/cursor"),
        ({"cursor": "\x00"}, "/cursor"),
        ({"status": "sleeping"}, "/status/0"),
    ],
)
async def test_a_wrong_parameter_is_named(
    shared_api: ApiHarness, params: dict[str, Any], pointer: str
) -> None:
    answer = await shared_api.request("GET", "/jobs", params=params)
    assert (answer.status_code, list(problems(answer))) == (422, [pointer])


@pytest.mark.requirement("S4-API-7")
async def test_what_a_job_did_is_a_page_of_runs(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job(schedule={"kind": "interval", "every": "1m"})
    for _ in range(2):
        clock.advance(timedelta(minutes=1))
        await tick(api.database)
    page = (await api.request("GET", f"/jobs/{made['id']}/runs")).json()
    newest, first = page["items"]
    assert page["next_cursor"] is None
    assert (first["number"], first["status"], first["trigger"]) == (1, "ready", "schedule")
    assert (first["planned_for"], first["planned_local"]) == ("2027-01-15T12:01:00Z", "2027-01-15T12:01:00")
    assert (newest["status"], newest["skip_reason"]) == ("skipped", "overlap")
    read = await api.request("GET", f"/runs/{first['id']}")
    assert (read.status_code, read.json()) == (200, {**first, "attempts": [], "artifacts": [], "usage": {}})
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["skip_count"] == 1
    assert (
        len((await api.request("GET", f"/jobs/{made['id']}/runs", params={"limit": 1})).json()["items"]) == 1
    )


async def test_the_next_times_come_with_the_wall_clock_and_what_clock_changes_do(
    api: ApiHarness, clock: ManualClock
) -> None:
    made = await api.create_job(
        schedule={"kind": "cron", "expr": "30 2 13-15 3 *", "timezone": "America/New_York"}
    )
    items = (await api.request("GET", f"/jobs/{made['id']}/next", params={"n": 2})).json()["items"]
    assert [(each["planned_for"], each["planned_local"]) for each in items] == [
        ("2027-03-13T07:30:00Z", "2027-03-13T02:30:00"),
        ("2027-03-14T07:00:00Z", "2027-03-14T02:30:00"),
    ]
    assert items[0]["notes"] == []
    assert "does not exist in America/New_York" in items[1]["notes"][0]


async def test_after_a_fixed_delay_only_the_first_time_is_known(api: ApiHarness) -> None:
    made = await api.create_job(schedule={"kind": "interval", "every": "5m", "mode": "fixed_delay"})
    (only,) = (await api.request("GET", f"/jobs/{made['id']}/next")).json()["items"]
    assert only["planned_for"] == made["next_run_at"]
    assert only["notes"] == ["The next one comes 5m after that run ends."]


async def test_no_more_times_are_named_than_the_job_may_still_run(api: ApiHarness) -> None:
    made = await api.create_job(max_runs=2)
    assert len((await api.request("GET", f"/jobs/{made['id']}/next")).json()["items"]) == 2


async def test_a_job_that_no_worker_could_run_is_written_and_says_so(api: ApiHarness) -> None:
    wanted = {
        "name": "backup",
        "type": "command",
        "config": {"argv": ["backup"]},
        "schedule": {"kind": "manual"},
    }
    made = await api.request("POST", "/jobs", json=wanted)
    assert made.status_code == 201
    [warning] = made.json()["warnings"]
    assert 'No live worker serves type "command" on queue "default".' in warning
    assert "start one that serves queue default with FOLIOT_ALLOW_COMMANDS=yes" in warning
    tried = await api.request("POST", "/jobs?dry_run=true", json={**wanted, "name": "second backup"})
    assert tried.json()["warnings"] == made.json()["warnings"]
    again = await api.request("PUT", f"/jobs/{made.json()['id']}", json=made.json())
    assert again.status_code == 200, again.text


async def test_a_type_that_nobody_knows_is_taken_for_the_one_that_was_meant(api: ApiHarness) -> None:
    made = await api.create_job(type="commnd", config={})
    assert made["warnings"] == [
        'No live worker serves type "commnd" on queue "default". Did you mean "command"?'
    ]


async def test_next_times_within_a_freeze_say_so(api: ApiHarness) -> None:
    made = await api.create_job()
    freeze = {"reason": "release day", "after": "latest", "scope": {"everything": True}}
    assert (await api.request("POST", "/freezes", role="operator", json=freeze)).status_code == 201
    items = (await api.request("GET", f"/jobs/{made['id']}/next")).json()["items"]
    held = "A freeze (release day) is in force until it is lifted"
    assert items
    assert all(held in each["notes"][-1] for each in items)


async def test_reads_answer_what_the_shape_of_a_job_says(api: ApiHarness) -> None:
    """GET and lists write their JSON without building the shapes; every field must look the same."""
    up = await api.create_job(name="up")
    rich = await api.create_job(
        name="rich",
        description="Über ☂",
        schedule={"kind": "cron", "expr": "0 9 * * 1-5", "timezone": "Europe/Paris", "spread": "90s"},
        start_at="2027-02-01T09:00:00.5+01:00",
        end_at="2030-01-01T00:00:00Z",
        window={"start": "08:00", "end": "18:30", "days": ["mon", "fri"]},
        depends_on=[{"job": up["id"], "mode": "gate", "max_age": "2h"}],
        retry={"max": 2, "strategy": "exponential", "base": "1s", "cap": "1h", "jitter": 0.5},
        grace="36h",
        timeout="1.5s",
        start_deadline="PT10M",
        concurrency_key="k",
        retention={"keep": "30d", "keep_last": 7, "mode": "any"},
        tags=["b", "a"],
        external_ref={"x": [1, None]},
        payload={"deep": {"n": 1.5}},
    )
    await api.request(
        "POST", f"/jobs/{rich['id']}/pause", json={"reason": "r", "until": "2029-01-01T00:00:00Z"}
    )
    listed = (await api.request("GET", "/jobs?count=true")).json()
    assert (listed["total"], listed["more"]) == (2, False)
    for each in listed["items"]:
        got = (await api.request("GET", f"/jobs/{each['id']}")).json()
        assert got == each
        shape = JobOut.model_validate_json(json.dumps(got))
        assert json.loads(shape.model_dump_json()) == got
        record = await job_search.job(api.database, Scope(api.ids["acme"]), JobId(UUID(each["id"])))
        assert json.loads(job_out(record).model_dump_json()) == got
