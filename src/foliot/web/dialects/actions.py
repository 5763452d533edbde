"""/actions/{name}: six actions over jobs with one shape: Params in; Success, Message, ResultCode and Params out."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field

from foliot.domain.errors import Conflict, Denied, FoliotError, NotFound
from foliot.web.auth import Viewer
from foliot.web.dialects.calls import ApiCalls, Json, first_reason, job_path
from foliot.web.errors import field_problems
from foliot.web.routes import api_router
from foliot.wire.shape import Shape

routes = api_router("dialects")
STATUSES = {
    "Active": "active", "Disabled": "disabled", "Expired": "expired", "Paused": "paused", "Pending": "pending",
}  # fmt: skip
THEIRS = {ours: theirs for theirs, ours in STATUSES.items()} | {
    "completed": "Expired",
    "failed": "Disabled",
    "archived": "Disabled",
}
RUN_STATUSES = {
    "ready": "Queued", "waiting": "Queued", "running": "Running", "succeeded": "Completed", "failed": "Failed",
    "timed_out": "Timeout", "cancelled": "Cancelled", "interrupted": "Failed", "skipped": "Cancelled",
}  # fmt: skip
MODES = {
    "skip": "Skip",
    "queue": "Queue",
    "queue_one": "Queue",
    "concurrent": "Concurrent",
    "cancel_running": "Skip",
}
MOST = 200


class ActionParam(Shape):
    Name: str
    Value: Any = None


class ActionBody(Shape):
    Params: list[ActionParam] = Field(default=[])


class ActionAnswer(Shape):
    Success: bool
    Message: str
    ResultCode: str
    Params: list[ActionParam] = Field(default=[])


@dataclass(frozen=True)
class Refusal(Exception):
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class _Given:
    """The parameters of one call, checked as they are read."""

    values: Mapping[str, Any]

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if value is None or not str(value).strip():
            raise Refusal("VALIDATION_ERROR", f"{name} is required.")
        return str(value)

    def uuid(self, name: str) -> str:
        try:
            return str(UUID(self.text(name)))
        except ValueError:
            raise Refusal("VALIDATION_ERROR", f"{name} is not a UUID.") from None

    def number(self, name: str, default: int, most: int) -> int:
        raw = self.values.get(name)
        if raw is None:
            return default
        if not re.fullmatch(r"\d{1,9}", str(raw)) or not 1 <= int(raw) <= most:
            raise Refusal("VALIDATION_ERROR", f"{name} is a whole number from 1 to {most}.")
        return int(raw)

    def status(self) -> str | None:
        raw = self.values.get("Status")
        if raw is not None and raw not in STATUSES:
            raise Refusal("VALIDATION_ERROR", f"Status is one of {', '.join(STATUSES)}.")
        return None if raw is None else STATUSES[raw]

    def date(self, name: str) -> str | None:
        raw = self.values.get(name)
        try:
            return None if raw is None else datetime.fromisoformat(str(raw)).date().isoformat()
        except ValueError:
            raise Refusal("VALIDATION_ERROR", f"{name} is not an ISO date.") from None


Verb = Callable[[ApiCalls, _Given], Awaitable[ActionAnswer]]


@routes.post("/actions/{name}", include_in_schema=False)
async def run_action(name: str, body: ActionBody, caller: Viewer, request: Request) -> ActionAnswer:
    """Run one of the six actions. What the caller may not do is answered as PERMISSION_DENIED."""
    verb = VERBS.get(re.sub(r"[^a-z]", "", name.lower()))
    if verb is None:
        return _refused("NOT_FOUND", f"There is no action {name!r}. There are: {', '.join(NAMES)}.")
    given = _Given({each.Name: each.Value for each in body.Params})
    try:
        return await verb(ApiCalls(request, caller), given)
    except Refusal as refusal:
        return _refused(refusal.code, refusal.message)
    except RequestValidationError as error:
        return _refused("VALIDATION_ERROR", field_problems(error.errors())[0]["message"])
    except NotFound as error:
        return _refused("NOT_FOUND", error.message)
    except Denied as error:
        return _refused("PERMISSION_DENIED", error.message)
    except FoliotError as error:
        return _refused("VALIDATION_ERROR", first_reason(error))


async def _query(api: ApiCalls, given: _Given) -> ActionAnswer:
    query = [("limit", str(given.number("MaxResults", 100, MOST)))]
    if (status := given.status()) is not None:
        query.append(("status", status))
    if given.values.get("JobTypeID") is not None:
        query.append(("type", given.text("JobTypeID")))
    words = [f"since:{day}" for day in [given.date("CreatedAfter")] if day]
    words += [f"until:{day}" for day in [given.date("CreatedBefore")] if day]
    if words:
        query.append(("q", " ".join(words)))
    found = await api.get("/jobs", query)
    jobs = [_job(each) for each in found["items"]]
    return _done(f"Found {len(jobs)} jobs.", Jobs=jobs)


async def _create(api: ApiCalls, given: _Given) -> ActionAnswer:
    kind = given.text("JobTypeID")
    body: Json = {
        "name": given.text("Name"),
        "type": kind.lower() if kind in {"Action", "Agent"} else kind,
        "schedule": _cron(given),
    }
    optional = {
        "Description": "description",
        "Configuration": "config",
        "StartAt": "start_at",
        "EndAt": "end_at",
    }
    body |= {
        ours: given.values[theirs]
        for theirs, ours in optional.items()
        if given.values.get(theirs) is not None
    }
    if isinstance(config := body.get("config"), dict) and "ActionName" in config:
        body["config"] = {"action": config["ActionName"], "parameters": config.get("Parameters") or []}
    if (mode := given.values.get("ConcurrencyMode")) is not None:
        body["overlap"] = {"Skip": "skip", "Queue": "queue", "Concurrent": "concurrent"}.get(
            str(mode), str(mode)
        )
    status = given.status() or "active"
    if status not in {"active", "disabled", "paused"}:
        raise Refusal("VALIDATION_ERROR", "A new job is Active, Paused or Disabled.")
    made = await api.post("/jobs", {**body, "enabled": status != "disabled"})
    if status == "paused":
        await api.post(job_path(made["id"], "pause"))
    return _done(f"Created {made['name']}.", JobID=made["id"])


async def _update(api: ApiCalls, given: _Given) -> ActionAnswer:
    job_id = given.uuid("JobID")
    job, status = await api.get(job_path(job_id)), given.status()
    body: Json = {}
    for theirs, ours in (("Name", "name"), ("Description", "description")):
        if given.values.get(theirs) is not None and given.values[theirs] != job[ours]:
            body[ours] = given.values[theirs]
    if given.values.get("CronExpression") is not None and given.values["CronExpression"] != job[
        "schedule"
    ].get("expr"):
        body["schedule"] = {**_cron(given), "timezone": job["schedule"].get("timezone") or "UTC"}
    changed = list(body)
    if body:
        await api.patch(job_path(job_id), body)
    if status is not None and status != job["status"]:
        verb = {"active": "resume", "paused": "pause", "disabled": "disable"}.get(status)
        if verb is None:
            raise Refusal("VALIDATION_ERROR", f"A job becomes {given.values['Status']} by its dates.")
        await api.post(job_path(job_id, verb))
        changed.append("status")
    if not changed:
        return ActionAnswer(Success=True, Message="No field was changed.", ResultCode="NO_CHANGES")
    return _done(f"Changed {', '.join(changed)}.")


async def _delete(api: ApiCalls, given: _Given) -> ActionAnswer:
    job_id = given.uuid("JobID")
    await api.get(job_path(job_id))
    runs = await api.get("/runs", [("job", job_id), ("limit", "1")])
    if runs["items"]:
        message = "The job has runs, which are kept. Set its Status to Disabled instead."
        raise Refusal("REFERENCE_CONSTRAINT", message)
    await api.delete(job_path(job_id))
    return _done("Deleted the job.")


async def _execute(api: ApiCalls, given: _Given) -> ActionAnswer:
    job_id = given.uuid("JobID")
    job = await api.get(job_path(job_id))
    if job["status"] != "active":
        raise Refusal(
            "VALIDATION_ERROR", f"The job is {THEIRS[job['status']]}; only an Active job is executed."
        )
    try:
        run = await api.post(job_path(job_id, "run"))
    except Conflict as error:
        raise Refusal("VALIDATION_ERROR", error.message) from None
    return _done("The run was created.", RunID=run["id"])


async def _statistics(api: ApiCalls, given: _Given) -> ActionAnswer:
    days = given.number("DaysBack", 30, 365)
    if given.values.get("JobID") is not None:
        jobs = [await api.get(job_path(given.uuid("JobID")))]
    else:
        jobs = (await api.get("/jobs", [("limit", str(MOST))]))["items"]
    found = [
        _figures(job, await api.get(job_path(job["id"], "stats"), [("days", str(days))])) for job in jobs
    ]
    return _done(f"Statistics of {len(found)} jobs over {days} days.", Statistics=found)


def _figures(job: Json, stats: Json) -> Json:
    totals = stats["totals"]
    average = totals["average_duration_ms"]
    return {
        "JobID": job["id"],
        "JobName": job["name"],
        "TotalRuns": totals["runs"],
        "SuccessfulRuns": totals["successes"],
        "FailedRuns": totals["failures"],
        "SuccessRate": totals["success_rate"] or 0,
        "AverageDurationSeconds": None if average is None else round(average / 1000, 3),
        "LastRunAt": job["last_run_at"],
        "LastRunStatus": RUN_STATUSES.get(job["last_run_status"] or ""),
    }


def _cron(given: _Given) -> Json:
    schedule = {"kind": "cron", "expr": given.text("CronExpression")}
    return schedule | ({"timezone": given.text("Timezone")} if given.values.get("Timezone") else {})


def _job(job: Json) -> Json:
    return {
        "ID": job["id"],
        "JobTypeID": job["type"],
        "Name": job["name"],
        "Description": job["description"],
        "CronExpression": job["schedule"].get("expr"),
        "Timezone": job["schedule"].get("timezone"),
        "StartAt": job["start_at"],
        "EndAt": job["end_at"],
        "Status": THEIRS[job["status"]],
        "Configuration": job["config"],
        "ConcurrencyMode": MODES[job["overlap"]],
        "NextRunAt": job["next_run_at"],
        "OwnerUserID": job["owner"],
    }


def _done(message: str, **values: Any) -> ActionAnswer:
    params = [ActionParam(Name=name, Value=value) for name, value in values.items()]
    return ActionAnswer(Success=True, Message=message, ResultCode="SUCCESS", Params=params)


def _refused(code: str, message: str) -> ActionAnswer:
    return ActionAnswer(Success=False, Message=message, ResultCode=code)


NAMES: Mapping[str, Verb] = {
    "Query Scheduled Jobs": _query,
    "Create Scheduled Job": _create,
    "Update Scheduled Job": _update,
    "Delete Scheduled Job": _delete,
    "Execute Scheduled Job Now": _execute,
    "Get Scheduled Job Statistics": _statistics,
}
VERBS = {name.replace(" ", "").lower(): verb for name, verb in NAMES.items()}
