"""Finding jobs by the API: filters, orders, pages, counts."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.testing.clock import ManualClock
from foliot.testing.database import Databases
from tests.web.conftest import ApiHarness, job, open_fresh_api, problems

pytestmark = pytest.mark.anyio

DAILY = {"kind": "cron", "expr": "0 6 * * *"}
MANUAL = {"kind": "manual"}


async def names(api: ApiHarness, **params: Any) -> list[str]:
    answer = await api.request("GET", "/jobs", params=params)
    assert answer.status_code == 200, answer.text
    return [each["name"] for each in answer.json()["items"]]


async def fill(api: ApiHarness, clock: ManualClock) -> None:
    """Create four jobs a day apart, each with something of its own."""
    await api.create_job(name="Daily Sync", type="http", tags=["billing", "nightly"], schedule=DAILY)
    clock.advance(timedelta(days=1))
    await api.create_job(
        name="daily 100% report", type="python", tags=["billing"], queue="slow", schedule=MANUAL
    )
    clock.advance(timedelta(days=1))
    paused = await api.create_job(name="under_score", type="http")
    await api.request("POST", f"/jobs/{paused['id']}/pause")
    clock.advance(timedelta(days=1))
    await api.create_job(name="éclair", type="http", enabled=False)


@pytest.fixture(scope="module")
async def shelf(server: Databases) -> AsyncIterator[ApiHarness]:
    """The four jobs, for tests that only read."""
    clock = ManualClock()
    async with open_fresh_api(server, clock) as made:
        await fill(made, clock)
        yield made


@pytest.fixture(scope="module")
async def longer_shelf(server: Databases) -> AsyncIterator[ApiHarness]:
    """The four jobs and a fifth with the name of the first, for tests that only read."""
    clock = ManualClock()
    async with open_fresh_api(server, clock) as made:
        await fill(made, clock)
        await made.create_job(name="Daily Sync", type="http")
        yield made


SYNC, REPORT, SCORE, ECLAIR = "Daily Sync", "daily 100% report", "under_score", "éclair"


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("", [ECLAIR, SCORE, REPORT, SYNC]),
        ("status:paused", [SCORE]),
        ("status:paused,disabled", [ECLAIR, SCORE]),
        ("-status:active", [ECLAIR, SCORE]),
        ("tag:billing", [REPORT, SYNC]),
        ("tag:billing -tag:nightly", [REPORT]),
        ("tag:billing tag:nightly", [SYNC]),
        ("tag:nightly,billing", [REPORT, SYNC]),
        ("type:python", [REPORT]),
        ("queue:slow", [REPORT]),
        ("schedule:manual,cron", [REPORT, SYNC]),
        ("daily", [REPORT, SYNC]),
        ("DAILY sync", [SYNC]),
        ('"daily sync"', [SYNC]),
        ("-daily", [ECLAIR, SCORE]),
        ("100%", [REPORT]),
        ("r_s", [SCORE]),
        ("name:%", [REPORT]),
        ("since:36h", [ECLAIR, SCORE]),
        ("before:36h", [REPORT, SYNC]),
        ("since:2027-01-16 until:2027-01-16", [REPORT]),
        ("created:today", [ECLAIR]),
        ("next:<1d", [SYNC]),
        ("-next:<1d", [ECLAIR, SCORE, REPORT]),
        ("failures:0", [ECLAIR, SCORE, REPORT, SYNC]),
        ("failures:>0", []),
        ("runs:<1 type:http", [ECLAIR, SCORE, SYNC]),
        ("result:failed", []),
        ("last:<24h", []),
        ("owner:nobody", []),
        ("owner:me", [ECLAIR, SCORE, REPORT, SYNC]),
        ("-owner:me", []),
    ],
)
async def test_a_filter_finds_what_it_says(shelf: ApiHarness, q: str, found: list[str]) -> None:
    assert await names(shelf, q=q) == found


async def test_parameters_do_the_same_and_add_to_it(shelf: ApiHarness) -> None:
    assert await names(shelf, status=["paused", "disabled"]) == [ECLAIR, SCORE]
    assert await names(shelf, tag="billing", type="http") == [SYNC]
    assert await names(shelf, q="daily", queue="slow", owner="me", name="report", since="7d") == [REPORT]


async def test_archived_jobs_show_only_where_a_status_is_named(
    api: ApiHarness, clock: ManualClock, owner: Any
) -> None:
    await fill(api, clock)
    owner.execute("UPDATE foliot.jobs SET status = 'archived' WHERE name = %s", [SCORE])
    assert SCORE not in await names(api)
    assert await names(api, q="status:archived") == [SCORE]
    assert await names(api, q="-status:active") == [ECLAIR, SCORE]


@pytest.mark.parametrize(
    ("sort", "found"),
    [
        ("created_at", [SYNC, REPORT, SCORE, ECLAIR]),
        ("-created_at", [ECLAIR, SCORE, REPORT, SYNC]),
        ("next_run_at", [SYNC, REPORT, SCORE, ECLAIR]),
        ("-next_run_at", [ECLAIR, SCORE, REPORT, SYNC]),
    ],
)
async def test_a_list_has_the_order_asked_for(shelf: ApiHarness, sort: str, found: list[str]) -> None:
    assert await names(shelf, sort=sort) == found


async def test_jobs_stand_where_they_run_next_and_not_where_they_start(api: ApiHarness) -> None:
    yearly = {"kind": "cron", "expr": "0 0 1 6 *"}
    await api.create_job(name="starts soon, runs late", schedule=yearly, start_at="2027-01-15T13:00:00Z")
    await api.create_job(name="never", schedule={"kind": "manual"})
    await api.create_job(name="tomorrow", schedule={"kind": "cron", "expr": "0 6 * * *"})
    await api.create_job(name="in spring", schedule={"kind": "cron", "expr": "0 0 1 4 *"})
    order = ["tomorrow", "in spring", "starts soon, runs late", "never"]
    assert await names(api, sort="next_run_at") == order
    assert await names(api, sort="-next_run_at") == order[::-1]
    found: list[str] = []
    cursor: dict[str, str | None] = {}
    for _ in order:
        page = (
            await api.request("GET", "/jobs", params={"sort": "next_run_at", "limit": 1, **cursor})
        ).json()
        found += [each["name"] for each in page["items"]]
        cursor = {"cursor": page["next_cursor"]}
    assert (found, cursor) == (order, {"cursor": None})


@pytest.mark.parametrize(
    "sort", ["created_at", "-created_at", "name", "-name", "next_run_at", "-next_run_at"]
)
@pytest.mark.parametrize("q", ["", "type:http", "failures:<1 -type:python"])
async def test_pages_of_any_order_and_filter_add_up(longer_shelf: ApiHarness, sort: str, q: str) -> None:
    whole = (await longer_shelf.request("GET", "/jobs", params={"sort": sort, "q": q})).json()
    assert whole["next_cursor"] is None
    seen: list[dict[str, Any]] = []
    cursor: dict[str, str | None] = {}
    for _ in range(10):
        page = (
            await longer_shelf.request("GET", "/jobs", params={"sort": sort, "q": q, "limit": 1, **cursor})
        ).json()
        seen += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == whole["items"]


@pytest.mark.parametrize("scanned", [1, 3, 100])
async def test_a_word_is_found_beyond_the_jobs_that_are_looked_through_first(
    api: ApiHarness, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, scanned: int
) -> None:
    monkeypatch.setattr("foliot.storage.jobs.job_search.FIRST_SCANNED", scanned)
    for name in ("night 1", "day 2", "night 3", "day 4", "night 5", "night 6"):
        await api.create_job(name=name)
        clock.advance(timedelta(seconds=1))
    found: list[str] = []
    cursor: str | None = None
    while cursor is not None or not found:
        params: dict[str, Any] = {"q": "night", "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await api.request("GET", "/jobs", params=params)).json()
        found += [each["name"] for each in page["items"]]
        cursor = page["next_cursor"]
    assert found == ["night 6", "night 5", "night 3", "night 1"]


async def test_the_order_of_names_can_be_turned_round(shelf: ApiHarness) -> None:
    assert await names(shelf, sort="name") == (await names(shelf, sort="-name"))[::-1]
    assert (await names(shelf, sort="name"))[-1] == ECLAIR


async def test_a_count_is_given_where_it_is_asked_for(shelf: ApiHarness) -> None:
    counted = (
        await shelf.request("GET", "/jobs", params={"q": "type:http", "count": "true", "limit": 1})
    ).json()
    assert (counted["total"], counted["more"], len(counted["items"])) == (3, False, 1)
    assert set((await shelf.request("GET", "/jobs")).json()) == {"items", "next_cursor"}


async def test_a_filter_that_cannot_be_read_is_refused_with_its_columns(shared_api: ApiHarness) -> None:
    answer = await shared_api.request("GET", "/jobs", params={"q": "stauts:failed tag:x failures:many"})
    assert (answer.status_code, answer.json()["code"]) == (422, "query.invalid")
    reported = [(each["pointer"], each["message"]) for each in answer.json()["errors"]]
    assert reported == [
        ("/q", 'There is no field "stauts" to filter by (column 1).'),
        ("/q", '"many" is not a whole number (column 30).'),
    ]
    assert 'Did you mean "status"?' in answer.json()["errors"][0]["hint"]


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"sort": "color"}, "/sort"),
        ({"since": "lately"}, "/since"),
        ({"cursor": "nonsense"}, "/cursor"),
        ({"cursor": urlsafe_b64encode(b'["-created_at",null,7]').decode()}, "/cursor"),
        (
            {"cursor": urlsafe_b64encode(b'["name","x","00000000000000000000000000000000"]').decode()},
            "/cursor",
        ),
        (
            {"sort": "next_run_at", "cursor": urlsafe_b64encode(b'["next_run_at","x","0"]').decode()},
            "/cursor",
        ),
        (
            {
                "sort": "name",
                "cursor": urlsafe_b64encode(b'["name","\\u0000","' + b"0" * 32 + b'"]').decode(),
            },
            "/cursor",
        ),
        (
            {
                "sort": "name",
                "cursor": urlsafe_b64encode(b'["name","\\ud800","' + b"0" * 32 + b'"]').decode(),
            },
            "/cursor",
        ),
    ],
)
async def test_wrong_parameters_of_a_list_are_refused_by_name(
    shared_api: ApiHarness, params: dict[str, str], pointer: str
) -> None:
    answer = await shared_api.request("GET", "/jobs", params=params)
    assert (answer.status_code, list(problems(answer))) == (422, [pointer])


@pytest.mark.parametrize(
    ("at", "status"),
    [
        ("2027-01-01T00:00:00+23:59", 200),
        ("2027-01-01T00:00:00+01:02:03.000004", 200),
        ("0001-01-01T00:00:00+23:00", 422),
        ("9999-12-31T23:59:59-23:00", 422),
    ],
)
async def test_a_cursor_may_name_any_instant_and_no_other(
    shared_api: ApiHarness, at: str, status: int
) -> None:
    cursor = urlsafe_b64encode(f'["next_run_at","{at}","{"0" * 32}"]'.encode()).decode()
    answer = await shared_api.request("GET", "/jobs", params={"sort": "next_run_at", "cursor": cursor})
    assert answer.status_code == status


async def test_an_agent_finds_its_own_jobs_whatever_it_asks_for(api: ApiHarness) -> None:
    await api.create_job(name="of a person")
    api.keys["acme", "agent"] = await api.create_key(
        "acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT, name="Robot"
    )
    made = await api.request("POST", "/jobs", role="agent", json=job(name="mine", schedule=MANUAL))
    for q in ("", "type:http", f"owner:{made.json()['owner']}", "-owner:me", "of a person"):
        found = (await api.request("GET", "/jobs", role="agent", params={"q": q, "count": "true"})).json()
        assert {each["name"] for each in found["items"]} <= {"mine"}
        assert found["total"] == len(found["items"])
    assert await names(api, q="owner:robot") == ["mine"]


async def test_a_filter_does_not_reach_into_another_workspace(api: ApiHarness) -> None:
    made = await api.create_job(who="globex", name="canary", tags=["canary"])
    for q in ("canary", "tag:canary", f"id:{made['id']}", f"owner:{made['owner']}"):
        assert await names(api, q=q) == []


async def test_a_filter_by_upstream_finds_the_jobs_that_depend_on_it(api: ApiHarness) -> None:
    first = await api.create_job(name="first")
    edge = {"job": first["id"]}
    await api.create_job(name="second", schedule=MANUAL, depends_on=[edge])
    await api.create_job(name="apart")
    assert await names(api, q=f"upstream:{first['id']}") == ["second"]
    assert sorted(await names(api, q=f"-upstream:{first['id']}")) == ["apart", "first"]


async def test_a_job_is_read_with_its_warnings_on_request(api: ApiHarness) -> None:
    made = await api.create_job(name="test")
    assert any("does not say" in each for each in made["warnings"])
    again = await api.request("GET", f"/jobs/{made['id']}", role="viewer", params={"warnings": "true"})
    assert again.json()["warnings"] == made["warnings"]
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["warnings"] == []


@pytest.mark.requirement("X-1")
async def test_reading_changes_no_timer_even_of_a_job_that_is_due(api: ApiHarness, owner: Any) -> None:
    made = await api.create_job(name="due")
    assert isinstance(api.database.clock, ManualClock)
    api.database.clock.advance(timedelta(hours=1))
    before = owner.execute("SELECT * FROM foliot.timers").fetchall()
    job = f"/jobs/{made['id']}"
    paths = (
        "/jobs",
        "/jobs?sort=next_run_at",
        job,
        f"{job}/next",
        f"{job}/runs",
        f"{job}/explain",
        f"{job}/stats",
        "/agenda",
        "/stats",
        "/runs",
    )
    for path in paths:
        answer = await api.request("GET", path, role="viewer")
        assert answer.status_code == 200, (path, answer.text)
    assert owner.execute("SELECT * FROM foliot.timers").fetchall() == before
