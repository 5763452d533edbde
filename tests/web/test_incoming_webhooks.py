"""Incoming webhooks over HTTP: signed triggers, replays, rates and rotation; check-ins of work that is done elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from foliot.services.scheduling.tick import tick
from foliot.services.settlement.sweep import sweep
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.services.webhooks import triggers, webhooks
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio
SECRET, NEWER = "whsec_" + "c2VjcmV0" * 5, "whsec_" + "bmV3ZXIx" * 5
BODY = '{"branch": "main"}'


async def create(api: ApiHarness, path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await api.request("POST", path, json=body, **more)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def trigger_of(api: ApiHarness, name: str) -> dict[str, Any]:
    await create(api, "/secrets", {"name": f"{name}-hook", "value": SECRET}, role="admin")
    job = await api.create_job(
        name=name, schedule={"kind": "manual"}, payload={"branch": "dev", "full": True}
    )
    return await create(
        api,
        "/webhooks",
        {"name": name, "kind": "trigger", "job_id": job["id"], "secret": {"secret": f"{name}-hook"}},
    )


def signed(clock: ManualClock, message_id: str, body: str = BODY, secret: str = SECRET) -> Mapping[str, str]:
    at = clock.now()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, at, body),
        "content-type": "application/json",
    }


async def call(
    api: ApiHarness, webhook: Mapping[str, Any], headers: Mapping[str, str], body: str = BODY
) -> Any:
    return await api.http.post(webhook["url"], content=body, headers=dict(headers))


async def runs_of(api: ApiHarness, job_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.request("GET", f"/jobs/{job_id}/runs")).json()["items"]
    return found


async def test_a_signed_request_runs_the_job_once_with_its_body_as_input(
    api: ApiHarness, clock: ManualClock
) -> None:
    webhook = await trigger_of(api, "deploy")
    headers = signed(clock, "msg_1")
    first, second = await asyncio.gather(call(api, webhook, headers), call(api, webhook, headers))
    assert sorted((first.status_code, second.status_code)) == [200, 202], (first.text, second.text)
    assert first.json()["run_id"] == second.json()["run_id"]
    [run] = await runs_of(api, webhook["job_id"])
    assert run["trigger"] == "webhook"
    assert run["input"] == {"branch": "main", "full": True}
    assert run["triggered_by"] == "webhook deploy"
    other = await call(api, webhook, signed(clock, "msg_2", "[1]"), "[1]")
    assert other.status_code == 202
    assert [1] in [each["input"].get("payload") for each in await runs_of(api, webhook["job_id"])]


async def test_a_request_that_is_not_signed_or_is_old_runs_nothing(
    api: ApiHarness, clock: ManualClock
) -> None:
    webhook = await trigger_of(api, "guarded")
    headers = signed(clock, "msg_1")
    wrong = [
        {},
        {**headers, "webhook-signature": "v1,AAAA"},
        {**headers, "webhook-id": "msg_2"},
        {**headers, "webhook-timestamp": "soon"},
        signed(clock, "msg_1", secret=NEWER),
    ]
    assert [(await call(api, webhook, each)).status_code for each in wrong] == [401] * 5
    assert (await call(api, webhook, headers, '{"branch": "evil"}')).status_code == 401
    clock.advance(timedelta(minutes=6))
    old = await call(api, webhook, headers)
    assert old.status_code == 401
    assert "5 minutes" in old.json()["detail"]
    assert await runs_of(api, webhook["job_id"]) == []
    seen = (await api.request("GET", f"/webhooks/{webhook['id']}")).json()
    assert "5 minutes" in seen["last_refusal"]
    assert seen["last_call_at"] is None


async def test_both_secrets_verify_while_senders_change_over(api: ApiHarness, clock: ManualClock) -> None:
    webhook = await trigger_of(api, "rotated")
    await create(api, "/secrets", {"name": "rotated-new", "value": NEWER}, role="admin")
    body = {field: webhook[field] for field in ("name", "kind", "job_id", "enabled")}
    both = {**body, "secret": {"secret": "rotated-new"}, "old_secret": {"secret": "rotated-hook"}}
    path = f"/webhooks/{webhook['id']}"
    assert (await api.request("PUT", path, json=both)).status_code == 200
    for place, secret in enumerate((SECRET, NEWER)):
        assert (await call(api, webhook, signed(clock, f"m{place}", secret=secret))).status_code == 202
    done = await api.request("PUT", path, json={**both, "old_secret": None})
    assert done.status_code == 200, done.text
    assert (await call(api, webhook, signed(clock, "m9", secret=SECRET))).status_code == 401
    moved = (await api.request("POST", f"{path}/rotate")).json()
    assert moved["url"] != webhook["url"]
    assert (await call(api, webhook, signed(clock, "m10", secret=NEWER))).status_code == 404
    assert (await call(api, moved, signed(clock, "m11", secret=NEWER))).status_code == 202
    used = await api.request("GET", "/secrets", role="admin", params={"name": "rotated-new"})
    refused = await api.request("DELETE", f"/secrets/{used.json()['items'][0]['id']}", role="admin")
    assert refused.status_code == 409  # the webhook names it


async def test_a_webhook_takes_a_bounded_number_of_messages_a_minute(
    api: ApiHarness, clock: ManualClock
) -> None:
    webhook = await trigger_of(api, "flooded")
    for place in range(triggers.MOST_MESSAGES):
        assert (await call(api, webhook, signed(clock, f"m{place}"))).status_code == 202
    beyond = await call(api, webhook, signed(clock, "one more"))
    assert beyond.status_code == 429
    assert beyond.headers["retry-after"] == "60"
    assert (await call(api, webhook, signed(clock, "m0"))).status_code == 200  # a repeated one is answered
    clock.advance(timedelta(minutes=2))
    assert (await call(api, webhook, signed(clock, "later"))).status_code == 202
    clock.advance(webhooks.MESSAGES_ARE_KEPT)
    assert await webhooks.prune(api.database) == triggers.MOST_MESSAGES


async def test_the_address_is_hidden_from_viewers_and_other_workspaces(api: ApiHarness) -> None:
    webhook = await trigger_of(api, "hidden")
    path = f"/webhooks/{webhook['id']}"
    assert (await api.request("GET", path, role="viewer")).json()["url"] is None
    assert (await api.request("GET", path, who="globex")).status_code == 404
    tried = await api.request("DELETE", path, params={"dry_run": "true"})
    assert tried.json() == {"deleted": webhook["id"]}
    assert (await api.request("DELETE", path)).status_code == 204
    assert (await api.http.post(webhook["url"], content="{}")).status_code == 404


async def watched(api: ApiHarness, name: str, **fields: Any) -> dict[str, Any]:
    """A cron elsewhere that runs every hour."""
    schedule = {"kind": "interval", "every": "1h"}
    job = await api.create_job(name=name, type="check_in", config={}, schedule=schedule, **fields)
    return await create(api, "/webhooks", {"name": name, "kind": "check_in", "job_id": job["id"]})


async def tell(api: ApiHarness, webhook: Mapping[str, Any], state: str, said: str = "") -> dict[str, Any]:
    answer = await api.http.post(f"{webhook['url']}/{state}", content=said)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def come(api: ApiHarness, clock: ManualClock, by: timedelta) -> None:
    """Let time pass, and let the scheduler and the sweeper look."""
    clock.advance(by)
    await tick(api.database)
    await advance_waiting_runs(api.database)


async def test_check_ins_start_and_end_the_run_that_was_planned(api: ApiHarness, clock: ManualClock) -> None:
    webhook = await watched(api, "backup", timeout="2h")
    await come(api, clock, timedelta(hours=1))
    [run] = await runs_of(api, webhook["job_id"])
    why = (await api.request("GET", f"/runs/{run['id']}/explain")).json()
    assert "waits for its check-in" in why["sentence"], why
    clock.advance(timedelta(minutes=1))
    started = await tell(api, webhook, "start")
    assert started["run_id"] == run["id"]
    assert (await runs_of(api, webhook["job_id"]))[0]["status"] == "running"
    clock.advance(timedelta(minutes=10))
    await advance_waiting_runs(api.database)  # its first check-in came in time
    ended = await api.http.get(f"{webhook['url']}/success")
    assert ended.json()["run_id"] == run["id"]
    [run] = await runs_of(api, webhook["job_id"])
    assert run["status"] == "succeeded"
    assert run["duration_ms"] == 600_000


async def test_a_failure_that_is_reported_and_one_that_nobody_reports_both_fail_without_retries(
    api: ApiHarness, clock: ManualClock
) -> None:
    webhook = await watched(api, "sync")
    await come(api, clock, timedelta(hours=1))
    await tell(api, webhook, "fail", "disk full")
    [run] = await runs_of(api, webhook["job_id"])
    assert (run["status"], run["error"]["message"]) == ("failed", "disk full")
    await come(api, clock, timedelta(hours=1))
    await come(api, clock, timedelta(minutes=4))
    assert (await runs_of(api, webhook["job_id"]))[0]["status"] == "ready"
    await come(api, clock, timedelta(minutes=2))
    missed = (await runs_of(api, webhook["job_id"]))[0]
    assert (missed["status"], missed["error"]["code"]) == ("failed", "no_check_in")
    late = await tell(api, webhook, "success")  # later than allowed, and still good news
    assert late["recorded"] is True
    newest = (await runs_of(api, webhook["job_id"]))[0]
    assert (newest["status"], newest["trigger"]) == ("succeeded", "webhook")


async def test_a_check_in_shortly_before_a_planned_time_stands_for_it(
    api: ApiHarness, clock: ManualClock
) -> None:
    webhook = await watched(api, "early")
    clock.advance(timedelta(minutes=59, seconds=58))
    await tell(api, webhook, "success")
    await come(api, clock, timedelta(seconds=3))
    await come(api, clock, timedelta(minutes=10))
    runs = await runs_of(api, webhook["job_id"])
    assert [each["status"] for each in runs] == ["skipped", "succeeded"]
    await come(api, clock, timedelta(minutes=50))
    assert (await runs_of(api, webhook["job_id"]))[0]["status"] == "ready"


async def test_a_paused_job_records_no_check_ins(api: ApiHarness) -> None:
    webhook = await watched(api, "paused")
    await api.request("POST", f"/jobs/{webhook['job_id']}/pause")
    assert (await tell(api, webhook, "fail"))["recorded"] is False
    assert await runs_of(api, webhook["job_id"]) == []


async def test_work_elsewhere_counts_against_no_limit(api: ApiHarness, clock: ManualClock) -> None:
    webhook = await watched(api, "unlimited")
    await api.request("PUT", "/limits", role="admin", json={"cap": 1})

    async def in_use() -> int:
        found: int = (await api.request("GET", "/limits")).json()["items"][0]["in_use"]
        return found

    await tell(api, webhook, "start")
    await advance_waiting_runs(api.database)
    assert await in_use() == 0
    await tell(api, webhook, "success")
    assert await in_use() == 0


async def test_a_start_without_an_end_times_out_without_a_retry(api: ApiHarness, clock: ManualClock) -> None:
    webhook = await watched(api, "hanging", timeout="10m")
    started = await tell(api, webhook, "start")
    clock.advance(timedelta(minutes=11))
    await sweep(api.database)
    [run] = await runs_of(api, webhook["job_id"])
    assert (run["id"], run["status"]) == (started["run_id"], "timed_out")


async def test_only_jobs_of_the_type_take_check_ins(api: ApiHarness) -> None:
    job = await api.create_job(name="plain")
    body = {"name": "plain", "kind": "check_in", "job_id": job["id"]}
    refused = await api.request("POST", "/webhooks", json=body)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/kind"
    unsigned = await api.request("POST", "/webhooks", json={**body, "kind": "trigger"})
    assert unsigned.status_code == 422
