"""Jobs: the list with its filter, and actions on many jobs at once."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from foliot.domain.filters.fields import JOBS, FieldKind
from foliot.web.console.api import ApiRefusal, read_number
from foliot.web.console.pages.start import COUNTS
from foliot.web.console.site import Context, Visit, action, page, render, shell_of
from foliot.web.console.text import filter_value, parse

PAGE = 50
STRIP = 30
SAMPLE = 8
MOST_NAMED = 20  # jobs that could not be changed, on the page of the result
STATUSES = (
    ("active", "Active"), ("paused", "Paused"), ("disabled", "Disabled"), ("failed", "Stopped by failures"), ("pending", "Not begun"),
    ("completed", "Finished"), ("expired", "Expired"), ("archived", "Archived"),
)  # fmt: skip
ANY_STATUS = "status:" + ",".join(name for name, _ in STATUSES)
SORTS = ("name", "next_run_at", "created_at")
BULK = {
    "pause": ("Pause", "operator", ("reason", "until")),
    "resume": ("Resume", "operator", ("catch_up",)),
    "disable": ("Disable", "operator", ("reason",)),
    "run": ("Run now", "operator", ("override",)),
    "tag": ("Add a tag", "editor", ("tags",)),
    "untag": ("Remove a tag", "editor", ("tags",)),
    "hand_over": ("Hand over", "editor", ("owner",)),
    "archive": ("Archive", "editor", ("detach",)),
    "restore": ("Restore", "editor", ()),
}  # label, least role, arguments
UNDO = {
    "pause": "resume", "disable": "resume", "resume": "pause", "tag": "untag", "untag": "tag", "archive": "restore", "restore": "archive",
}  # fmt: skip
NEEDED = frozenset({"tags", "owner"})


@page("jobs.html", "jobs", now=COUNTS)
async def job_list(visit: Visit) -> Context:
    listed, counted = await asyncio.gather(_list(visit), visit.api.call("GET", "/stats/now", params=COUNTS))
    return {**listed, "job_counts": counted["jobs"]}


async def _list(visit: Visit) -> Context:
    query, sort = visit.param("q"), visit.param("sort")
    problem = None
    found: dict[str, Any] = {"items": [], "next_cursor": None}
    try:
        found = await visit.api.get(
            "/jobs",
            q=query or None,
            sort=sort or None,
            cursor=visit.param("cursor") or None,
            limit=PAGE,
            count="true" if query else None,
        )
    except ApiRefusal as refusal:
        if refusal.status != 422:
            raise
        problem = refusal.sentences[0]
    jobs = found["items"]
    recent = await recent_runs(visit, [job["id"] for job in jobs])
    for job in jobs:
        runs = reversed(recent.get(job["id"], []))
        job["strip"] = [run if run["status"] == "succeeded" else strip_mark(visit, run, job) for run in runs]
    return {
        "q": query,
        "sort": sort,
        "jobs": jobs,
        "total": found.get("total"),
        "has_more": found.get("more", False),
        "next_href": address(q=query, sort=sort, cursor=found["next_cursor"]) if found["next_cursor"] else None,
        "first_href": address(q=query, sort=sort) if visit.param("cursor") else None,
        "problem": problem,
        "statuses": STATUSES,
        "terms": [(term, address(q=without(query, place), sort=sort)) for place, term in enumerate(split_terms(query))],
        "sort_href": {name: address(q=query, sort=f"-{name}" if sort == name else name) for name in SORTS},
        "suggestions": suggestions(jobs),
        "bulk": offered_actions(jobs),
    }  # fmt: skip


def offered_actions(jobs: list[dict[str, Any]]) -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """The actions that can change something here: an archived job can be restored, and nothing else."""
    are_archived = {job["status"] == "archived" for job in jobs}
    return {name: each for name, each in BULK.items() if (name == "restore") in are_archived}


async def recent_runs(
    visit: Visit, job_ids: list[str], limit: int = STRIP, since: str | None = None
) -> dict[str, list[dict[str, Any]]]:
    """The newest records of each job, in one call for the whole page."""
    if not job_ids:
        return {}
    found = await visit.api.get("/recent-runs", job=job_ids, limit=limit, since=since)
    return {each["job_id"]: each["runs"] for each in found["items"]}


def strip_mark(visit: Visit, run: dict[str, Any], job: dict[str, Any]) -> dict[str, object]:
    """A mark of the strip. It leads to the explanation of its planned time."""
    reader = visit.reader
    why = f" ({reader.translate(run['skip_reason'].replace('_', ' '))})" if run["skip_reason"] else ""
    word = reader.translate(run["status"].replace("_", " "))
    title = f"{reader.absolute(parse(run['planned_for']), job['schedule'].get('timezone'))}: {word}{why}"
    href = f"/console/jobs/{job['id']}?run={run['id']}#why"
    return {"status": run["status"], "title": title, "href": href}


def address(**params: str | None) -> str:
    """The list with these parameters: the address is the whole state of the page."""
    given = {name: value for name, value in params.items() if value}
    return f"/console/jobs?{urlencode(given)}" if given else "/console/jobs"


def split_terms(query: str) -> list[str]:
    """The terms of a filter: divided by spaces outside quotes."""
    terms, term, is_quoted, is_escaped = [], "", False, False
    for character in query:
        if character == '"' and not is_escaped:
            is_quoted = not is_quoted
        is_escaped = is_quoted and character == "\\" and not is_escaped
        if character.isspace() and not is_quoted:
            terms.append(term)
            term = ""
        else:
            term += character
    return [each for each in (*terms, term) if each]


def without(query: str, place: int) -> str:
    terms = split_terms(query)
    return " ".join(terms[:place] + terms[place + 1 :])


def suggestions(jobs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What the filter box offers: each field with its meaning, and values of the fields that have few."""
    offered: list[tuple[str, str]] = []
    values = {
        "tag": sorted({tag for job in jobs for tag in job["tags"]}),
        "type": sorted({job["type"] for job in jobs}),
        "queue": sorted({job["queue"] for job in jobs}),
        "owner": ["me", *sorted({job["owner_name"] for job in jobs if job["owner_name"]})],
        "next": ["<1h", "<24h", "today"],
        "last": ["<1h", "<24h", "today"],
        "created": ["<24h", "<7d"],
        "updated": ["<24h", "<7d"],
        "failures": [">=1", ">=3"],
        "runs": ["0"],
    }
    for field in JOBS.fields:
        if field.of:  # since, until and the like: the field itself is enough
            continue
        offered.append((f"{field.name}:", field.says))
        words = field.words if field.kind is FieldKind.WORD else values.get(field.name, ())
        offered += [(f"{field.name}:{filter_value(word)}", "") for word in words]
    return offered


