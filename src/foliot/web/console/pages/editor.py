"""The editor: one screen for a new or an existing job, with the sentence and the next times beside the form."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any
from zoneinfo import available_timezones

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, field_refusal
from foliot.web.console.forms import SchemaField, schema_fields
from foliot.web.console.graphs import neighbours_graph
from foliot.web.console.pages.job import member_names, name_people, neighbours
from foliot.web.console.pages.job_form import (
    BLANK,
    FOLDED,
    KINDS,
    LABELS,
    MOST_ROWS,
    Fields,
    body_of,
    changes_of,
    field_at,
    field_label,
    fields_of,
    is_id,
    schedule_of,
)
from foliot.web.console.pages.jobs import names_of
from foliot.web.console.session import api_of
from foliot.web.console.site import (
    SECURITY_HEADERS,
    Context,
    Visit,
    action,
    done,
    environment,
    page,
    render,
    shell_of,
)
from foliot.web.console.text import filter_value, html
from foliot.wire.jobs import WEEK

TIMES = 10
EXAMPLES = (
    "every weekday at 9am",
    "every 15 minutes",
    "every other tuesday at 14:30",
    "tomorrow at 18:00",
    "on the 1st of every month at 6am",
)
OVERLAPS = ("skip", "queue", "queue_one", "cancel_running", "concurrent")
REFUSED = (400, 409, 412, 422)
NOTIFY = ("email", "slack", "whatsapp", "email+slack", "nobody")


@page("editor.html", "jobs", "editor")
async def new_job(visit: Visit) -> Context:
    """The empty form. A link may fill it: `?name=…&when=…&url=…`, where other names are settings of the type."""
    given = {name: value for name, value in visit.request.query_params.items() if name != "copy"}
    fields = BLANK | {
        name if name in BLANK or name.startswith("config_") else f"config_{name}": value
        for name, value in given.items()
    }
    if source := visit.param("copy"):
        if "/" in source:  # another address of the API
            raise ApiRefusal(404, {"detail": "There is no such job."})
        job = await visit.api.get(f"/jobs/{source}")
        fields = fields_of(job, await schema_of(visit, job["type"]), await upstream_names(visit, job))
        fields["name"] += " copy"
    return await form_context(visit, fields, None)  # fmt: skip


@page("editor.html", "jobs", "editor")
async def edit_job(visit: Visit) -> Context:
    answer = await visit.api.answer("GET", f"/jobs/{visit.path['job_id']}")
    if not answer.is_success:
        raise ApiRefusal(answer.status, answer.data)
    job = answer.data
    schema, names = await asyncio.gather(schema_of(visit, job["type"]), upstream_names(visit, job))
    return await form_context(visit, fields_of(job, schema, names), job, etag=answer.headers.get("etag", ""))


async def schema_of(visit: Visit, type_name: str) -> list[SchemaField]:
    """The fields of a type's config; none where its schema is not known."""
    types = await visit.api.get("/job-types")
    found = next((each for each in types["items"] if each["name"] == type_name), None)
    return schema_fields(found["config_schema"]) if found else []


async def upstream_names(visit: Visit, job: dict[str, Any]) -> dict[str, str]:
    """Names of the jobs that it depends on, by id. Two of one name are left to their ids."""
    found = await names_of(visit, [each["job"] for each in job["depends_on"][:MOST_ROWS]])
    names = list(found.values())
    return {job_id: name for job_id, name in found.items() if names.count(name) == 1}


