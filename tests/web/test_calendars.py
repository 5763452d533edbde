"""/calendars: written, read, changed, used and removed; and whose business they are."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
NIGHTS = {"kind": "weekly", "start": "22:00", "end": "06:00", "days": ["sat", "sun"]}
JANUARY = {"kind": "absolute", "start": "2027-01-01T00:00:00Z", "end": "2027-02-01T00:00:00Z"}
BACKUPS = {"kind": "cron", "expr": "0 3 * * *", "duration": "1h30m"}


def calendar(**fields: Any) -> dict[str, Any]:
    return {"name": "nights", "kind": "blackout", "rules": [NIGHTS], **fields}


async def made(api: ApiHarness, **fields: Any) -> dict[str, Any]:
    answer = await api.request("POST", "/calendars", json=calendar(**fields))
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/api/v1/calendars/{found['id']}"
    assert answer.headers["etag"] == '"1"'
    return found


async def test_a_calendar_is_answered_as_it_was_written(api: ApiHarness) -> None:
    written = calendar(rules=[NIGHTS, JANUARY, BACKUPS], timezone="Europe/Paris", otherwise="defer")
    found = await made(api, **written)
    assert {name: found[name] for name in written} == written
    assert (found["job_count"], found["revision"]) == (0, 1)
    assert (await api.request("GET", f"/calendars/{found['id']}", role="viewer")).json() == found


async def test_calendars_are_listed_by_name_a_page_at_a_time(api: ApiHarness) -> None:
    for name in ("c", "a", "b"):
        await made(api, name=name)
    first = (await api.request("GET", "/calendars", params={"limit": 2})).json()
    assert [each["name"] for each in first["items"]] == ["a", "b"]
    rest = (await api.request("GET", "/calendars", params={"cursor": first["next_cursor"]})).json()
    assert ([each["name"] for each in rest["items"]], rest["next_cursor"]) == (["c"], None)
    for cursor in ("!", urlsafe_b64encode(bytes(17)).decode()):
        assert (await api.request("GET", "/calendars", params={"cursor": cursor})).status_code == 422


async def test_a_change_moves_the_jobs_that_use_it_at_once(api: ApiHarness) -> None:
    january = await made(api, rules=[JANUARY], otherwise="defer")
    job = await api.create_job(
        schedule={"kind": "cron", "expr": "0 12 * * *", "timezone": "UTC"}, calendars=[january["id"]]
    )
    path = f"/calendars/{january['id']}"
    users = (await api.request("GET", f"{path}/jobs")).json()
    assert users == {"items": [{"id": job["id"], "name": "beat"}], "next_cursor": None}
    api.hints.clear()
    always = {"kind": "absolute", "start": "2020-01-01T00:00:00Z", "end": "2030-01-01T06:00:00Z"}
    answer = await api.request("PATCH", path, json={"rules": [always]})
    assert (answer.status_code, answer.json()["name"], answer.headers["etag"]) == (200, "nights", '"2"')
    moved = (await api.request("GET", f"/jobs/{job['id']}")).json()
    assert moved["next_run_at"] == "2030-01-01T06:00:00Z"
    assert api.hints == ["timers"]
    replaced = await api.request("PUT", path, json=calendar(name="days"))
    assert (replaced.json()["name"], replaced.json()["otherwise"]) == ("days", "skip")
    back = (await api.request("GET", f"/jobs/{job['id']}")).json()
    assert back["next_run_at"] == "2027-01-16T12:00:00Z"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_one_that_was_changed_since_it_was_read_is_left_alone(api: ApiHarness, method: str) -> None:
    found = await made(api)
    path = f"/calendars/{found['id']}"
    assert (await api.request("PATCH", path, json={"name": "evenings"})).status_code == 200
    more: dict[str, Any] = {} if method == "DELETE" else {"json": calendar()}
    stale = await api.request(method, path, headers={"If-Match": '"1"'}, **more)
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_revision")
    assert (await api.request("GET", path)).json()["name"] == "evenings"
    fine = await api.request(method, path, headers={"If-Match": '"2"'}, **more)
    assert fine.is_success, fine.text


async def test_one_in_use_goes_only_by_force_and_the_refusal_names_its_jobs(api: ApiHarness) -> None:
    used = await made(api)
    job = await api.create_job(name="nightly report", calendars=[used["id"]])
    refused = await api.request("DELETE", f"/calendars/{used['id']}")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert '"nightly report"' in refused.json()["detail"]
    assert "force=true" in refused.json()["errors"][0]["hint"]
    assert (
        await api.request("DELETE", f"/calendars/{used['id']}", params={"force": True})
    ).status_code == 204
    assert (await api.request("GET", f"/jobs/{job['id']}")).json()["calendars"] == []
    assert (await api.request("DELETE", f"/calendars/{used['id']}")).status_code == 404


async def test_what_is_wrong_is_reported_where_it_stands(api: ApiHarness) -> None:
    for change, pointer in (
        ({"rules": []}, "/rules"),
        ({"rules": [{"kind": "monthly"}]}, "/rules/0"),
        ({"rules": [NIGHTS | {"days": ["caturday"]}]}, "/rules/0/days/0"),
        ({"rules": [BACKUPS | {"expr": "99 * * * *"}]}, "/rules/0/expr"),
        ({"rules": [JANUARY | {"end": JANUARY["start"]}]}, "/rules/0/end"),
        ({"timezone": "Mars/Olympus"}, "/timezone"),
        ({"name": " "}, "/name"),
        ({"colour": "red"}, "/colour"),
    ):
        answer = await api.request("POST", "/calendars", json=calendar(**change))
        assert answer.status_code == 422, (change, answer.text)
        assert pointer in problems(answer), (change, answer.text)
    await made(api)
    taken = await api.request("POST", "/calendars", json=calendar())
    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")
    found = await made(api, name="other")
    patches: tuple[dict[str, Any], ...] = ({"rules": []}, {"name": None}, {"rules": None})
    for patch in patches:
        assert (await api.request("PATCH", f"/calendars/{found['id']}", json=patch)).status_code == 422, patch


async def test_another_workspace_knows_nothing_of_them(api: ApiHarness) -> None:
    mine = await made(api)
    assert (await api.request("GET", "/calendars", who="globex")).json()["items"] == []
    for method, path in (("GET", ""), ("GET", "/jobs"), ("DELETE", "")):
        there = await api.request(method, f"/calendars/{mine['id']}{path}", who="globex")
        nowhere = await api.request(method, f"/calendars/{uuid4()}{path}", who="globex")
        malformed = await api.request(method, f"/calendars/nonsense{path}", who="globex")
        reported = [answer.json() | {"request_id": None} for answer in (there, nowhere, malformed)]
        assert there.status_code == 404
        assert reported[0] == reported[1] == reported[2]


async def test_an_agent_reads_calendars_and_changes_none(api: ApiHarness) -> None:
    shared = await made(api)
    await api.create_job(name="of others", calendars=[shared["id"]])
    key = await api.create_key("acme", MemberRole.ADMIN, kind=PrincipalKind.AGENT)
    api.keys["acme", "agent"] = key
    own = (
        await api.request(
            "POST",
            "/jobs",
            role="agent",
            json=job(name="own", schedule={"kind": "manual"}, calendars=[shared["id"]]),
        )
    ).json()
    path = f"/calendars/{shared['id']}"
    assert (await api.request("GET", path, role="agent")).json()["name"] == "nights"
    users = (await api.request("GET", f"{path}/jobs", role="agent")).json()["items"]
    assert [each["id"] for each in users] == [own["id"]]
    for method, where, body in (
        ("POST", "/calendars", calendar(name="mine")),
        ("PUT", path, calendar()),
        ("PATCH", path, {"name": "mine"}),
        ("DELETE", path, None),
    ):
        answer = await api.request(method, where, role="agent", json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "denied"), (method, where)


async def test_what_was_done_is_in_the_audit(api: ApiHarness, owner: Any) -> None:
    found = await made(api)
    await api.request("PATCH", f"/calendars/{found['id']}", json={"name": "days"})
    await api.request("DELETE", f"/calendars/{found['id']}")
    rows = owner.execute(
        "SELECT action FROM foliot.audit WHERE object_kind = 'calendar' AND object_id = %s ORDER BY at, xmin::text::bigint",
        [found["id"]],
    ).fetchall()
    assert [row[0] for row in rows] == ["calendar.created", "calendar.edited", "calendar.deleted"]


async def test_a_year_of_a_calendar_and_days_of_countries_and_files(api: ApiHarness) -> None:
    holidays = await api.request(
        "GET",
        "/calendars/holidays",
        role="viewer",
        params={"country": "ES", "subdivision": "MD", "first_year": 2027, "years": 1},
    )
    rules = holidays.json()["rules"]
    whole = await api.request(
        "GET", "/calendars/holidays", params={"country": "es", "first_year": 2027, "years": 1}
    )
    own = {each["date"] for each in rules} - {each["date"] for each in whole.json()["rules"]}
    assert "2027-05-03" in own  # of Madrid alone
    assert rules[0] == {"kind": "date", "date": "2027-01-01", "last": None, "name": "New Year's Day"}
    text = "BEGIN:VEVENT\nDTSTART:20270704\nSUMMARY:Fourth of July\nEND:VEVENT"
    read = await api.request("POST", "/calendars/ics", json={"text": text, "first_year": 2027})
    assert [each["name"] for each in read.json()["rules"]] == ["Fourth of July"]
    found = await made(api, rules=[*rules, *read.json()["rules"]], timezone="Europe/Madrid")
    year = (await api.request("GET", f"/calendars/{found['id']}/year", params={"year": 2027})).json()
    assert (year["year"], year["timezone"], len(year["days"])) == (2027, "Europe/Madrid", len(rules) + 1)
    assert year["days"][0] == {
        "date": "2027-01-01",
        "state": "closed",
        "closed": [],
        "names": ["New Year's Day"],
    }
    assert (await api.request("GET", f"/calendars/{found['id']}/year")).json()["year"] == 2027
    for path in (
        f"/calendars/{found['id']}/year?year=12",
        "/calendars/holidays?country=XX",
        "/calendars/holidays?country=ES&subdivision=QQ",
    ):
        assert (await api.request("GET", path)).status_code == 422, path
    theirs = await api.request("GET", f"/calendars/{found['id']}/year", who="globex")
    assert theirs.status_code == 404
    countries = (await api.request("GET", "/calendars/countries")).json()["items"]
    assert "MD" in next(each["subdivisions"] for each in countries if each["country"] == "ES")


async def test_a_wrong_day_is_refused_where_it_stands(api: ApiHarness) -> None:
    rules = [
        {"kind": "date", "date": "2027-02-30"},
        {"kind": "date", "date": "2027-01-01", "last": "2026-01-01"},
    ]
    for place, rule in enumerate(rules):
        answer = await api.request("POST", "/calendars", json=calendar(rules=[NIGHTS, rule]))
        assert answer.status_code == 422
        assert ("/rules/1/date" if place == 0 else "/rules/1/last") in answer.text


async def test_a_scope_applies_it_to_jobs_that_do_not_name_it(api: ApiHarness) -> None:
    weekly = {"kind": "cron", "expr": "30 23 * * sat", "timezone": "UTC"}
    tagged = await api.create_job(name="tagged", schedule=weekly, tags=["billing"])
    await api.create_job(name="other", schedule=weekly)
    opens, planned = "2027-01-17T06:00:00Z", "2027-01-16T23:30:00Z"
    body = calendar(otherwise="defer", scope={"tags": ["billing"]})
    tried = (await api.request("POST", "/calendars", params={"dry_run": True}, json=body)).json()
    assert [(each["job_name"], each["before"], each["after"]) for each in tried["moved"]] == [
        ("tagged", planned, opens)
    ]
    api.hints.clear()
    found = await made(api, **body)
    assert api.hints == ["timers"]
    assert found["scope"] == {
        "everything": False,
        "types": [],
        "tags": ["billing"],
        "queues": [],
        "hosts": [],
    }
    path = f"/calendars/{found['id']}"
    users = (await api.request("GET", f"{path}/jobs")).json()["items"]
    assert (found["job_count"], [each["id"] for each in users]) == (0, [tagged["id"]])
    assert (await api.request("GET", f"/jobs/{tagged['id']}")).json()["next_run_at"] == opens
    everything = {"scope": {"everything": True}}
    tried = (await api.request("PATCH", path, params={"dry_run": True}, json=everything)).json()
    assert ([each["job_name"] for each in tried["moved"]], tried["jobs"]) == (["other"], 2)
    assert (await api.request("PATCH", path, json={"scope": None})).json()["scope"] is None
    assert (await api.request("GET", f"/jobs/{tagged['id']}")).json()["next_run_at"] == planned


@pytest.mark.parametrize("scope", [{}, {"everything": True, "tags": ["a"]}, {"everything": False}])
async def test_a_scope_is_everything_or_names_something(api: ApiHarness, scope: dict[str, Any]) -> None:
    answer = await api.request("POST", "/calendars", json=calendar(scope=scope))
    assert (answer.status_code, problems(answer)) == (422, {"/scope": problems(answer)["/scope"]})
