"""Why, how it went, what is planned: by the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.domain.ids import WorkerId
from foliot.domain.outcomes import Succeeded
from foliot.services.runs.statistics import roll_up
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WORKER = WorkerId(uuid4())
HOURLY = {"kind": "cron", "expr": "0 * * * *", "timezone": "UTC"}
MANUAL = {"kind": "manual"}


async def work(api: ApiHarness, clock: ManualClock, took: timedelta) -> None:
    runs = await claim(api.database, await api.register_worker(WORKER), "default", ["http"], 100, Turns())
    clock.advance(took)
    reports = [Report(run.run_id, run.job_id, run.fence, WORKER, Succeeded()) for run in runs]
    assert len(await report(api.database, reports)) == len(runs)


async def why(api: ApiHarness, path: str, **params: Any) -> dict[str, Any]:
    answer = await api.request("GET", f"{path}/explain", role="viewer", params=params)
    assert answer.status_code == 200, answer.text
    reported: dict[str, Any] = answer.json()
    return reported


async def agenda(api: ApiHarness, role: str = "viewer", **params: Any) -> dict[str, Any]:
    answer = await api.request("GET", "/agenda", role=role, params=params)
    assert answer.status_code == 200, answer.text
    reported: dict[str, Any] = answer.json()
    return reported


async def test_a_job_explains_its_last_planned_time_where_none_is_named(
    api: ApiHarness, clock: ManualClock
) -> None:
    clock.advance(MINUTE)
    made = await api.create_job(schedule=HOURLY)
    path = f"/jobs/{made['id']}"
    first = await why(api, path)
    assert (first["verdict"], first["run"]) == ("will_wait", None)
    assert first["sentence"] == (
        "It is planned for 2027-01-15 13:00:00 UTC, but its run would wait: "
        "no worker serves queue default for type http now (no worker is alive)."
    )
    assert first["what_next"] == ["Start a worker that serves queue default and has a handler for http."]
    clock.advance(59 * MINUTE)
    await tick(api.database)
    clock.advance(MINUTE)
    reported = await why(api, path)
    run = (await api.request("GET", "/runs")).json()["items"][0]
    assert (reported["verdict"], reported["run"]["id"], reported["at"]) == (
        "waiting",
        run["id"],
        "2027-01-15T13:00:00Z",
    )
    assert reported["sentence"] == "Run 1 is ready, but no worker serves queue default for type http."
    assert reported["facts"] == ["No worker is alive."]
    assert reported["what_next"] == ["Start a worker that serves queue default and has a handler for http."]
    assert reported["nearest"]["before"]["planned_for"] == "2027-01-15T13:00:00Z"
    assert reported["nearest"]["after"]["planned_for"] == "2027-01-15T14:00:00Z"
    assert reported["links"]["cancel"] == f"/api/v1/runs/{run['id']}/cancel"
    for link in ("job", "next", "runs", "run", "attempts"):
        assert (
            await api.request("GET", reported["links"][link].removeprefix("/api/v1"))
        ).status_code == 200, link
    await work(api, clock, MINUTE)
    assert (await why(api, f"/runs/{run['id']}"))["verdict"] == "ran"


async def test_an_instant_may_be_past_future_or_written_with_an_offset(
    api: ApiHarness, clock: ManualClock
) -> None:
    await api.register_worker(WORKER, ["default"], ["http"])
    made = await api.create_job(schedule=HOURLY)
    path = f"/jobs/{made['id']}"
    for at, verdict in (
        ("2027-01-15T11:00:00Z", "not_created"),
        ("2027-01-15T12:30:00Z", "not_planned"),
        ("2027-01-16T08:00:00Z", "will_run"),
        ("2027-01-16T08:00:00+02:00", "will_run"),  # the plus arrives as a space where it is not escaped
    ):
        assert (await why(api, path, at=at))["verdict"] == verdict, at
    raw = await api.request("GET", f"{path}/explain?at=2027-01-16T08:00:00+02:00")
    assert (raw.status_code, raw.json()["at"]) == (200, "2027-01-16T06:00:00Z")
    for at in ("2027-01-16T08:00:00", "yesterday", "", "2027-13-01T00:00:00Z"):
        refused = await api.request("GET", f"{path}/explain", params={"at": at})
        assert (refused.status_code, list(problems(refused))) == (422, ["/at"]), at


async def test_a_stopped_job_says_by_whom_it_can_be_woken(api: ApiHarness, clock: ManualClock) -> None:
    await api.register_worker(WORKER, ["default"], ["http"])
    made = await api.create_job(schedule=HOURLY)
    path = f"/jobs/{made['id']}"
    await api.request("POST", f"{path}/pause", json={"reason": "migration", "until": "2027-01-15T15:30:00Z"})
    clock.advance(HOUR + MINUTE)
    reported = await why(api, path)
    assert reported["sentence"] == (
        "Nothing is recorded for 2027-01-15 13:00:00 UTC: the job is paused until 2027-01-15 15:30:00 UTC "
        "by editor-acme (migration)."
    )
    assert (reported["what_next"], reported["job_status"]) == (["Resume it."], "paused")
    assert reported["links"]["resume"] == f"/api/v1{path}/resume"
    assert (await why(api, path, at="2027-01-15T15:00:00Z"))["verdict"] == "will_not_run"
    assert (await why(api, path, at="2027-01-15T16:00:00Z"))["verdict"] == "will_run"


async def test_a_waiting_run_says_what_for_and_where_it_stands(api: ApiHarness) -> None:
    made = await api.create_job(schedule=MANUAL)
    await api.request("POST", f"/jobs/{made['id']}/run")
    runs = [(await api.request("POST", f"/jobs/{made['id']}/run")).json() for _ in range(2)]
    reported = await why(api, f"/runs/{runs[1]['id']}")
    assert (
        reported["sentence"]
        == "Run 3 waits for an earlier run of its job to end (run 1); it is number 2 of 2 in line."
    )
    assert reported["place"] == {
        "waits_for": "turn",
        "position": 2,
        "of": 2,
        "behind": "run 1",
        "until": None,
    }
    assert (reported["at"], reported["nearest"]) == (None, None)


async def test_a_job_and_a_workspace_tell_how_it_went(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job(schedule=HOURLY)
    await api.create_job(name="off", enabled=False)
    await api.create_job(who="globex", name="theirs")
    for _ in range(3):
        clock.advance(HOUR)
        await tick(api.database)
        await work(api, clock, 2 * MINUTE)
        clock.advance(-2 * MINUTE)
    own = (await api.request("GET", f"/jobs/{made['id']}/stats", role="viewer")).json()
    assert (own["totals"]["runs"], own["totals"]["success_rate"], own["totals"]["average_duration_ms"]) == (
        3,
        100,
        120_000,
    )
    assert own["newest"] == {"runs": 3, "duration_ms": dict.fromkeys(("p50", "p95", "p99"), 120_000), "lag_ms": {"p50": 0, "p95": 0, "p99": 0}}  # fmt: skip
    assert (own["last_run_status"], [day["day"] for day in own["days"]]) == ("succeeded", ["2027-01-15"])
    stats = (await api.request("GET", "/stats", role="viewer")).json()
    assert (stats["totals"], stats["days"], stats["newest"]) == (own["totals"], own["days"], own["newest"])
    assert {status: jobs for status, jobs in stats["jobs"].items() if jobs} == {"active": 1, "disabled": 1}
    assert stats["now"] == {
        "ready": 0,
        "waiting": 0,
        "running": 0,
        "late": 0,
        "next_due_at": "2027-01-15T16:00:00Z",
    }
    moment = (await api.request("GET", "/stats/now", role="viewer", params={"jobs": "true"})).json()
    assert moment == {name: stats[name] for name in ("as_of", "now", "newest", "jobs")} | {"totals": None}
    with_days = (await api.request("GET", "/stats/now", role="viewer", params={"days": 30})).json()
    assert (with_days["totals"], with_days["jobs"]) == (stats["totals"], None)
    assert (await api.request("GET", "/stats/now")).json()["jobs"] is None
    clock.advance(2 * HOUR)
    assert (await api.request("GET", "/stats")).json()["now"]["late"] == 1
    clock.advance(DAY)
    await roll_up(api.database)
    assert (await api.request("GET", "/stats")).json()["totals"] == own["totals"]
    assert (await api.request("GET", "/stats", params={"days": 1})).json()["days"] == []
    refused = await api.request("GET", "/stats", params={"days": 0})
    assert (refused.status_code, list(problems(refused))) == (422, ["/days"])


async def test_the_agenda_lists_what_is_planned_with_what_it_should_take(
    api: ApiHarness, clock: ManualClock
) -> None:
    daily = await api.create_job(
        name="report",
        tags=["money"],
        schedule={"kind": "cron", "expr": "30 14 * * *", "timezone": "Europe/Paris"},
    )
    beat = await api.create_job(name="beat", schedule={"kind": "interval", "every": "10m"})
    await api.create_job(name="off", enabled=False, schedule=HOURLY)
    await api.create_job(who="globex", name="theirs", schedule=HOURLY)
    clock.advance(90 * MINUTE)
    await tick(api.database)
    await work(api, clock, 5 * MINUTE)
    await tick(api.database)
    reported = await agenda(api)
    assert (reported["start"], reported["end"]) == ("2027-01-15T13:35:00Z", "2027-01-16T13:35:00Z")
    assert (reported["truncated"], reported["complete_until"]) == (False, reported["end"])
    line, single = reported["items"]
    assert (line["job_id"], line["count"]) == (beat["id"], 144)
    assert (line["planned_for"], line["last_for"]) == ("2027-01-15T13:40:00Z", "2027-01-16T13:30:00Z")
    assert (line["expected_duration_ms"], line["expected_end_at"]) == (300_000, None)
    assert (single["job_id"], single["job_name"], single["count"], single["fate"]) == (
        daily["id"],
        "report",
        1,
        "runs",
    )
    assert (single["starts_at"], single["planned_local"]) == ("2027-01-16T13:30:00Z", "2027-01-16T14:30:00")
    assert (single["expected_duration_ms"], single["expected_end_at"]) == (300_000, "2027-01-16T13:35:00Z")
    for only in ({"tag": "money"}, {"job": daily["id"]}):
        assert [item["job_id"] for item in (await agenda(api, **only))["items"]] == [daily["id"]], only
    assert (await agenda(api, queue="nowhere"))["items"] == []


async def test_the_density_of_an_agenda_counts_its_runs_and_estimates_those_of_many_jobs(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        await api.create_job(name=f"hourly {number}", schedule=HOURLY)
    await api.create_job(name="off", enabled=False, schedule=HOURLY)
    await api.create_job(who="globex", name="theirs", schedule=HOURLY)
    span = {"from": "2027-01-15T12:00:00Z", "to": "2027-01-16T00:00:00Z", "buckets": 4}
    whole = (await api.request("GET", "/agenda/density", role="viewer", params=span)).json()
    assert (whole["counts"], whole["runs"], whole["bucket_seconds"]) == ([8, 12, 12, 12], 44, 10_800)
    assert (whole["jobs"], whole["counted_jobs"], whole["estimated"]) == (4, 4, False)
    monkeypatch.setattr("foliot.services.jobs.agenda.SAMPLE", 2)
    some = (await api.request("GET", "/agenda/density", params=span)).json()
    assert some == {**whole, "counted_jobs": 2, "estimated": True}
    wrong = await api.request("GET", "/agenda/density", params={**span, "to": span["from"]})
    assert (wrong.status_code, list(problems(wrong))) == (422, ["/to"])


async def test_an_agenda_of_few_lines_says_where_it_ends(api: ApiHarness) -> None:
    for number in range(3):
        await api.create_job(name=f"hourly {number}", schedule=HOURLY)
    found = (await api.request("GET", "/agenda", params={"limit": 4})).json()
    assert (len(found["items"]), found["truncated"]) == (4, True)
    assert found["complete_until"] == found["items"][-1]["starts_at"]


async def test_pauses_and_freezes_show_in_the_agenda(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job(schedule={"kind": "cron", "expr": "0 */6 * * *", "timezone": "UTC"})
    await api.request("POST", f"/jobs/{made['id']}/pause", json={"until": "2027-01-15T20:00:00Z"})
    assert [item["starts_at"] for item in (await agenda(api))["items"]] == [
        "2027-01-16T00:00:00Z",
        "2027-01-16T06:00:00Z",
    ]
    await api.request("POST", f"/jobs/{made['id']}/resume")
    await api.request("POST", f"/jobs/{made['id']}/pause")
    assert (await agenda(api))["items"] == []
    await api.request("POST", f"/jobs/{made['id']}/resume")
    frozen = {
        "start_at": "2027-01-15T17:00:00Z",
        "end_at": "2027-01-15T19:00:00Z",
        "after": "latest",
        "reason": "year end",
    }
    answer = await api.request("POST", "/freezes", role="admin", json=frozen)
    assert answer.status_code == 201, answer.text
    held, *rest = (await agenda(api))["items"]
    assert (held["starts_at"], held["fate"]) == ("2027-01-15T18:00:00Z", "held")
    assert held["notes"] == [
        "A freeze (year end) is in force until 2027-01-15T19:00:00Z: times within it are held, and the newest of them runs at its end."
    ]
    assert [item["fate"] for item in rest] == ["runs"] * 2
    reported = await why(api, f"/jobs/{made['id']}", at="2027-01-15T18:00:00Z")
    assert "a freeze by admin-acme is in force (year end)" in reported["sentence"]


async def test_an_agenda_is_for_a_stretch_ahead_that_is_not_too_long(shared_api: ApiHarness) -> None:
    for params, pointer in (
        ({"from": "2027-01-16T00:00:00Z", "to": "2027-01-15T23:00:00Z"}, "/to"),
        ({"to": "2027-02-20T00:00:00Z"}, "/to"),
        ({"from": "2027-01-01T00:00:00Z", "to": "2027-01-02T00:00:00Z"}, "/to"),
        ({"from": "tonight"}, "/from"),
        ({"job": "x"}, "/job"),
    ):
        refused = await shared_api.request("GET", "/agenda", params=params)
        assert (refused.status_code, list(problems(refused))) == (422, [pointer]), (params, refused.text)
    past = await agenda(shared_api, **{"from": "2027-01-15T00:00:00Z"})
    assert (past["start"], past["end"]) == ("2027-01-15T12:00:00Z", "2027-01-16T00:00:00Z")


async def test_an_agents_agenda_is_of_its_own_jobs(api: ApiHarness) -> None:
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    await api.create_job(schedule=HOURLY)
    mine = (await api.request("POST", "/jobs", role="agent", json=job(schedule=HOURLY))).json()
    assert {item["job_id"] for item in (await agenda(api, role="agent"))["items"]} == {mine["id"]}
    assert len((await agenda(api))["items"]) == 46
    assert (await api.request("GET", "/agenda/density", role="agent")).json()["runs"] == 23
    assert (await api.request("GET", "/agenda/density")).json()["runs"] == 46


@pytest.mark.parametrize(
    "path", ["/jobs?{name}", "/runs?{job}", "/jobs?{tag}", "/runs?{tag}", "/jobs/bulk?{name}", "/stats?{any}"]
)
async def test_repeated_parameters_are_bounded_everywhere(shared_api: ApiHarness, path: str) -> None:
    """5,000 of them in a dozen requests would take the database for everybody."""
    names = ("name", "job", "tag", "any")
    for count in (51, 5_000):
        asked = path.format(**{name: "&".join([f"{name}=abc"] * count) for name in names})
        answer = await shared_api.request("GET", asked)
        assert answer.status_code in (405, 422), answer.text


@pytest.mark.parametrize("text", ["%00", "%0a", "%1b", "%7f", "a%00b"])
async def test_control_characters_in_a_path_find_nothing(shared_api: ApiHarness, text: str) -> None:
    for path in (
        f"/runs/{uuid4()}/artifacts/{text}",
        f"/jobs/{text}",
        f"/workspaces/{text}",
        f"/secrets/{text}",
    ):
        for who, role in (("acme", "admin"), ("system", "")):
            answer = await shared_api.request("GET", path, who=who, role=role)
            assert answer.status_code in (403, 404), (path, answer.text)
