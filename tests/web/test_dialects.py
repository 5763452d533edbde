"""The interfaces of other systems: their words and shapes, with the rules and the records of the API."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.ids import WorkerId
from foliot.storage.tx import Database
from foliot.web.dialects import DIALECTS
from foliot.web.dialects.job_fields import older_names
from tests.web.conftest import ApiHarness, open_api
from tests.web.test_console_runs import fail_run

pytestmark = pytest.mark.anyio
DOCS = Path(__file__).parents[2] / "docs" / "reference"
DAILY_REPORT = {
    "name": "Daily report",
    "workflow_id": 1,
    "trigger_node_id": "trigger_schedule_abc123",
    "interval_seconds": 86400,
    "total_repeats": 3,
    "max_retries": 3,
    "timeout_seconds": 600,
    "trigger_payload": {"report_type": "daily"},
}


@pytest.fixture
async def api(database: Database) -> AsyncIterator[ApiHarness]:
    async with open_api(database, dialects=DIALECTS) as made:
        yield made


async def ask(api: ApiHarness, method: str, path: str, status: int = 200, **more: Any) -> Any:
    answer = await api.request(method, path, **more)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def act(api: ApiHarness, name: str, role: str = "editor", **params: Any) -> dict[str, Any]:
    body = {"Params": [{"Name": each, "Value": value} for each, value in params.items()]}
    found: dict[str, Any] = await ask(api, "POST", f"/actions/{name}", json=body, role=role)
    return found


def output(answer: dict[str, Any]) -> dict[str, Any]:
    return {each["Name"]: each["Value"] for each in answer["Params"]}


@pytest.mark.parametrize(
    ("page", "path", "status"),
    [
        ("scheduled-jobs", "/scheduled-jobs", 201),
        ("actions", "/actions/create-scheduled-job", 200),
        ("schedules", "/schedules/", 201),
        ("job-fields", "/jobs", 201),
    ],
)
async def test_the_samples_of_a_dialects_page_are_accepted(
    api: ApiHarness, page: str, path: str, status: int
) -> None:
    text = (DOCS / f"dialect-{page}.md").read_text()
    samples = [json.loads(each) for each in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    assert samples
    for sample in samples:
        answer = await ask(api, "POST", path, status, json=sample)
        assert answer.get("ResultCode", "SUCCESS") == "SUCCESS", answer


@pytest.mark.requirement("S3-15", "S3-16", "S3-17")
async def test_schedules_by_seconds_are_created_listed_edited_and_deleted(api: ApiHarness) -> None:
    made = await ask(api, "POST", "/schedules/", 201, json=DAILY_REPORT)
    assert {name: made[name] for name in DAILY_REPORT} == DAILY_REPORT
    assert (made["status"], made["run_count"], made["last_error"]) == ("active", 0, None)
    job = await ask(api, "GET", f"/jobs/{made['id']}")
    retry = job["retry"]
    assert (retry["max"], retry["strategy"], retry["past_next"]) == (3, "interval_exponential", True)
    assert (job["breaker"], job["max_runs"], job["type"]) == ({"after": 1, "action": "fail"}, 3, "event")
    listed = await ask(api, "GET", "/schedules/?status=active&workflow_id=1")
    assert ([each["id"] for each in listed["items"]], listed["total"]) == ([made["id"]], 1)
    assert (await ask(api, "GET", "/schedules/?workflow_id=2"))["total"] == 0
    path = f"/schedules/{made['id']}/"
    edited = await ask(api, "PATCH", path, json={"interval_seconds": 60, "total_repeats": 0})
    assert (edited["interval_seconds"], edited["total_repeats"]) == (60, 0)
    await ask(api, "DELETE", path, 204)
    assert (await ask(api, "GET", "/schedules/"))["total"] == 0


@pytest.mark.requirement("S3-18", "S3-19")
async def test_an_illegal_pause_or_resume_of_a_schedule_is_a_bad_request(api: ApiHarness) -> None:
    made = await ask(api, "POST", "/schedules/", 201, json=DAILY_REPORT)
    path = f"/schedules/{made['id']}"
    await ask(api, "POST", f"{path}/resume/", 400)
    paused = await ask(api, "POST", f"{path}/pause/")
    assert (paused["status"], paused["next_run_at"]) == ("paused", None)
    await ask(api, "POST", f"{path}/pause/", 400)
    assert (await ask(api, "POST", f"{path}/resume/"))["status"] == "active"
    await ask(api, "POST", f"/jobs/{made['id']}/disable", json={})
    assert (await ask(api, "GET", f"{path}/"))["status"] == "paused"
    assert (await ask(api, "POST", f"{path}/resume/"))["status"] == "active"


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [({"kind": "manual"}, None), ({"kind": "cron", "expr": "0 9 * * *"}, None), ({"kind": "interval", "every": "1.5s"}, 1)],
)  # fmt: skip
async def test_a_job_of_any_schedule_is_shown_paused_and_resumed_as_a_schedule(
    api: ApiHarness, schedule: dict[str, Any], seconds: int | None
) -> None:
    event = {"name": "a", "type": "event", "config": {"url": "https://example.test"}, "schedule": schedule}
    job = await ask(api, "POST", "/jobs", 201, json=event)
    path = f"/schedules/{job['id']}"
    assert (await ask(api, "GET", f"{path}/"))["interval_seconds"] == seconds
    assert (await ask(api, "POST", f"{path}/pause/"))["status"] == "paused"
    assert (await ask(api, "POST", f"{path}/resume/"))["status"] == "active"


async def test_schedules_are_found_behind_other_jobs_that_send_events(api: ApiHarness) -> None:
    made = [
        await ask(api, "POST", "/schedules/", 201, json={**DAILY_REPORT, "workflow_id": n}) for n in (1, 2)
    ]
    event = {
        "name": "a",
        "type": "event",
        "config": {"url": "https://example.test"},
        "schedule": {"kind": "manual"},
    }
    await ask(api, "POST", "/jobs", 201, json=event)
    for number, each in enumerate(made, 1):
        found = await ask(api, "GET", f"/schedules/?limit=1&workflow_id={number}")
        assert [one["id"] for one in found["items"]] == [each["id"]]
    assert len((await ask(api, "GET", "/schedules/?limit=1"))["items"]) == 1


@pytest.mark.requirement("S3-20")
async def test_a_batch_deletes_exactly_the_callers_own(api: ApiHarness) -> None:
    mine = await ask(api, "POST", "/schedules/", 201, json=DAILY_REPORT)
    theirs = await ask(api, "POST", "/schedules/", 201, json=DAILY_REPORT, who="globex")
    done = await ask(
        api, "POST", "/schedules/batch-delete/", json={"schedule_ids": [mine["id"], theirs["id"]]}
    )
    assert done == {"deleted": 1}
    assert (await ask(api, "GET", f"/schedules/{theirs['id']}/", who="globex"))["status"] == "active"


@pytest.mark.requirement("S1-API-1", "S1-API-2", "S1-API-3", "S1-API-4", "S1-API-5", "S1-API-6", "S1-API-7")
async def test_scheduled_jobs_speak_camel_case_and_capitals(api: ApiHarness) -> None:
    first = await ask(
        api,
        "POST",
        "/scheduled-jobs",
        201,
        json={
            "workspaceId": "any",
            "name": "sync",
            "jobType": "DATA_SYNC",
            "schedule": "30 6 * * *",
            "configuration": {"source": "meta"},
            "notifyOnFailure": {"email": True, "whatsapp": False, "slack": True},
            "notifyRecipients": ["ops@example.test"],
        },
    )
    assert (first["jobType"], first["schedule"], first["timezone"]) == ("DATA_SYNC", "30 6 * * *", "UTC")
    assert (first["enabled"], first["status"]) == (True, "ACTIVE")
    assert first["notifyOnFailure"] == {"email": True, "whatsapp": False, "slack": True}
    notify = {"email": True, "slack": True, "whatsapp": False, "recipients": ["ops@example.test"]}
    assert (await ask(api, "GET", f"/jobs/{first['id']}"))["notify"] == notify
    second = await ask(
        api,
        "POST",
        "/scheduled-jobs",
        201,
        json={
            "name": "report", "jobType": "REPORT_GENERATION", "schedule": "0 9 * * 1", "timezone": "Europe/Madrid",
            "dependsOnJobId": first["id"], "dependencyDelayMinutes": 30, "enabled": False,
        },
    )  # fmt: skip
    assert (second["dependsOnJobId"], second["dependencyDelayMinutes"]) == (first["id"], 30)
    assert (second["enabled"], second["timezone"]) == (False, "Europe/Madrid")
    path = f"/scheduled-jobs/{first['id']}"
    changed = await ask(
        api, "PUT", path, json={"schedule": "0 7 * * *", "configuration": {"source": "google"}}
    )
    assert (changed["schedule"], changed["configuration"]) == ("0 7 * * *", {"source": "google"})
    assert changed["notifyRecipients"] == ["ops@example.test"]
    quiet = await ask(api, "PUT", path, json={"notifyOnFailure": {"email": False}})
    assert quiet["notifyOnFailure"] == {"email": False, "whatsapp": False, "slack": False}
    assert quiet["notifyRecipients"] == ["ops@example.test"]
    unsaid = await ask(api, "PUT", path, json={"notifyOnFailure": None, "notifyRecipients": None})
    assert unsaid["notifyOnFailure"] == {"email": True, "whatsapp": False, "slack": False}
    assert (await ask(api, "GET", f"/jobs/{first['id']}"))["notify"] is None
    assert (await ask(api, "POST", f"{path}/pause"))["status"] == "PAUSED"
    assert (await ask(api, "POST", f"{path}/resume"))["status"] == "ACTIVE"
    assert {each["name"] for each in await ask(api, "GET", "/scheduled-jobs")} == {"sync", "report"}
    await ask(api, "GET", path, 404, who="globex")
    await ask(api, "DELETE", f"/scheduled-jobs/{second['id']}", 204)
    assert {each["name"] for each in await ask(api, "GET", "/scheduled-jobs")} == {"sync"}


@pytest.mark.requirement("S1-API-8", "S1-API-9", "S1-API-10")
async def test_a_triggered_job_is_a_manual_execution(api: ApiHarness) -> None:
    body = {
        "name": "sync",
        "jobType": "http",
        "schedule": "30 6 * * *",
        "configuration": {"url": "https://example.test"},
    }
    job = await ask(api, "POST", "/scheduled-jobs", 201, json=body)
    run = await ask(api, "POST", f"/scheduled-jobs/{job['id']}/trigger", 201)
    assert (run["status"], run["triggeredBy"], run["retryAttempt"]) == ("PENDING", "MANUAL", 0)
    assert run["triggeredByUserId"]
    assert (await ask(api, "GET", f"/job-executions/{run['id']}"))["scheduledJobId"] == job["id"]
    found = await ask(api, "GET", f"/job-executions?scheduledJobId={job['id']}&status=PENDING")
    assert [each["id"] for each in found] == [run["id"]]
    assert await ask(api, "GET", "/job-executions?status=SUCCESS") == []
    await ask(api, "POST", f"/scheduled-jobs/{job['id']}/trigger", 403, role="viewer")


@pytest.mark.requirement("S1-API-11", "C-12")
async def test_a_failed_execution_is_retried_as_a_new_one(api: ApiHarness) -> None:
    worker = await api.register_worker(WorkerId(uuid4()))
    job = await api.create_job(name="sync", retry={"max": 0, "strategy": "none"})
    bad = await fail_run(api, worker, job["id"], "The platform does not answer.")
    failed = await ask(api, "GET", f"/job-executions/{bad.run_id}")
    assert (failed["status"], failed["errorMessage"]) == ("FAILED", "The platform does not answer.")
    again = await ask(api, "POST", f"/job-executions/{bad.run_id}/retry", 201)
    assert (again["status"], again["triggeredBy"], again["scheduledJobId"]) == (
        "PENDING",
        "MANUAL",
        job["id"],
    )
    assert again["id"] != failed["id"]
    assert (await ask(api, "GET", f"/job-executions/{bad.run_id}"))["status"] == "FAILED"
    await ask(api, "POST", f"/job-executions/{bad.run_id}/retry", 403, role="viewer")
    # The same records under the addresses of the API and of each dialect.
    assert {each["id"] for each in (await ask(api, "GET", f"/runs?job={job['id']}"))["items"]} == {
        each["id"] for each in await ask(api, "GET", f"/job-executions?scheduledJobId={job['id']}")
    }
    found = await act(api, "Query Scheduled Jobs")
    assert [each["ID"] for each in output(found)["Jobs"]] == [job["id"]]
    assert [each["id"] for each in await ask(api, "GET", "/scheduled-jobs")] == [job["id"]]


@pytest.mark.requirement("S2-24", "S2-25", "S2-26", "S2-27", "S2-28", "S2-30", "S2-31")
async def test_the_six_actions_have_one_shape(api: ApiHarness) -> None:
    bad = await act(api, "Create Scheduled Job", Name="backup", JobTypeID="http", CronExpression="61 * * * *")
    assert (bad["Success"], bad["ResultCode"]) == (False, "VALIDATION_ERROR")
    missing = await act(api, "create-scheduled-job", Name="backup", JobTypeID="http")
    assert missing["Message"] == "CronExpression is required."
    config = {"url": "https://example.test"}
    made = await act(
        api,
        "Create Scheduled Job",
        Name="backup",
        JobTypeID="http",
        CronExpression="0 2 * * *",
        Configuration=config,
    )
    assert made["ResultCode"] == "SUCCESS", made
    job_id = output(made)["JobID"]
    [job] = output(await act(api, "Query Scheduled Jobs", Status="Active", MaxResults="50"))["Jobs"]
    assert (job["ID"], job["Status"], job["CronExpression"]) == (job_id, "Active", "0 2 * * *")
    assert output(await act(api, "Query Scheduled Jobs", CreatedAfter="2099-01-01"))["Jobs"] == []
    same = await act(api, "Update Scheduled Job", JobID=job_id, Name="backup", Status="Active")
    assert (same["Success"], same["ResultCode"]) == (True, "NO_CHANGES")
    changed = await act(
        api, "Update Scheduled Job", JobID=job_id, CronExpression="0 3 * * *", Status="Paused"
    )
    assert changed["Message"] == "Changed schedule, status."
    refused = await act(api, "Execute Scheduled Job Now", JobID=job_id)
    assert (refused["ResultCode"], "Paused" in refused["Message"]) == ("VALIDATION_ERROR", True)
    await act(api, "Update Scheduled Job", JobID=job_id, Status="Active")
    assert output(await act(api, "Execute Scheduled Job Now", JobID=job_id))["RunID"]
    kept = await act(api, "Delete Scheduled Job", JobID=job_id)
    assert kept["ResultCode"] == "REFERENCE_CONSTRAINT"
    assert (await act(api, "Delete Scheduled Job", JobID=str(uuid4())))["ResultCode"] == "NOT_FOUND"
    assert (await act(api, "Delete Scheduled Job", JobID="7"))["ResultCode"] == "VALIDATION_ERROR"
    denied = await act(api, "Update Scheduled Job", role="viewer", JobID=job_id, Name="mine")
    assert denied["ResultCode"] == "PERMISSION_DENIED"
    assert (await act(api, "Fly"))["ResultCode"] == "NOT_FOUND"
    [stats] = output(await act(api, "Get Scheduled Job Statistics", JobID=job_id, DaysBack="30"))[
        "Statistics"
    ]
    assert (stats["JobName"], stats["TotalRuns"], stats["SuccessRate"]) == ("backup", 0, 0)


@pytest.mark.requirement("S4-API-1", "S4-API-4")
async def test_older_names_of_job_fields_are_taken_beside_those_of_the_api(api: ApiHarness) -> None:
    reminder = await ask(
        api,
        "POST",
        "/jobs",
        201,
        json={
            "name": "stand-up", "schedule_kind": "cron", "cron_expr": "0 9 * * 1-5", "timezone": "America/Bogota",
            "payload_kind": "system_event", "payload_text": "Stand up", "max_failures": 2, "enabled": False,
        },
    )  # fmt: skip
    assert (reminder["type"], reminder["schedule"]["expr"]) == ("message", "0 9 * * 1-5")
    assert reminder["schedule"]["timezone"] == "America/Bogota"
    assert (reminder["breaker"]["after"], reminder["enabled"]) == (2, False)
    edited = await api.request(
        "PATCH", f"/jobs/{reminder['id']}", json={"interval_ms": 30_000}, headers={"If-Match": "*"}
    )
    assert edited.json()["schedule"]["every"] == "30s"
    restart = await ask(
        api,
        "POST",
        "/jobs",
        201,
        json={
            "name": "restart", "jobType": "http", "payload": {"force": True}, "cronExpression": "0 2 * * *",
            "executionWindowStart": "02:00", "executionWindowEnd": "06:00", "config": {"url": "https://example.test"},
            "retryPolicy": {"maxRetries": 2, "backoffMs": 1000, "backoffType": "exponential"},
        },
    )  # fmt: skip
    assert restart["window"] | {"days": []} == {
        "start": "02:00",
        "end": "06:00",
        "otherwise": "defer",
        "days": [],
    }
    assert (restart["retry"]["max"], restart["retry"]["base"]) == (2, "1s")
    wrong = await api.request(
        "POST", "/jobs", json={"name": "x", "cron_expr": "61 * * * *", "jobType": "http"}
    )
    assert wrong.status_code == 422


@pytest.mark.requirement("S0-10", "S0-11", "S0-12", "S0-13", "S0-14", "S0-19")
async def test_answers_have_the_older_names_too_and_can_be_sent_back(api: ApiHarness) -> None:
    body = {
        "name": "restart", "jobType": "restart_server", "cronExpression": "0 2 * * *", "timezone": "Europe/Madrid",
        "executionWindowStart": "02:00", "executionWindowEnd": "06:00", "breaker": {"after": 4},
        "retryPolicy": {"maxRetries": 2, "backoffMs": 1500, "backoffType": "fixed"},
    }  # fmt: skip
    made = await ask(api, "POST", "/jobs", 201, json=body)
    older = {name: made[name] for name in body if name not in ("name", "breaker")}
    assert older == {name: body[name] for name in older}
    assert (made["schedule_kind"], made["cron_expr"], made["max_failures"]) == ("cron", "0 2 * * *", 4)
    assert (made["lastRunStatus"], made["lastRunAt"], made["runCount"]) == (None, None, 0)
    assert (made["nextRunAt"], made["createdAt"]) == (made["next_run_at"], made["created_at"])
    [listed] = (await ask(api, "GET", "/jobs"))["items"]
    assert (listed["cronExpression"], listed["interval_ms"]) == ("0 2 * * *", None)
    path = f"/jobs/{made['id']}"
    read = await api.request("GET", path)
    replaced = await api.request(
        "PUT", path, json=read.json() | {"name": "b"}, headers={"If-Match": read.headers["etag"]}
    )
    assert (replaced.status_code, replaced.json()["name"]) == (200, "b"), replaced.text
    interval = await ask(
        api, "POST", "/jobs", 201, json={"name": "say", "interval_ms": 90_000, "payload_text": "Hello."}
    )
    assert (interval["interval_ms"], interval["payload_text"]) == (90_000, "Hello.")
    head = await api.request("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    ("fired", "ended", "shown"),
    [
        (None, None, None),
        ("queued", None, "success"),
        ("queued", ("run", "succeeded"), "success"),
        ("queued", ("run", "timed_out"), "failed"),
        ("queued", ("an earlier run", "failed"), "success"),
        ("skipped", ("run", "failed"), "skipped"),
        ("scheduler_failed", ("run", "succeeded"), "scheduler_failed"),
    ],
)
def test_a_fire_counts_as_a_success_until_its_run_has_failed(
    fired: str | None, ended: tuple[str, str] | None, shown: str | None
) -> None:
    run, status = ended or (None, None)
    job = {"schedule": {"kind": "manual"}, "last_fire_status": fired, "last_fire_run_id": "run"}
    assert older_names({**job, "last_run_id": run, "last_run_status": status})["lastRunStatus"] == shown


async def test_older_names_are_understood_behind_a_prefix(database: Database) -> None:
    async with open_api(database, dialects=DIALECTS, root_path="/foliot") as api:
        body = {
            "name": "a",
            "cronExpression": "0 2 * * *",
            "jobType": "http",
            "config": {"url": "https://example.test"},
        }
        answer = await api.http.post(
            "/foliot/api/v1/jobs",
            json=body,
            headers={"Authorization": f"Bearer {api.keys['acme', 'editor']}"},
        )
        assert (answer.status_code, answer.json().get("cronExpression")) == (201, "0 2 * * *"), answer.text


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"interval_ms": "60000"}, "/schedule/every"),
        ({"interval_ms": [1]}, "/schedule/every"),
        ({"interval_ms": 10**400}, "/schedule/every"),
        ({"retryPolicy": {"backoffMs": 10**400}}, "/retry/base"),
        ({"schedule_kind": "odd"}, "/schedule"),
        ({"schedule_kind": {"a": 1}}, "/schedule"),
        ({"schedule_kind": "cron"}, "/schedule/expr"),
        ({"schedule_kind": "once"}, "/schedule/at"),
        ({"executionWindowStart": "02:00"}, "/window/end"),
        ({"retryPolicy": 3}, "/retry"),
        ({"retryPolicy": {"backoffMs": "x"}}, "/retry/base"),
    ],
)
async def test_an_older_field_with_a_wrong_value_is_refused_by_name(
    api: ApiHarness, fields: dict[str, Any], pointer: str
) -> None:
    body = {"name": "a", "interval_ms": 60_000, "payload_text": "Hello.", **fields}
    answer = await api.request("POST", "/jobs?dry_run=true", json=body)
    assert answer.status_code == 422, answer.text
    assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]


async def test_an_older_field_does_not_let_a_field_be_named_twice(api: ApiHarness) -> None:
    raw = b'{"name": "a", "name": "b", "interval_ms": 60000, "payload_text": "Hello."}'
    answer = await api.request("POST", "/jobs", content=raw, headers={"Content-Type": "application/json"})
    assert (answer.status_code, "twice" in answer.text) == (400, True), answer.text


async def test_a_body_that_is_nested_too_deeply_is_refused_before_and_after_sign_in(api: ApiHarness) -> None:
    for headers in ({}, {"Authorization": f"Bearer {api.keys['acme', 'editor']}"}):
        for raw in (b"[" * 100_000, b'{"interval_ms": ' * 50_000, b'{"interval_ms": 1e400}'):
            sent = {**headers, "Content-Type": "application/json"}
            answer = await api.http.post("/api/v1/jobs", content=raw, headers=sent)
            assert answer.status_code in (400, 401, 422), answer.text


async def test_without_the_setting_no_dialect_answers(database: Database) -> None:
    async with open_api(database) as api:
        for method, path in (("GET", "/scheduled-jobs"), ("POST", "/actions/x"), ("GET", "/schedules/")):
            assert (await api.request(method, path)).status_code == 404
        refused = await api.request("POST", "/jobs", json={"name": "x", "cron_expr": "* * * * *"})
        assert refused.status_code == 422