async def form_context(
    visit: Visit,
    fields: Fields,
    job: dict[str, Any] | None,
    *,
    refusal: ApiRefusal | None = None,
    etag: str = "",
    conflict: Context | None = None,
) -> Context:
    """What the form shows. `refusal` is why it was not saved: each error stands beside its field."""
    types, me, calendars, members, defaults, shown = await asyncio.gather(
        visit.api.get("/job-types"),
        visit.api.me(),
        visit.api.get("/calendars", limit=100),
        member_names(visit),
        visit.api.get("/defaults"),
        preview_of(visit, fields, job),
    )
    schema = next(
        (schema_fields(each["config_schema"]) for each in types["items"] if each["name"] == fields["type"]),
        [],
    )
    for each in schema:
        fields.setdefault(f"config_{each.name}", "")
    rows = sum(1 for place in range(MOST_ROWS) if fields.get(f"dep_job_{place}"))
    wrong, problems = wrong_fields(visit, fields, schema, refusal) if refusal else ({}, [])
    return {
        "fields": fields | {"timezone": fields["timezone"] or me["workspace"]["default_timezone"]},
        "job": job, "problems": problems, "wrong": wrong, "labels": LABELS,
        "opened": {part for part, names in FOLDED.items() if any(each.startswith(names) for each in wrong)}, "etag": etag, "base": job["revision"] if job else "",
        "kinds": KINDS, "examples": EXAMPLES, "types": [each for each in types["items"] if each["enabled"] or each["name"] == fields["type"]],
        "schema": schema, "overlaps": OVERLAPS, "zones": sorted(available_timezones()),
        "week": WEEK, "calendars": calendars["items"], "members": sorted(set(members.values())),
        "notify_choices": NOTIFY, "defaults": defaults,
        "dep_rows": range(min(max(rows + 1, 2 if fields["kind"] == "after" else 1), MOST_ROWS)), "conflict": conflict, **shown,
    }  # fmt: skip


def wrong_fields(
    visit: Visit, fields: Fields, schema: list[SchemaField], refusal: ApiRefusal
) -> tuple[dict[str, list[str]], list[str]]:
    """The messages beside each field, and those above the form: each leads to its field."""
    wrong: dict[str, list[str]] = {}
    problems: list[str] = []
    for pointer, message in refusal.field_errors:
        name = field_at(pointer, fields)
        wrong.setdefault(name, []).append(message)
        label = visit.reader.translate(field_label(name, schema))
        problems.append(
            html('<a href="#{}">{}</a>: {}', name.replace(".", "-"), label, message) if pointer else message
        )
    return wrong, problems or refusal.sentences


async def preview_of(visit: Visit, fields: Fields, job: dict[str, Any] | None = None) -> Context:
    """The sentence and the next times of what the form says now, or why it cannot be read."""
    nothing: Context = {
        "preview": None,
        "preview_problem": None,
        "zone_of_form": fields["timezone"] or "UTC",
        "tried": None,
        "quiet": None,
        "graph": await dependency_graph(visit, job) if job else None,
    }
    if fields["kind"] in ("manual", "after"):
        return nothing
    is_stored = job is not None and all(
        fields[name].strip() == shown
        for name, shown in fields_of(job, [], {}).items()
        if name in ("kind", "when", "timezone")
    )
    schedule = job["schedule"] if job and is_stored else schedule_of(fields)
    answer = await visit.api.answer("POST", "/preview", schedule, params={"n": TIMES})
    if answer.is_success:
        return nothing | {
            "preview": answer.data,
            "zone_of_form": answer.data["schedule"].get("timezone") or "UTC",
        }
    refusal = ApiRefusal(answer.status, answer.data)
    if answer.status == HTTPStatus.UNAUTHORIZED:
        raise refusal  # the session has ended
    said = [message for _, message in refusal.field_errors] or refusal.sentences
    return nothing | {"preview_problem": said[0]}


async def dry_run_of(visit: Visit, fields: Fields, job: dict[str, Any] | None) -> Context:
    """What the server would say to the whole form: warnings, and which upcoming runs change. Nothing where it would refuse."""
    try:
        schema = await schema_of(visit, fields["type"])
        names = await resolve_names(visit, fields)
        if job is None:
            answer = await visit.api.answer(
                "POST",
                "/jobs",
                body_of(fields, schema, names),
                params={"dry_run": "true"},
            )
        else:
            shown = fields_of(job, schema, await upstream_names(visit, job))
            changes = changes_of(job, fields, shown, schema, names)
            params = {"dry_run": "true", "force": "true" if job["managed_by"] else None}
            answer = await visit.api.answer("PATCH", f"/jobs/{job['id']}", changes, params=params)
    except ApiRefusal:
        return {}
    if not answer.is_success:
        return {}
    schedule = answer.data["job"]["schedule"]
    is_crowded = any("H instead of the minute" in each for each in answer.data["warnings"])
    quiet = " ".join(["H", *schedule["expr"].split()[1:]]) if is_crowded and not schedule["seconds"] else None
    graph = await dependency_graph(visit, answer.data["job"])
    return {"tried": answer.data, "quiet": quiet, "graph": graph}


