"""Planned times that are to pass, and those that went by: skip-next and backfill by the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.services.scheduling.tick import tick
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, problems

pytestmark = pytest.mark.anyio
MINUTELY = {"kind": "interval", "every": "1m"}


async def passed(
    api: ApiHarness, clock: ManualClock, job_id: str, minutes: int
) -> list[tuple[str, str | None]]:
    """The records that so many minutes leave, oldest first."""
    for _ in range(minutes):
        clock.advance(timedelta(minutes=1))
        while (await tick(api.database)).looked_at:
            pass
    found = (await api.request("GET", f"/jobs/{job_id}/runs")).json()["items"]
    return [(each["planned_for"][11:16], each["skip_reason"]) for each in found[::-1]]


async def test_the_next_times_pass_and_the_one_after_runs(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job(schedule=MINUTELY, overlap="concurrent")
    answer = await api.request(
        "POST", f"/jobs/{made['id']}/skip-next", role="operator", json={"n": 2, "reason": "holiday"}
    )
    reported = answer.json()
    assert (answer.status_code, reported["count"], reported["next_run_at"]) == (
        200,
        2,
        "2027-01-15T12:03:00Z",
    )
    assert [each["planned_for"] for each in reported["skipped"]] == [
        "2027-01-15T12:01:00Z",
        "2027-01-15T12:02:00Z",
    ]
    assert await passed(api, clock, made["id"], 4) == [
        ("12:01", "operator"),
        ("12:02", "operator"),
        ("12:03", None),
        ("12:04", None),
    ]


async def test_without_a_body_the_next_one_alone_passes(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job(schedule=MINUTELY, overlap="concurrent")
    reported = (await api.request("POST", f"/jobs/{made['id']}/skip-next")).json()
    assert (reported["count"], reported["reason"]) == (1, "Skipped by hand.")
    assert await passed(api, clock, made["id"], 2) == [("12:01", "operator"), ("12:02", None)]


async def test_all_until_an_instant_pass(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job(schedule=MINUTELY, overlap="concurrent")
    path = f"/jobs/{made['id']}/skip-next"
    reported = (await api.request("POST", path, json={"until": "2027-01-15T12:03:30Z"})).json()
    assert (reported["count"], reported["next_run_at"]) == (3, "2027-01-15T12:04:00Z")
    assert [reason for _, reason in await passed(api, clock, made["id"], 5)] == ["operator"] * 3 + [None] * 2


async def test_explain_knows_that_a_later_time_will_pass(api: ApiHarness) -> None:
    made = await api.create_job(schedule=MINUTELY)
    await api.request("POST", f"/jobs/{made['id']}/skip-next", json={"n": 3})
    answer = await api.request("GET", f"/jobs/{made['id']}/explain", params={"at": "2027-01-15T12:03:00Z"})
    assert answer.status_code == 200, answer.text
    assert "skip" in answer.text


async def test_a_skip_can_be_taken_back(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job(schedule=MINUTELY, overlap="concurrent")
    path = f"/jobs/{made['id']}/skip-next"
    await api.request("POST", path, json={"n": 5})
    assert (await api.request("DELETE", path)).status_code == 200
    assert await passed(api, clock, made["id"], 1) == [("12:01", None)]
    assert (await api.request("DELETE", path)).status_code == 409


@pytest.mark.parametrize(
    ("schedule", "body", "status", "pointer"),
    [
        ({"kind": "manual"}, {}, 409, None),
        ({"kind": "interval", "every": "1m", "mode": "fixed_delay"}, {"n": 2}, 409, None),
        (MINUTELY, {"until": "2027-01-15T12:00:30Z"}, 422, "/until"),
        (MINUTELY, {"until": "2027-06-15T12:00:30Z"}, 422, "/until"),
        (MINUTELY, {"n": 0}, 422, "/n"),
    ],
)
async def test_what_cannot_pass_is_refused(
    api: ApiHarness, schedule: Any, body: Any, status: int, pointer: str | None
) -> None:
    made = await api.create_job(schedule=schedule)
    answer = await api.request("POST", f"/jobs/{made['id']}/skip-next", json=body)
    assert answer.status_code == status
    if pointer is not None:
        assert list(problems(answer)) == [pointer]


async def test_a_backfill_is_counted_first_and_then_made(api: ApiHarness, clock: ManualClock) -> None:
    clock.advance(timedelta(days=1))
    made = await api.create_job(schedule={"kind": "cron", "expr": "0 * * * *"})
    path, stretch = (
        f"/jobs/{made['id']}/backfill",
        {"from": "2027-01-16T00:00:00Z", "to": "2027-01-16T06:00:00Z"},
    )
    tried = (await api.request("POST", path, role="operator", json={**stretch, "dry_run": True})).json()
    assert tried == {
        "dry_run": True,
        "count": 6,
        "first": "2027-01-16T00:00:00Z",
        "last": "2027-01-16T05:00:00Z",
        "run_ids": [],
    }
    api.hints.clear()
    done = (await api.request("POST", path, json={**stretch, "order": "newest_first"})).json()
    assert (done["count"], len(done["run_ids"]), api.hints) == (6, 6, ["ready"])
    first = (await api.request("GET", f"/runs/{done['run_ids'][0]}")).json()
    assert (first["trigger"], first["planned_for"]) == ("backfill", "2027-01-16T05:00:00Z")
    assert (await api.request("POST", path, json=stretch)).json()["count"] == 0


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"from": "2027-01-15T00:00:00Z", "to": "2027-01-14T00:00:00Z"}, "/to"),
        ({"from": "2027-01-15T00:00:00Z", "to": "2028-01-14T00:00:00Z"}, "/to"),
        ({"from": "2027-01-01T00:00:00Z", "to": "2027-01-14T00:00:00Z", "max": 3}, "/to"),
        ({"to": "2027-01-14T00:00:00Z"}, "/from"),
        ({"from": "2027-01-01T00:00:00Z", "to": "2027-01-14T00:00:00Z", "order": "random"}, "/order"),
    ],
)
async def test_a_wrong_stretch_is_refused_where_it_is_wrong(api: ApiHarness, body: Any, pointer: str) -> None:
    made = await api.create_job(schedule={"kind": "cron", "expr": "0 * * * *"})
    answer = await api.request("POST", f"/jobs/{made['id']}/backfill", json=body)
    assert (answer.status_code, list(problems(answer))) == (422, [pointer])


async def test_to_an_agent_the_jobs_of_others_are_not_there_for_any_verb(api: ApiHarness) -> None:
    made = await api.create_job()
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    stretch = {"from": "2027-01-01T00:00:00Z", "to": "2027-01-02T00:00:00Z"}
    bodies = {"pause": {}, "resume": {}, "disable": {}, "run": {}, "skip-next": {}, "backfill": stretch}
    for verb, body in bodies.items():
        answer = await api.request("POST", f"/jobs/{made['id']}/{verb}", role="agent", json=body)
        assert answer.status_code == 404, verb
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["status"] == "active"


async def test_a_job_is_type_off_and_on_again(api: ApiHarness) -> None:
    made = await api.create_job()
    off = (
        await api.request("POST", f"/jobs/{made['id']}/disable", role="operator", json={"reason": "old"})
    ).json()
    assert (off["status"], off["status_reason"], off["next_run_at"]) == ("disabled", "old", None)
    assert (await api.request("POST", f"/jobs/{made['id']}/resume")).json()["status"] == "active"
