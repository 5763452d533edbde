"""/schedules/: jobs with an interval in seconds that send a `schedule` event, as workflow builders create them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import Field

from foliot.clock import SystemClock
from foliot.domain.errors import Conflict
from foliot.web.auth import Editor, Operator, Viewer
from foliot.web.dialects.calls import ApiCalls, Json, duration, first_reason, job_path, seconds_of
from foliot.web.errors import Refused
from foliot.web.routes import api_router
from foliot.wire.durations import read_duration
from foliot.wire.shape import Shape

routes = api_router("dialects")
MARK = "schedules"  # in external_ref.dialect of the jobs that were made here
STATUSES = {
    "active": "active", "pending": "active", "paused": "paused", "disabled": "paused", "completed": "done", "expired": "done",
    "archived": "done", "failed": "dead",
}  # fmt: skip


class ScheduleBody(Shape):
    name: str = Field(min_length=1, max_length=200)
    description: str = ""
    workflow_id: int | str
    trigger_node_id: str | None = None
    interval_seconds: int = Field(ge=1)
    total_repeats: int = Field(default=0, ge=0, description="0 is without end.")
    max_retries: int = Field(default=3, ge=0, le=1000)
    timeout_seconds: int = Field(default=600, ge=1)
    trigger_payload: Json = Field(default={})


class ScheduleEdit(Shape):
    name: str | None = Field(default=None, min_length=1, max_length=200)
    description: str | None = None
    interval_seconds: int | None = Field(default=None, ge=1)
    total_repeats: int | None = Field(default=None, ge=0)
    max_retries: int | None = Field(default=None, ge=0, le=1000)
    timeout_seconds: int | None = Field(default=None, ge=1)
    trigger_payload: Json | None = None


class IdsBody(Shape):
    schedule_ids: list[str] = Field(min_length=1, max_length=1000)


@routes.post("/schedules/", status_code=201, include_in_schema=False)
async def create_schedule(body: ScheduleBody, caller: Editor, request: Request) -> Json:
    api = ApiCalls(request, caller)
    made = await api.post(
        "/jobs",
        {
            "name": body.name,
            "description": body.description,
            "type": "event",
            "config": {
                "event": "schedule",
                "workflow_id": body.workflow_id,
                "trigger_node_id": body.trigger_node_id,
            },
            "breaker": {"after": 1, "action": "fail"},  # dead, once its retries are used up
            "external_ref": {"dialect": MARK},
            **_fields(body.model_dump(exclude={"name", "description", "workflow_id", "trigger_node_id"})),
        },
    )
    return _schedule(made)


@routes.get("/schedules/", include_in_schema=False)
async def list_schedules(
    caller: Viewer,
    request: Request,
    status: Literal["active", "paused", "done", "dead"] | None = None,
    workflow_id: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> Json:
    query = [("type", "event"), ("limit", "200")]
    query += [
        ("status", ours) for ours, theirs in STATUSES.items() if theirs == status and ours != "archived"
    ]
    api, items, cursor = ApiCalls(request, caller), list[Json](), list[tuple[str, str]]()
    while len(items) < limit:  # the API filters neither by the mark nor by the workflow
        found = await api.get("/jobs", query + cursor)
        shown = [_schedule(job) for job in found["items"] if _is_ours(job)]
        items += [each for each in shown if workflow_id is None or str(each["workflow_id"]) == workflow_id]
        if found["next_cursor"] is None:
            break
        cursor = [("cursor", found["next_cursor"])]
    items = items[:limit]
    return {"items": items, "total": len(items)}


@routes.get("/schedules/{schedule_id}/", include_in_schema=False)
async def get_schedule(schedule_id: str, caller: Viewer, request: Request) -> Json:
    return _schedule(await ApiCalls(request, caller).get(job_path(schedule_id)))


@routes.patch("/schedules/{schedule_id}/", include_in_schema=False)
async def edit_schedule(schedule_id: str, body: ScheduleEdit, caller: Editor, request: Request) -> Json:
    api = ApiCalls(request, caller)
    return _schedule(await api.patch(job_path(schedule_id), _fields(body.model_dump(exclude_none=True))))


@routes.delete("/schedules/{schedule_id}/", status_code=204, include_in_schema=False)
async def delete_schedule(schedule_id: str, caller: Editor, request: Request) -> Response:
    await ApiCalls(request, caller).delete(job_path(schedule_id))
    return Response(status_code=204)


@routes.post("/schedules/{schedule_id}/pause/", include_in_schema=False)
async def pause_schedule(schedule_id: str, caller: Operator, request: Request) -> Json:
    """Pause. A fire that no worker has yet comes to nothing."""
    api = ApiCalls(request, caller)
    if STATUSES[(await api.get(job_path(schedule_id)))["status"]] == "paused":
        raise Refused(400, "The schedule is paused already.")
    return await _move(api, schedule_id, "pause", {"drop_queued": True})


@routes.post("/schedules/{schedule_id}/resume/", include_in_schema=False)
async def resume_schedule(schedule_id: str, caller: Operator, request: Request) -> Json:
    """Resume. The interval counts from now on."""
    api = ApiCalls(request, caller)
    job = await api.get(job_path(schedule_id))
    if STATUSES[job["status"]] != "paused":
        raise Refused(400, "The schedule is not paused.")
    if job["schedule"]["kind"] == "interval":
        anchor = (request.app.state.database.clock or SystemClock()).now() - read_duration(
            job["schedule"]["every"]
        )
        await api.patch(job_path(schedule_id), {"schedule": {"anchor": anchor.isoformat()}})
    return await _move(api, schedule_id, "resume")


@routes.post("/schedules/batch-delete/", include_in_schema=False)
async def delete_schedules(body: IdsBody, caller: Editor, request: Request) -> Json:
    """Delete those of them that the caller may delete; others stay, without a word about them."""
    done = await ApiCalls(request, caller).post("/jobs/batch-delete", {"ids": body.schedule_ids})
    return {"deleted": done.get("done", 0)}


async def _move(api: ApiCalls, schedule_id: str, verb: str, body: Json | None = None) -> Json:
    try:
        return _schedule(await api.post(job_path(schedule_id, verb), body))
    except Conflict as error:
        raise Refused(400, first_reason(error)) from None


def _fields(given: dict[str, Any]) -> Json:
    """Return the fields of a job. A retry waits one interval, then twice as long each time, at most ten intervals."""
    fields: Json = {name: given[name] for name in ("name", "description") if name in given}
    if (interval := given.get("interval_seconds")) is not None:
        fields["schedule"] = {"kind": "interval", "every": duration(interval * 1000)}
    if "max_retries" in given:
        fields["retry"] = {"max": given["max_retries"], "strategy": "interval_exponential", "past_next": True}
    if "total_repeats" in given:
        fields["max_runs"] = given["total_repeats"] or None
    if "timeout_seconds" in given:
        fields["timeout"] = duration(given["timeout_seconds"] * 1000)
    if "trigger_payload" in given:
        fields["payload"] = given["trigger_payload"]
    return fields


def _is_ours(job: Json) -> bool:
    return (job.get("external_ref") or {}).get("dialect") == MARK


def _schedule(job: Json) -> Json:
    schedule, config, retry = job["schedule"], job["config"], job["retry"]
    return {
        "id": job["id"],
        "name": job["name"],
        "description": job["description"],
        "workflow_id": config.get("workflow_id"),
        "trigger_node_id": config.get("trigger_node_id"),
        "user_profile_id": job["owner"],
        "interval_seconds": seconds_of(schedule["every"]) if schedule["kind"] == "interval" else None,
        "total_repeats": job["max_runs"] or 0,
        "max_retries": retry["max"],
        "timeout_seconds": seconds_of(job["timeout"]),
        "trigger_payload": job["payload"],
        "status": STATUSES[job["status"]],
        "current_repeat": job["success_count"],
        "current_retry": job["consecutive_failures"],
        "last_run_at": job["last_run_at"],
        "next_run_at": job["next_run_at"],
        "run_count": job["success_count"],
        "error_count": job["failure_count"],
        "last_error": job["last_error"],
        "created_at": job["created_at"],
        "updated_at": job["updated_at"],
    }