async def dependency_graph(visit: Visit, job: dict[str, Any]) -> Markup | None:
    """The jobs that it follows, drawn; None where it follows none."""
    before, _ = await neighbours(visit, job) if job["depends_on"] else ([], [])
    label = visit.reader.translate("Jobs that it follows")
    return neighbours_graph(job["name"], before, [], label=label, is_small=True) if before else None


async def resolve_names(visit: Visit, fields: Fields) -> dict[str, str]:
    """Ids of the jobs that the rows of dependencies name, where one job alone has the name."""
    wanted = {fields.get(f"dep_job_{place}", "").strip() for place in range(MOST_ROWS)}
    found: dict[str, str] = {}
    for name in sorted(each for each in wanted if each and not is_id(each)):
        answer = await visit.api.answer(
            "GET", "/jobs", params={"q": f"name:{filter_value(name)}", "limit": 20}
        )
        same = (
            [each["id"] for each in answer.data["items"] if each["name"] == name] if answer.is_success else []
        )
        if len(same) == 1:
            found[name] = same[0]
    return found


async def preview_part(request: Request) -> Response:
    """Render the sentence and the next times of a schedule alone."""
    visit = Visit(request, api_of(request))
    fields = BLANK | {name: visit.param(name) for name in ("kind", "when", "timezone")}
    return render_preview(visit, await preview_of(visit, fields))


async def preview_form(visit: Visit) -> Response:
    """Render the right side of the editor for the whole form. The page requests it while the user types."""
    fields = form_fields(visit)
    job_id = visit.path.get("job_id")
    job = await visit.api.get(f"/jobs/{job_id}") if job_id else None
    shown = await preview_of(visit, fields, job)
    if shown["preview_problem"] is None:
        shown |= await dry_run_of(visit, fields, job)
    return render_preview(visit, shown)


def render_preview(visit: Visit, shown: Context) -> HTMLResponse:
    reader = visit.reader
    html = environment().get_template("preview_part.html").render(
        **shown, _=reader.translate, full_time=reader.full_time, time=reader.time
    )  # fmt: skip
    return HTMLResponse(html, headers=SECURITY_HEADERS)


async def type_part(request: Request) -> Response:
    """Render the fields of one type of job. The page requests it when the user chooses another type."""
    visit = Visit(request, api_of(request))
    fields = {name: value for name, value in request.query_params.items() if name.startswith("config_")}
    schema = await schema_of(visit, visit.param("type"))
    for each in schema:
        fields.setdefault(f"config_{each.name}", "")
    html = environment().get_template("type_part.html").render(
        schema=schema, fields=fields | {"config": visit.param("config")}, wrong={}, _=visit.reader.translate
    )  # fmt: skip
    return HTMLResponse(html, headers=SECURITY_HEADERS)


async def job_names(request: Request) -> Response:
    """Names of jobs that hold a text, for the boxes that name another job."""
    visit = Visit(request, api_of(request))
    wanted = visit.param("q")[:200]
    answer = await visit.api.answer(
        "GET",
        "/jobs",
        params={"q": f"name:{filter_value(wanted)}" if wanted else None, "limit": 10},
    )
    if answer.status == HTTPStatus.UNAUTHORIZED:
        raise ApiRefusal(answer.status, answer.data)
    names = [each["name"] for each in answer.data["items"]] if answer.is_success else []
    return JSONResponse({"items": list(dict.fromkeys(names))}, headers=SECURITY_HEADERS)  # fmt: skip


def form_fields(visit: Visit) -> Fields:
    """The form as it was sent, with nothing in the fields that were not."""
    given = {
        name: value
        for name, value in (visit.form or {}).items()
        if name in BLANK or name.startswith(("config_", "cal_", "dep_"))
    }
    blank = {name: BLANK[name] if name in ("kind", "type", "window_otherwise") else "" for name in BLANK}
    return blank | given  # fmt: skip


