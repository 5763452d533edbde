"""Agenda, capacity and plots: the console's pages over time, and the calendar file."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import uuid4

import pytest

from foliot.domain.ids import WorkerId
from foliot.domain.outcomes import Succeeded
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness
from tests.web.test_console import HOSTILE, post, signed_in
from tests.web.test_console_runs import NO_RETRY, end_run, fail_run, take_run

VIEWS = ("day", "week", "heat", "list")


async def test_the_agenda_shows_what_ran_and_what_is_planned_in_every_view(
    api: ApiHarness, clock: ManualClock
) -> None:
    worker = await api.register_worker(WorkerId(uuid4()))
    job = await api.create_job(name=HOSTILE, schedule={"words": "every 2 hours"}, retry=NO_RETRY)
    await api.create_job(name="busy", schedule={"words": "every 10 seconds"})
    freeze = {
        "reason": f"move {HOSTILE}",
        "start_at": "2027-01-15T18:00:00Z",
        "end_at": "2027-01-15T20:00:00Z",
    }
    assert (await api.request("POST", "/freezes", role="admin", json=freeze)).status_code == 201
    clock.advance(timedelta(minutes=5))
    run = await fail_run(api, worker, job["id"], "closed")
    session = await signed_in(api, "viewer")
    pages = {}
    for view in VIEWS:
        answer = await api.http.get(f"/console/agenda?view={view}", headers=session)
        assert answer.status_code == 200, view
        assert "<script>alert" not in answer.text
        pages[view] = answer.text
    assert f"/console/runs/{run.run_id}" in pages["day"]
    assert 'class="planned' in pages["day"]
    assert 'class="frozen"' in pages["day"]
    assert 'class="now-line"' in pages["day"]
    assert re.search(r'<td class="heat-\d had-failed', pages["week"])
    assert "Quiet minutes" in pages["heat"]
    for odd in (
        "view=x",
        "date=2026-13-45",
        "date=9999-01-01",
        "date=x&view=week",
        "view=week&date=2000-01-01",
        f"tag={'x' * 90}",
    ):
        assert (await api.http.get(f"/console/agenda?{odd}", headers=session)).status_code == 200, odd


async def test_the_calendar_file_has_one_event_for_each_line_and_breaks_no_line(api: ApiHarness) -> None:
    name = "Zahlung; fällig, \\ am Monatsende\u2028 BEGIN:VEVENT " + "ü" * 60
    job = await api.create_job(name=name, schedule={"words": "every day at 9am"})
    await api.create_job(name="busy", schedule={"words": "every minute"})
    answer = await api.request("GET", f"/agenda.ics?days=3&job={job['id']}", role="viewer")
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    lines = answer.content.split(b"\r\n")
    assert all(len(line) <= 75 for line in lines)
    whole = answer.text.replace("\r\n ", "")
    assert whole.count("\r\nBEGIN:VEVENT\r\n") == 3
    [summary] = {line for line in whole.split("\r\n") if line.startswith("SUMMARY:")}
    assert summary.startswith(r"SUMMARY:Zahlung\; fällig\, \\ am Monatsende BEGIN:VEVENT ")
    assert len(set(re.findall(r"UID:(\S+)", whole))) == 3
    every = (await api.request("GET", "/agenda.ics?days=1")).text.replace("\r\n ", "")
    assert "times)" in every
    assert (await api.request("GET", "/agenda.ics?days=32")).status_code == 422
    session = await signed_in(api, "viewer")
    file = await api.http.get("/console/agenda.ics", headers=session)
    assert file.text.startswith("BEGIN:VCALENDAR")
    assert file.headers["content-disposition"].startswith("attachment")
    assert (await api.http.get("/console/agenda.ics")).status_code == 303


async def test_capacity_warns_only_of_runs_that_wait_in_vain(api: ApiHarness) -> None:
    await api.create_job(name="idle", queue="empty")
    session = await signed_in(api, "viewer")
    quiet = (await api.http.get("/console/capacity", headers=session)).text
    assert 'role="alert"' not in quiet  # nobody serves that queue, and nothing waits there
    job = await api.create_job(name="stuck", queue="gpu")
    await api.request("POST", f"/jobs/{job['id']}/run")
    warned = (await api.http.get("/console/capacity", headers=session)).text
    assert 'role="alert"' in warned
    assert "1 runs wait" in warned
    assert 'id="shares"' not in warned  # other workspaces are none of their business


async def test_the_installation_sees_who_waits_for_whom(api: ApiHarness) -> None:
    worker = await api.register_worker(WorkerId(uuid4()))
    noisy = await api.create_job(name="noisy")
    await take_run(api, worker, noisy["id"])
    quiet = await api.create_job("globex", name="quiet", queue="other")
    await api.request("POST", f"/jobs/{quiet['id']}/run", who="globex")
    shares = (await api.request("GET", "/capacity/shares", who="system")).json()["items"]
    assert [(each["slug"], each["ready"], each["running"]) for each in shares] == [
        ("globex", 1, 0),
        ("acme", 0, 1),
    ]
    assert (await api.request("GET", "/capacity/shares", role="admin")).status_code == 403
    page = (await api.http.get("/console/capacity", headers=await signed_in(api, who="system"))).text
    assert "100 % of what runs" in page


@pytest.mark.parametrize("of_job", [False, True])
@pytest.mark.requirement("S1-FR-010")
async def test_plots_show_rates_and_percentiles_by_day(
    api: ApiHarness, clock: ManualClock, of_job: bool
) -> None:
    worker = await api.register_worker(WorkerId(uuid4()))
    job = await api.create_job(name="nightly", retry=NO_RETRY)
    for seconds in (1, 1, 9):
        run = await take_run(api, worker, job["id"])
        clock.advance(timedelta(seconds=seconds))
        await end_run(api, worker, run, Succeeded())
    await fail_run(api, worker, job["id"], "closed")
    clock.advance(timedelta(days=2))
    run = await take_run(api, worker, job["id"])
    clock.advance(timedelta(seconds=30))
    await end_run(api, worker, run, Succeeded())
    path = f"/jobs/{job['id']}/stats" if of_job else "/stats"
    days = (await api.request("GET", f"{path}?days=7&percentiles=true")).json()["days"]
    assert [(each["failures"], each["p95_duration_ms"], each["p95_lag_ms"]) for each in days] == [
        (1, 9_000, 0),
        (0, 30_000, 0),
    ]
    plain = (await api.request("GET", f"{path}?days=7")).json()["days"]
    assert plain[0]["p95_duration_ms"] is None
    session = await signed_in(api, "viewer")
    page = await api.http.get(
        f"/console/plots?days=7{'&job=' + job['id'] if of_job else ''}", headers=session
    )
    assert page.status_code == 200
    for part in ("25 %", "9.0 s", "30.0 s", '<path class="line m-fail"'):
        assert part in page.text, part
    assert (await api.http.get("/console/plots?job=nothing", headers=session)).status_code == 404
    assert (await api.http.get("/console/plots?days=99999", headers=session)).status_code == 200


async def test_a_calendar_program_reads_the_agenda_by_an_address_that_opens_nothing_else(
    api: ApiHarness, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    worker = await api.register_worker(WorkerId(uuid4()))
    job = await api.create_job(
        name="nightly", schedule={"words": "every 2 hours"}, retry=NO_RETRY, tags=["x"]
    )
    await api.create_job(name="other", schedule={"words": "every 2 hours"})
    await api.create_job("globex", name="theirs", schedule={"words": "every 2 hours"})
    clock.advance(timedelta(minutes=5))
    await fail_run(api, worker, job["id"], "closed")
    session = await signed_in(api, "viewer")
    page = await post(api, "/console/agenda/feed", session, name="my phone", tag="x")
    found = re.search(r"http://foliot\.test(/feeds/agenda/(fol_\w+)\.ics\?tag=x)", page.text)
    assert found is not None
    with caplog.at_level("INFO", "foliot.web.middleware"):
        answer = await api.http.get(found[1])
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    events = re.findall(r"SUMMARY:(.*)\r\n", answer.text)
    assert "nightly [failed]" in events
    assert "nightly" in events
    assert not any("other" in each or "theirs" in each for each in events)
    assert found[2] not in caplog.text
    bearer = {"Authorization": f"Bearer {found[2]}"}
    for path in ("agenda", "agenda.ics", "jobs", "keys"):
        assert (await api.http.get(f"/api/v1/{path}", headers=bearer)).status_code == 403, path
    assert (await api.http.post("/console/sign-in", data={"key": found[2]})).status_code != 303
    assert (await api.http.get(f"/feeds/agenda/{api.keys['acme', 'admin']}.ics")).status_code == 404
    assert (await api.http.get("/feeds/agenda/x.ics")).status_code == 404
    listed = (await api.http.get("/console/agenda/feed", headers=session)).text
    assert "my phone" in listed
    assert found[2] not in listed
    revoke = re.search(r'action="(/console/agenda/feed/[0-9a-f-]+/revoke)"', listed)
    assert revoke is not None
    await post(api, revoke[1], session)
    assert (await api.http.get(found[1])).status_code == 404


async def test_the_feed_of_the_installations_administrator_names_its_workspace(api: ApiHarness) -> None:
    await api.create_job(name="mine", schedule={"words": "every 2 hours"})
    session = await signed_in(api, who="system")
    session = {"Cookie": f"{session['Cookie']}; foliot_workspace=acme"}
    page = await post(api, "/console/agenda/feed", session, name="desk")
    found = re.search(r"http://foliot\.test(/feeds/agenda/fol_\w+\.ics\?workspace=acme)", page.text)
    assert found is not None
    assert "SUMMARY:mine" in (await api.http.get(found[1])).text


async def test_records_of_one_job_that_follow_each_other_are_one_event(
    api: ApiHarness, clock: ManualClock
) -> None:
    worker = await api.register_worker(WorkerId(uuid4()))
    job = await api.create_job(name="often", schedule={"words": "every day at 9am"}, retry=NO_RETRY)
    for _ in range(3):
        clock.advance(timedelta(minutes=5))
        await fail_run(api, worker, job["id"], "closed")
    clock.advance(timedelta(hours=3))
    await fail_run(api, worker, job["id"], "closed")
    text = (await api.request("GET", "/agenda.ics?past=1", role="viewer")).text
    events = re.findall(r"SUMMARY:(.*)\r\n", text)
    assert events[:2] == ["often (3 recorded\\, 3 failed)", "often [failed]"]
    assert "recorded" not in (await api.request("GET", "/agenda.ics", role="viewer")).text


async def test_the_day_draws_when_the_calendars_of_its_jobs_close(
    api: ApiHarness, clock: ManualClock
) -> None:
    today = clock.now().date()
    rules = [
        {"kind": "date", "date": f"{today}", "name": "Our day"},
        {"kind": "absolute", "start": "2031-01-01T00:00:00Z", "end": "2031-01-02T00:00:00Z"},
    ]
    body = {"name": HOSTILE[:60], "kind": "blackout", "timezone": "UTC", "rules": rules}
    made = (await api.request("POST", "/calendars", json=body)).json()["id"]
    await api.create_job(name="beat", schedule={"words": "every 2 hours"}, calendars=[made])
    found = (await api.request("GET", "/agenda?closures=true", role="viewer")).json()["closures"]
    assert [(each["calendar_id"], each["start"][:10], each["end"][:10]) for each in found] == [
        (made, f"{today}", f"{today + timedelta(days=1)}")
    ]
    assert (await api.request("GET", "/agenda")).json()["closures"] == []
    session = await signed_in(api, "viewer")
    page = (await api.http.get("/console/agenda", headers=session)).text
    assert re.search(rf'href="/console/calendars/{made}".*class="closed" x="0.0" y="4" width="100.0"', page)
    assert "<script>alert" not in page
    tomorrow = (await api.http.get(f"/console/agenda?date={today + timedelta(days=1)}", headers=session)).text
    assert 'class="closed"' not in tomorrow


async def test_the_week_marks_the_hours_in_which_calendars_close_and_freezes_hold(
    api: ApiHarness, clock: ManualClock
) -> None:
    tomorrow = clock.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    closed = [
        {
            "kind": "absolute",
            "start": f"{tomorrow:%Y-%m-%dT04:30:00Z}",
            "end": f"{tomorrow:%Y-%m-%dT07:00:00Z}",
        }
    ]
    body = {"name": HOSTILE[:60], "kind": "blackout", "timezone": "UTC", "rules": closed}
    made = (await api.request("POST", "/calendars", json=body)).json()["id"]
    await api.create_job(name="beat", schedule={"words": "every 2 hours"}, calendars=[made])
    frozen = {
        "reason": HOSTILE[:60],
        "start_at": f"{tomorrow:%Y-%m-%dT10:00:00Z}",
        "end_at": f"{tomorrow:%Y-%m-%dT11:00:00Z}",
    }
    await api.request("POST", "/freezes", json=frozen, role="operator")
    page = (await api.http.get("/console/agenda?view=week", headers=await signed_in(api, "viewer"))).text
    cells = {
        hour: re.findall(r"<td class=\"([^\"]*)", row)
        for hour, row in re.findall(r'<tr><th scope="row">(\d\d)</th>(.*?)</tr>', page)
    }
    marked = {
        (hour, place): css.split()[-1]
        for hour, row in cells.items()
        for place, css in enumerate(row)
        if css.split()[-1] in ("closed", "frozen")
    }
    assert marked == {("04", 1): "closed", ("05", 1): "closed", ("06", 1): "closed", ("10", 1): "frozen"}
    assert "<script>alert" not in page
