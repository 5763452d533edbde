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
from tests.web.test_console import HOSTILE, signed_in
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