async def save(visit: Visit) -> Response:
    """Create or change. What the API refuses comes back in the form with its sentences."""
    fields = form_fields(visit)
    job_id, etag = visit.path.get("job_id"), visit.field("etag")
    before = await visit.api.get(f"/jobs/{job_id}") if job_id else None
    conflict, refusal, status = None, None, 200
    if not visit.field("choose"):
        try:
            if before is None:
                return await create(visit, fields)
            return await change(visit, fields, before)
        except ApiRefusal as error:
            if error.status not in REFUSED:
                raise
            refusal, status = error, error.status
            if before and status == 412:
                conflict = await conflict_of(visit, before)
    context, shell = await asyncio.gather(
        form_context(visit, fields, before, refusal=refusal, etag=etag, conflict=conflict),
        shell_of(visit),
    )
    if before:
        context["base"] = visit.field("base") or before["revision"]
    return render(visit, "editor.html", {**shell, "active": "jobs", **context}, status)


async def create(visit: Visit, fields: Fields) -> Response:
    schema, names = await asyncio.gather(schema_of(visit, fields["type"]), resolve_names(visit, fields))
    body = body_of(fields, schema, names)
    if fields["kind"] == "after" and not body["depends_on"]:
        raise field_refusal("depends_on/0/job", "Which job does it follow?")
    job = await visit.api.call("POST", "/jobs", body)
    return done(f"/console/jobs/{job['id']}", "job-created")


async def change(visit: Visit, fields: Fields, before: dict[str, Any]) -> Response:
    """Send what this person changed since the form was shown. With `merge`, on top of what others changed meanwhile."""
    job_id, etag = before["id"], visit.field("etag")
    base = await base_of(visit, before)
    schema, base_schema, names, upstream = await asyncio.gather(
        schema_of(visit, fields["type"]), schema_of(visit, base["type"]), resolve_names(visit, fields), upstream_names(visit, base)
    )  # fmt: skip
    changes = changes_of(base, fields, fields_of(base, base_schema, upstream), schema, names)
    if visit.field("merge"):
        etag = f'"{before["revision"]}"'
    params = {
        "revision_note": fields["note"].strip() or None,
        "force": "true" if before["managed_by"] else None,
    }
    headers = {"if-match": etag} if etag else {}
    await visit.api.call("PATCH", f"/jobs/{job_id}", changes, params=params, headers=headers)
    return done(f"/console/jobs/{job_id}", "job-saved", job_id)


async def base_of(visit: Visit, before: dict[str, Any]) -> dict[str, Any]:
    """The job as the form showed it: the present one, or the revision that was in force then."""
    base = visit.field("base")
    if not base or base == str(before["revision"]):
        return before
    found = await visit.api.get(f"/jobs/{before['id']}/revisions", limit=50)
    earlier = next(
        (each["definition"] for each in found["items"] if str(each["revision"]) == base),
        None,
    )
    return before if earlier is None else {**before, "owner_name": None, **earlier}


async def conflict_of(visit: Visit, before: dict[str, Any]) -> Context:
    """What others changed since the form was shown, and who."""
    base = visit.field("base")
    found, names = await asyncio.gather(
        visit.api.get(f"/jobs/{before['id']}/revisions", limit=20), member_names(visit)
    )
    newer = [
        each
        for each in found["items"]
        if not base.isdecimal() or len(base) > 9 or each["revision"] > int(base)
    ]
    name_people(newer, names)
    return {"revisions": newer, "current": before["revision"]}  # fmt: skip


ROUTES = [
    Route("/jobs/new", new_job),
    Route("/jobs/preview", preview_part),
    Route("/jobs/preview", action(preview_form), methods=["POST"]),
    Route("/jobs/type-fields", type_part),
    Route("/jobs/names", job_names),
    Route("/jobs/save", action(save), methods=["POST"]),
    Route("/jobs/{job_id}/edit", edit_job),
    Route("/jobs/{job_id}/preview", action(preview_form), methods=["POST"]),
    Route("/jobs/{job_id}/save", action(save), methods=["POST"]),
]
