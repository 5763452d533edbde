"""/usage and /budgets: sums of what runs used, and how much they may use."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, problems
from tests.web.test_worker import claimed, due, registered, say

pytestmark = pytest.mark.anyio
BUDGET = {"unit": "usd", "amount": "0.5", "period": "month", "warn_at": 0.8, "action": "pause"}


async def worked(
    api: ApiHarness, clock: ManualClock, usage: dict[str, Any], **fields: Any
) -> tuple[Any, Any]:
    """Create a job and let a worker of HTTP run it once; return the job and its run."""
    api.keys["acme", "worker"] = await api.create_key("acme", MemberRole.VIEWER, scopes=frozenset({"worker"}))
    worker = (await registered(api))["worker_id"]
    job = await due(api, clock, target={"host": "h1"}, **fields)
    [work] = await claimed(api, worker)
    held = {"run_id": work["run_id"], "fence": work["fence"]}
    report = {**held, "outcome": "succeeded", "usage": usage}
    assert (await say(api, "report", worker_id=worker, reports=[report]))["items"][0]["status"] == 200
    return job, (await api.request("GET", f"/runs/{work['run_id']}")).json()


@pytest.mark.requirement("S3-22")
async def test_usage_of_a_remote_worker_is_on_the_run_and_in_the_sums(
    api: ApiHarness, clock: ManualClock
) -> None:
    job, run = await worked(api, clock, {"tokens": 1200, "usd": "0.30"}, budgets=[BUDGET])
    assert job["budgets"] == [BUDGET]
    assert run["usage"] == {"tokens": "1200", "usd": "0.3"}
    month = f"{clock.now():%Y-%m}"
    found = (await api.request("GET", "/usage", role="viewer")).json()
    assert (found["month"], found["totals"]) == (month, {"tokens": "1200", "usd": "0.3"})
    assert found["days"] == [{"day": f"{clock.now():%Y-%m-%d}", "usage": found["totals"]}]
    assert found["jobs"] == [{"job_id": job["id"], "job_name": job["name"], "usage": found["totals"]}]
    of_job = (await api.request("GET", f"/usage?job={job['id']}&unit=usd")).json()
    assert (of_job["totals"], of_job["budgets"][0]["used"]) == ({"usd": "0.3"}, "0.3")
    assert of_job["budgets"][0]["level"] == "within"
    assert (await api.request("GET", "/usage?month=2020-01")).json()["totals"] == {}
    for month in ("2020-13", "9999-12"):
        assert (await api.request("GET", f"/usage?month={month}")).status_code == 422
    assert (await api.request("GET", "/usage", who="globex")).json()["totals"] == {}
    assert (await api.request("GET", f"/usage?job={job['id']}", who="globex")).status_code == 404


async def test_usage_reported_for_a_run_pauses_a_job_over_its_budget(
    api: ApiHarness, clock: ManualClock
) -> None:
    job, run = await worked(api, clock, {}, budgets=[BUDGET])
    at = f"/runs/{run['id']}/usage"
    tried = await api.request("POST", f"{at}?dry_run=true", json={"usage": {"usd": 1}})
    assert (tried.status_code, (await api.request("GET", "/usage")).json()["totals"]) == (200, {})
    seen = await api.request("POST", at, json={"usage": {"usd": 0.1}}, role="operator")
    assert seen.json()["usage"] == {"usd": "0.1"}
    same = {"Idempotency-Key": "once"}
    for _ in range(2):
        seen = await api.request("POST", at, json={"usage": {"usd": "0.45"}}, headers=same)
    assert seen.json()["usage"] == {"usd": "0.55"}
    found = (await api.request("GET", f"/jobs/{job['id']}")).json()
    assert (found["status"], found["status_reason"]) == (
        "paused",
        "Its budget is used up: 0.55 of 0.5 usd used this month (UTC).",
    )
    assert (
        found["paused_until"]
        == (await api.request("GET", f"/usage?job={job['id']}")).json()["budgets"][0]["resets_at"]
    )
    assert (await api.request("POST", at, json={"usage": {"usd": 1}}, who="globex")).status_code == 404
    assert (await api.request("POST", at, json={"usage": {"usd": 1}}, role="viewer")).status_code == 403


@pytest.mark.parametrize(
    ("usage", "pointer"),
    [
        ({"usd": -1}, "/usage/usd"),
        ({"usd": "NaN"}, "/usage/usd"),
        ({"usd": "0.0000000001"}, "/usage/usd"),
        ({"usd": "1" * 60}, "/usage/usd"),
        ({"usd": True}, "/usage/usd"),
        ({"U S D": 1}, "/usage/U S D"),
        ({f"u{n}": 1 for n in range(21)}, "/usage"),
        ({}, "/usage"),
    ],
)
async def test_what_is_no_usage_is_refused(
    api: ApiHarness, clock: ManualClock, usage: dict[str, Any], pointer: str
) -> None:
    _, run = await worked(api, clock, {})
    answer = await api.request("POST", f"/runs/{run['id']}/usage", json={"usage": usage})
    assert answer.status_code == 422
    assert pointer in problems(answer)


async def test_sums_may_be_larger_than_any_single_amount(api: ApiHarness, clock: ManualClock) -> None:
    largest = 10**15 - 1
    job, run = await worked(api, clock, {"tokens": largest}, budgets=[{**BUDGET, "unit": "tokens"}])
    seen = await api.request("POST", f"/runs/{run['id']}/usage", json={"usage": {"tokens": largest}})
    assert (seen.status_code, seen.json()["usage"]) == (200, {"tokens": str(2 * largest)})
    found = (await api.request("GET", f"/usage?job={job['id']}")).json()
    assert (found["totals"], found["jobs"][0]["usage"]) == ({"tokens": str(2 * largest)},) * 2
    assert (found["days"][0]["usage"], found["budgets"][0]["used"]) == (found["totals"], str(2 * largest))


async def test_budgets_of_the_workspace_are_set_by_administrators_and_read_by_all(
    api: ApiHarness, clock: ManualClock
) -> None:
    assert (await api.request("GET", "/budgets", role="viewer")).json() == {
        "dry_run": False,
        "items": [],
        "closed_until": None,
    }
    assert (await api.request("PUT", "/budgets", role="editor", json={"items": [BUDGET]})).status_code == 403
    twice = await api.request("PUT", "/budgets", role="admin", json={"items": [BUDGET, BUDGET]})
    assert (twice.status_code, list(problems(twice))) == (422, ["/items"])
    made = (await api.request("PUT", "/budgets", role="admin", json={"items": [BUDGET]})).json()
    assert [(each["used"], each["level"]) for each in made["items"]] == [("0", "within")]
    await worked(api, clock, {"usd": 1})
    found = (await api.request("GET", "/budgets")).json()
    assert (found["items"][0]["level"], found["closed_until"]) == ("exceeded", found["items"][0]["resets_at"])
    audit = (await api.request("GET", "/audit?action=budgets", role="admin")).json()["items"]
    assert [each["after"]["budgets"][0]["amount"] for each in audit] == ["0.5"]


async def test_a_job_keeps_its_budgets_through_edits_and_refuses_two_of_a_kind(api: ApiHarness) -> None:
    job = await api.create_job(budgets=[{"unit": "usd", "amount": 25.50}])
    assert job["budgets"] == [{**BUDGET, "amount": "25.5"}]
    put = await api.request("PUT", f"/jobs/{job['id']}", json={**_writable(job), "description": "x"})
    assert put.json()["budgets"] == job["budgets"]
    wrong = await api.request("PATCH", f"/jobs/{job['id']}", json={"budgets": [BUDGET, BUDGET]})
    assert list(problems(wrong)) == ["/budgets"]
    gone = await api.request("PATCH", f"/jobs/{job['id']}", json={"budgets": []})
    assert gone.json()["budgets"] == []
    [change] = [
        each
        for each in (await api.request("GET", f"/jobs/{job['id']}/revisions")).json()["items"][0]["changes"]
        if each["path"].startswith("/budgets")
    ]
    assert change["before"]


async def test_an_agent_sees_the_usage_of_its_own_jobs(api: ApiHarness, clock: ManualClock) -> None:
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    job, _ = await worked(api, clock, {"usd": 1})
    assert (await api.request("GET", "/usage", role="agent")).json()["totals"] == {}
    assert (await api.request("GET", f"/usage?job={job['id']}", role="agent")).status_code == 404
    assert (await api.request("GET", "/budgets", role="agent")).status_code == 403


def _writable(job: dict[str, Any]) -> dict[str, Any]:
    return {name: job[name] for name in ("name", "type", "config", "schedule", "budgets")}
