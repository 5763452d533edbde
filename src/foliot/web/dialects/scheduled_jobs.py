"""/scheduled-jobs and /job-executions: camelCase fields, statuses in capitals, PUT with the fields that change."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Request, Response
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from foliot.web.auth import Editor, Operator, Viewer
from foliot.web.dialects.calls import ApiCalls, Json, duration, job_path, seconds_of
from foliot.web.routes import api_router
from foliot.wire.shape import Shape

routes = api_router("dialects")
RUN_STATUSES = {
    "ready": "PENDING", "waiting": "PENDING", "running": "RUNNING", "succeeded": "SUCCESS", "failed": "FAILED",
    "timed_out": "TIMEOUT", "skipped": "SKIPPED", "interrupted": "INTERRUPTED", "cancelled": "CANCELLED",
}  # fmt: skip
RunStatus = Literal[
    "PENDING", "RUNNING", "SUCCESS", "FAILED", "TIMEOUT", "SKIPPED", "INTERRUPTED", "CANCELLED"
]
JOB_STATUSES = {
    "active": "ACTIVE",
    "pending": "ACTIVE",
    "paused": "PAUSED",
    "disabled": "PAUSED",
    "failed": "FAILED",
}
TRIGGERS = {"schedule": "SCHEDULED", "dependency": "DEPENDENCY"}


class _Camel(Shape):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class NotifyOnFailure(_Camel):
    email: bool = True
    whatsapp: bool = False
    slack: bool = False


BY_RULES = NotifyOnFailure().model_dump()  # what a job shows that leaves it to the rules of the workspace


class ScheduledJobEdit(_Camel):
    name: str | None = Field(default=None, min_length=1, max_length=255)
    description: str | None = None
    job_type: str | None = None
    schedule: str | None = Field(default=None, description="A cron expression.")
    timezone: str | None = None
    enabled: bool | None = None
    configuration: Json | None = None
    notify_on_failure: NotifyOnFailure | None = None
    notify_recipients: list[str] | None = None
    depends_on_job_id: str | None = None
    dependency_delay_minutes: int | None = Field(default=None, ge=0)


class ScheduledJobBody(ScheduledJobEdit):
    name: str = Field(min_length=1, max_length=255)
    job_type: str
    schedule: str = Field(description="Kept and not read while another job starts this one.")
    workspace_id: str | None = Field(default=None, description="Not read: the key names the workspace.")


@routes.get("/scheduled-jobs", include_in_schema=False)
async def list_scheduled_jobs(
    caller: Viewer, request: Request, limit: Annotated[int, Query(ge=1, le=200)] = 100
) -> list[Json]:
    found = await ApiCalls(request, caller).get("/jobs", [("limit", str(limit))])
    return [_job(each, caller.workspace_id) for each in found["items"]]


@routes.post("/scheduled-jobs", status_code=201, include_in_schema=False)
async def create_scheduled_job(body: ScheduledJobBody, caller: Editor, request: Request) -> Json:
    given = body.model_dump(exclude_unset=True)
    made = await ApiCalls(request, caller).post("/jobs", _fields(given, None))
    return _job(made, caller.workspace_id)


@routes.get("/scheduled-jobs/{job_id}", include_in_schema=False)
async def get_scheduled_job(job_id: str, caller: Viewer, request: Request) -> Json:
    return _job(await ApiCalls(request, caller).get(job_path(job_id)), caller.workspace_id)


@routes.put("/scheduled-jobs/{job_id}", include_in_schema=False)
async def edit_scheduled_job(job_id: str, body: ScheduledJobEdit, caller: Editor, request: Request) -> Json:
    api = ApiCalls(request, caller)
    before = await api.get(job_path(job_id))
    changed = await api.patch(job_path(job_id), _fields(body.model_dump(exclude_unset=True), before))
    return _job(changed, caller.workspace_id)


@routes.delete("/scheduled-jobs/{job_id}", status_code=204, include_in_schema=False)
async def delete_scheduled_job(job_id: str, caller: Editor, request: Request) -> Response:
    await ApiCalls(request, caller).delete(job_path(job_id))
    return Response(status_code=204)


@routes.post("/scheduled-jobs/{job_id}/pause", include_in_schema=False)
async def pause_scheduled_job(job_id: str, caller: Operator, request: Request) -> Json:
    return _job(await ApiCalls(request, caller).post(job_path(job_id, "pause")), caller.workspace_id)


@routes.post("/scheduled-jobs/{job_id}/resume", include_in_schema=False)
async def resume_scheduled_job(job_id: str, caller: Operator, request: Request) -> Json:
    return _job(await ApiCalls(request, caller).post(job_path(job_id, "resume")), caller.workspace_id)


@routes.post("/scheduled-jobs/{job_id}/trigger", status_code=201, include_in_schema=False)
async def trigger_scheduled_job(job_id: str, caller: Operator, request: Request) -> Json:
    return _execution(await ApiCalls(request, caller).post(job_path(job_id, "run")))


@routes.get("/job-executions", include_in_schema=False)
async def list_job_executions(
    caller: Viewer,
    request: Request,
    scheduled_job_id: Annotated[str | None, Query(alias="scheduledJobId")] = None,
    status: RunStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> list[Json]:
    query = [("limit", str(limit))]
    if scheduled_job_id is not None:
        query.append(("job", scheduled_job_id))
    query += [("status", ours) for ours, theirs in RUN_STATUSES.items() if theirs == status]
    found = await ApiCalls(request, caller).get("/runs", query)
    return [_execution(each) for each in found["items"]]


@routes.get("/job-executions/{run_id}", include_in_schema=False)
async def get_job_execution(run_id: str, caller: Viewer, request: Request) -> Json:
    return _execution(await ApiCalls(request, caller).get(f"/runs/{run_id}"))


@routes.post("/job-executions/{run_id}/retry", status_code=201, include_in_schema=False)
async def retry_job_execution(run_id: str, caller: Operator, request: Request) -> Json:
    return _execution(await ApiCalls(request, caller).post(f"/runs/{run_id}/retry"))


def _fields(given: Json, before: Json | None) -> Json:
    """Return the fields of a job. What has no counterpart is kept in external_ref."""
    same = {"name": "name", "description": "description", "configuration": "config", "enabled": "enabled"}
    fields: Json = {ours: given[theirs] for theirs, ours in same.items() if given.get(theirs) is not None}
    if given.get("job_type") is not None:
        fields["type"] = given["job_type"]
    ref = dict((before or {}).get("external_ref") or {})
    kept = ("schedule", "timezone")
    ref |= {"dialect": "scheduled-jobs", **{name: given[name] for name in kept if name in given}}
    fields["external_ref"] = ref
    fields |= _notify(given, (before or {}).get("notify"))
    upstream = (before or {}).get("depends_on") or []
    if "depends_on_job_id" in given:
        delay = duration((given.get("dependency_delay_minutes") or 0) * 60_000)
        upstream = (
            []
            if given["depends_on_job_id"] is None
            else [{"job": given["depends_on_job_id"], "delay": delay}]
        )
        fields["depends_on"] = upstream
    if {"schedule", "timezone", "depends_on_job_id"} & given.keys():
        cron = {"kind": "cron", "expr": ref.get("schedule"), "timezone": ref.get("timezone") or "UTC"}
        fields["schedule"] = {"kind": "manual"} if upstream else cron  # the upstream job starts it
    return fields


def _notify(given: Json, before: Json | None) -> Json:
    """Return the field `notify`, or nothing where the request does not speak of it. Null leaves it to the rules."""
    spoken_of = {"notify_on_failure", "notify_recipients"} & given.keys()
    if not spoken_of:
        return {}
    if all(given[name] is None for name in spoken_of) and len(spoken_of) == 2:
        return {"notify": None}
    before = before or {**BY_RULES, "recipients": []}
    kinds, recipients = given.get("notify_on_failure"), given.get("notify_recipients")
    kinds = {name: before[name] for name in BY_RULES} if kinds is None else {**BY_RULES, **kinds}
    return {"notify": {**kinds, "recipients": before["recipients"] if recipients is None else recipients}}


def _job(job: Json, workspace_id: object) -> Json:
    schedule, ref = job["schedule"], job["external_ref"] or {}
    notify = job["notify"] or {**BY_RULES, "recipients": []}
    upstream = job["depends_on"][0] if job["depends_on"] else None
    return {
        "id": job["id"],
        "workspaceId": str(workspace_id),
        "name": job["name"],
        "description": job["description"],
        "jobType": job["type"],
        "schedule": schedule.get("expr") or ref.get("schedule"),
        "timezone": ref.get("timezone") or schedule.get("timezone") or "UTC",
        "enabled": job["status"] in {"active", "pending", "paused"},
        "status": JOB_STATUSES.get(job["status"], job["status"].upper()),
        "configuration": job["config"],
        "notifyOnFailure": {name: notify[name] for name in BY_RULES},
        "notifyRecipients": notify["recipients"],
        "dependsOnJobId": None if upstream is None else upstream["job"],
        "dependencyDelayMinutes": 0 if upstream is None else seconds_of(upstream["delay"]) // 60,
        "nextRunAt": job["next_run_at"],
        "lastRunAt": job["last_run_at"],
        "lastRunStatus": RUN_STATUSES.get(job["last_run_status"] or "", job["last_run_status"]),
        "createdBy": job["created_by"],
        "createdAt": job["created_at"],
        "updatedAt": job["updated_at"],
    }


def _execution(run: Json) -> Json:
    return {
        "id": run["id"],
        "scheduledJobId": run["job_id"],
        "executionNumber": run["number"],
        "status": RUN_STATUSES[run["status"]],
        "startedAt": run["started_at"],
        "completedAt": run["finished_at"],
        "durationMs": run["duration_ms"],
        "inputParameters": run["input"] or {},
        "outputSummary": run["output"],
        "errorMessage": run["error"]["message"] if run.get("error") else run["note"],
        "retryAttempt": max(0, run["attempt_count"] - 1),
        "triggeredBy": TRIGGERS.get(run["trigger"], "MANUAL"),
        "triggeredByUserId": run["triggered_by"],
    }