@page("bulk.html", "jobs", "operator")
async def review_bulk(visit: Visit) -> Context | Response:
    """Show how many jobs an action would change, and some of them, before anything is done."""
    request = visit.request.query_params
    name = visit.param("action")
    if not name:
        return RedirectResponse("/console/jobs", status_code=303)
    if name not in BULK:
        raise ApiRefusal(404, {"detail": "There is no such action."})
    ids = [] if visit.param("all") else list(dict.fromkeys(request.getlist("id")))[:200]
    query = visit.param("q")
    if not ids and not visit.param("all"):
        return {**bulk_context(name, ids, query), "nothing": True}
    sample, tried = await asyncio.gather(
        visit.api.get("/jobs", q=f"id:{','.join(ids[:SAMPLE])} {ANY_STATUS}" if ids else query or None, limit=SAMPLE),
        try_bulk(visit, name, ids, query),
    )  # fmt: skip
    return {**bulk_context(name, ids, query), "sample": sample["items"], **tried}


def bulk_context(name: str, ids: list[str], query: str) -> Context:
    label, _, arguments = BULK[name]
    return {
        "name": name, "label": label, "arguments": arguments, "ids": ids, "q": query, "nothing": False, "sample": [],
        "back": address(q=query), "tried": None, "result": None, "values": {}, "problems": [], "undo_name": None, "changed": [],
    }  # fmt: skip


async def try_bulk(visit: Visit, name: str, ids: list[str], query: str) -> Context:
    """What a dry run says. An action that needs a value is not tried before the value is known: its jobs are counted."""
    body = {**target_of(ids, query), "action": name, "dry_run": True}
    if NEEDED & set(BULK[name][2]):
        body |= {"action": "pause"}  # only its `found` is shown
    answer = await visit.api.answer("POST", "/jobs/bulk", body)
    if answer.is_success:
        judged = not NEEDED & set(BULK[name][2])
        return {"tried": answer.data if judged else {**answer.data, "done": None}}
    return {"problems": ApiRefusal(answer.status, answer.data).sentences}


def target_of(ids: list[str], query: str) -> dict[str, Any]:
    return {"ids": ids} if ids else {"q": query}


async def names_of(visit: Visit, job_ids: list[str]) -> dict[str, str]:
    """Names of jobs by id, whatever their status; at most a page of them."""
    if not job_ids:
        return {}
    found = await visit.api.get("/jobs", q=f"id:{','.join(job_ids)} {ANY_STATUS}", limit=len(job_ids))
    return {each["id"]: each["name"] for each in found["items"]}


async def apply_bulk(visit: Visit) -> Response:
    """Do the action: one call of the API, which lasts ten seconds at most. The page goes on with what is left."""
    name, query = visit.field("action"), visit.field("q")
    if name not in BULK:
        raise ApiRefusal(404, {"detail": "There is no such action."})
    ids = visit.field("ids").split()
    values = {argument: visit.field(argument) for argument in BULK[name][2]}
    body = {**target_of(ids, query), "action": name, "args": arguments_of(values)}
    if not ids:
        body["expected_count"] = read_number("expected_count", visit.field("expected_count"))
    if visit.field("after"):
        body["after"] = visit.field("after")
    context = bulk_context(name, ids, query) | {"values": values}
    answer = await visit.api.answer("POST", "/jobs/bulk", body)
    status = answer.status
    if answer.is_success:
        result = answer.data
        for count in ("done", "already", "failed"):
            before = visit.field(f"was_{count}")
            result[count] += read_number(count, before) if before else 0
        unchanged = {each["id"] for each in result["results"]}
        changed = [each for each in ids if each not in unchanged] if name in UNDO else []
        named = result["results"][:MOST_NAMED]
        names = await names_of(visit, [each["id"] for each in named])
        context |= {
            "result": result,
            "whole": result["done"] + result["already"] + result["failed"] + result["remaining"],
            "named": [{**each, "name": names.get(each["id"], each["id"])} for each in named],
            "undo_name": UNDO.get(name),
            "changed": changed,
        }
    else:
        context["problems"] = ApiRefusal(status, answer.data).sentences
    shell = await shell_of(visit)
    return render(visit, "bulk.html", {**shell, "active": "jobs", **context}, status)


def arguments_of(values: dict[str, str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, value in values.items():
        if not value:
            continue
        if name == "tags":
            arguments[name] = [tag.strip() for tag in value.split(",") if tag.strip()]
        else:
            arguments[name] = True if name in ("catch_up", "override", "detach") else value
    return arguments


ROUTES = [
    Route("/jobs", job_list),
    Route("/jobs/bulk", review_bulk),
    Route("/jobs/bulk", action(apply_bulk), methods=["POST"]),
]
