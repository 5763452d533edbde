"""One job: its times, runs, figures, revisions, definition and alerts, each under an address of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from starlette.routing import Route

from foliot.domain.ids import JobId
from foliot.domain.notifications.notice import JobNames
from foliot.domain.notifications.rules import RuleScope
from foliot.handlers.registry import describe_types
from foliot.sdk.sync.job_export import job_file_of, write_yaml
from foliot.web.console.api import ApiRefusal
from foliot.web.console.charts import Axes, Bar, Line
from foliot.web.console.forms import SchemaField, fields_like, read_instant, schema_fields
from foliot.web.console.graphs import Neighbour, neighbours_graph
from foliot.web.console.pages.incidents import EVENTS
from foliot.web.console.pages.job_form import DEFAULTS, notify_text
from foliot.web.console.pages.jobs import ANY_STATUS, recent_runs, strip_mark
from foliot.web.console.site import Context, Visit, page
from foliot.web.console.text import as_json, milliseconds, parse, zone_named
from foliot.wire.jobs import JobOut

STRIP = 60
RUNS = 12
DAYS = 30
MOST_NEIGHBOURS = 8
MOST_FILTERED = 20  # rules by filter that are asked whether they find the job
TABS = (
    ("overview", "Overview"), ("figures", "Figures"), ("changes", "Changes"), ("definition", "Definition"), ("alerts", "Alerts"),
)  # fmt: skip
ALERT_EVENTS = (
    "run_failed",
    "recovered",
    "missed",
    "job_auto_paused",
    "job_paused",
    "job_resumed",
    "no_worker",
)
_FACTS = (
    "type", "queue", "priority", "timeout", "retry", "overlap", "misfire", "grace", "breaker", "window", "calendars", "start_at", "end_at", "max_runs",
    "concurrency_key", "start_deadline", "on_lost", "target", "read_only", "retention",
)  # fmt: skip


@page("job.html", "jobs")
async def job_page(visit: Visit) -> Context:
    job_id, tab = visit.path["job_id"], visit.param("tab", "overview")
    if tab not in GATHER:
        raise ApiRefusal(404, {"detail": "There is no such page."})
    job = await visit.api.get(f"/jobs/{job_id}", warnings="true" if tab == "overview" else None)
    more = await GATHER[tab](visit, job)
    return {
        "job": job,
        "zone_of_job": job["schedule"].get("timezone"),
        "tab": tab,
        "tabs": [
            (f"/console/jobs/{job_id}" + (f"?tab={name}" if name != "overview" else ""), visit.reader.translate(label), name == tab)
            for name, label in TABS
        ],
        "input_fields": [(each, each.write(job["payload"].get(each.name))) for each in await input_fields(visit, job)],
        **more,
    }  # fmt: skip


async def input_fields(visit: Visit, job: dict[str, Any]) -> list[SchemaField]:
    """The form of a run's input: by the schema that the job's type has for it, then by the payload's own values."""
    fields: list[SchemaField] = []
    if job["type"] not in describe_types():  # installed types have none
        types = (await visit.api.get("/job-types"))["items"]
        schema = next((each["config_schema"] for each in types if each["name"] == job["type"]), None) or {}
        fields = schema_fields(schema.get("x-input-schema"))
    known = {each.name for each in fields}
    return fields + [each for each in fields_like(job["payload"]) if each.name not in known]


async def overview(visit: Visit, job: dict[str, Any]) -> Context:
    api, job_id = visit.api, job["id"]
    asked_run, asked_at = visit.param("run"), visit.param("at")
    zone = visit.reader.zone or job["schedule"].get("timezone") or "UTC"
    at = read_instant("at", asked_at, zone, visit.reader.now)
    if asked_run:
        if "/" in asked_run:  # another address of the API
            raise ApiRefusal(404, {"detail": "There is no such run."})
        explaining = api.get(f"/runs/{asked_run}/explain")
    else:
        explaining = api.get(f"/jobs/{job_id}/explain", at=at)
    ahead, history, recent, explanation, stats, usage, around = await asyncio.gather(
        api.get(f"/jobs/{job_id}/next", n=5),
        api.get(f"/jobs/{job_id}/runs", limit=RUNS),
        recent_runs(visit, [job_id], STRIP),
        explaining,
        api.get(f"/jobs/{job_id}/stats", days=DAYS),
        api.get("/usage", job=job_id),
        neighbours(visit, job),
    )
    marks = [strip_mark(visit, run, job) for run in reversed(recent.get(job_id, []))]
    return {
        "ahead": ahead["items"],
        "ahead_notes": ahead["notes"],
        "is_skipping": any("It will be skipped" in note for each in ahead["items"] for note in each["notes"]),
        "runs": history["items"],
        "strip": marks,
        "explanation": explanation,
        "asked_at": parse(at).astimezone(zone_named(zone)).strftime("%Y-%m-%dT%H:%M") if at else "",
        "asked_zone": zone,
        "asked_run": asked_run,
        "stats": stats,
        "usage": usage,
        "graph": neighbours_graph(job["name"], *around, label=visit.reader.translate("Jobs before and after this one"))
        if any(around)
        else None,
        "around": around,
    }  # fmt: skip


async def neighbours(visit: Visit, job: dict[str, Any]) -> tuple[list[Neighbour], list[Neighbour]]:
    """The jobs that this one depends on, and those that depend on it."""
    edges = {each["job"]: each for each in job["depends_on"]}
    named = f"id:{','.join(list(edges)[:MOST_NEIGHBOURS])} {ANY_STATUS}"
    before, after = await asyncio.gather(
        visit.api.get("/jobs", q=named, limit=MOST_NEIGHBOURS) if edges else _nothing(),
        visit.api.get("/jobs", q=f"upstream:{job['id']}", limit=MOST_NEIGHBOURS),
    )
    t = visit.reader.translate
    upstream = [_neighbour(each, edges[each["id"]], t) for each in before["items"]]
    downstream = [
        _neighbour(each, edge, t)
        for each in after["items"]
        for edge in each["depends_on"]
        if edge["job"] == job["id"]
    ]
    return upstream, downstream


async def _nothing() -> dict[str, Any]:
    return {"items": []}


def _neighbour(job: dict[str, Any], edge: dict[str, Any], t: Callable[..., str]) -> Neighbour:
    words = {"success": "after success", "failure": "after failure", "any": "after any end"}[edge["on"]]
    gate = f" · {t('gate')}" if edge["mode"] == "gate" else ""
    return Neighbour(job["name"], f"/console/jobs/{job['id']}", job["status"], t(words) + gate)


async def figures(visit: Visit, job: dict[str, Any]) -> Context:
    """Durations, failure rate and lag by day. Days without records leave a gap."""
    stats = await visit.api.get(f"/jobs/{job['id']}/stats", days=DAYS)
    today = visit.reader.now.date()
    by_day = {each["day"]: each for each in stats["days"]}
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    rows = [(day, by_day.get(day.isoformat())) for day in days]
    t = visit.reader.translate

    def values(name: str) -> list[float | None]:
        return [None if each is None else each[name] for _, each in rows]

    rates = [None if rate is None else 100 - rate for rate in values("success_rate")]
    ends = [_short_day(days[0], t), _short_day(days[len(days) // 2], t), _short_day(days[-1], t)]
    milli, percent = Axes(ends, milliseconds), Axes(ends, lambda value: f"{value or 0:.0f} %")
    legend = [("m-ok", t("succeeded")), ("m-fail", t("failed")), ("m-skip", t("skipped"))]
    counted = [
        Bar(
            [("m-ok", each["successes"]), ("m-fail", each["failures"]), ("m-skip", each["skips"])] if each else [],
            f"{_short_day(day, t)}: {each['successes'] if each else 0} / {each['failures'] if each else 0} / {each['skips'] if each else 0}",
            f"/console/runs?q=job:{job['id']}+since:{day}+until:{day}" if each else None,
        )
        for day, each in rows
    ]  # fmt: skip
    return {
        "stats": stats,
        "figure_days": [(day, each) for day, each in rows if each],
        "counted": (counted, Axes(ends, legend=legend)),
        "plots": [
            ("duration", "Average duration", [Line("m-run", t("average duration"), values("average_duration_ms"))], milli),
            ("failures", "Failure rate", [Line("m-fail", t("failure rate"), rates)], percent),
            ("lag", "Start lag", [Line("m-wait", t("average lag"), values("average_lag_ms"))], milli),
        ],
    }  # fmt: skip


def _short_day(day: date, t: Callable[..., str]) -> str:
    return f"{day.day} {t(f'{day:%b}')}"


async def changes(visit: Visit, job: dict[str, Any]) -> Context:
    found, names = await asyncio.gather(
        visit.api.get(f"/jobs/{job['id']}/revisions", limit=20, cursor=visit.param("cursor") or None),
        member_names(visit),
    )
    name_people(found["items"], names)
    return {"revisions": found["items"], "next_cursor": found["next_cursor"]}


def name_people(revisions: list[dict[str, Any]], names: dict[str, str]) -> None:
    """Add the name of each author, and name the owners that a revision changed."""
    for each in revisions:
        each["actor_name"] = actor_name(each["actor"], names)
        for change in each["changes"]:
            if change["path"] == "/owner":
                change |= {side: names.get(change[side], change[side]) for side in ("before", "after")}


def actor_name(actor: str, names: dict[str, str]) -> str:
    """The name of the member behind an actor such as `key:<id>`, or the actor as it is."""
    return next((name for member, name in names.items() if member in actor), actor)


async def member_names(visit: Visit) -> dict[str, str]:
    """Names of the members by id, as far as this role may read them."""
    answer, me = await asyncio.gather(
        visit.api.answer("GET", "/members", params={"limit": 200}), visit.api.me()
    )
    listed = answer.data["items"] if answer.is_success else []
    return {each["id"]: each["name"] for each in (*listed, me["principal"])}


async def definition(visit: Visit, job: dict[str, Any]) -> Context:
    """The fields with where each value comes from, and the whole as the file that `foliot export` writes."""
    around, calendars = await asyncio.gather(neighbours(visit, job), visit.api.get("/calendars", limit=200))
    named = {each["id"]: each["name"] for each in calendars["items"]}
    whole = JobOut.model_validate(job)
    upstream_names = {UUID(each.href.rsplit("/", 1)[-1]): each.name for each in around[0]}
    content = job_file_of([whole], upstream_names, {UUID(key): name for key, name in named.items()})
    facts = [(name, job[name], origin_of(job, name)) for name in _FACTS if job[name] not in (None, [], {})]
    return {"facts": facts, "calendar_names": named, "as_yaml": write_yaml(content), "as_json": as_json(content)}  # fmt: skip


def origin_of(job: dict[str, Any], name: str) -> str:
    """Where the value of a field comes from: this job, its workspace, the installation, or the default of Foliot."""
    if name in job["inherited"]:
        return {
            "workspace": "default of the workspace",
            "installation": "default of the installation",
        }[job["inherited"][name]]
    return "default" if job[name] == DEFAULTS.get(name) and name != "type" else "set here"


async def alerts(visit: Visit, job: dict[str, Any]) -> Context:
    """Who hears of the job: as it says itself, or by the rules that are closest to it for each event."""
    rules, channels = await asyncio.gather(
        visit.api.answer("GET", "/notification-rules", params={"limit": 200}),
        visit.api.answer("GET", "/channels", params={"limit": 200}),
    )
    listed = [each for each in rules.data["items"] if each["enabled"]] if rules.is_success else []
    filtered = [each for each in listed if each["scope"]["q"]][:MOST_FILTERED]
    asked = [f"{each['scope']['q']} id:{job['id']}" for each in filtered]
    answers = await asyncio.gather(
        *(visit.api.answer("GET", "/jobs", params={"q": q, "limit": 1}) for q in asked)
    )
    finding = {
        each["id"]
        for each, answer in zip(filtered, answers, strict=True)
        if answer.is_success and answer.data["items"]
    }
    names = {each["id"]: each["name"] for each in channels.data["items"]} if channels.is_success else {}
    return {
        "events": EVENTS,
        "alert_rows": [(event, *closest_rules(listed, event, job, finding)) for event in ALERT_EVENTS],
        "channel_names": names,
        "own": notify_text(job["notify"]),
        "may_read_rules": rules.is_success,
    }  # fmt: skip


def closest_rules(
    rules: list[dict[str, Any]], event: str, job: dict[str, Any], finding: set[str]
) -> tuple[int, list[dict[str, Any]]]:
    """The closest rules that name the event, and how close: 3 the job, 2 its tag, queue or filter, 1 the workspace, 0 none.

    `finding` are the ids of the rules whose filter finds the job.
    """
    names = JobNames(JobId(UUID(job["id"])), job["name"], job["queue"], tuple(job["tags"]))
    levels: dict[int, list[dict[str, Any]]] = {}
    for rule in rules:
        scope = rule["scope"]
        named = tuple(JobId(UUID(each)) for each in scope["jobs"])
        known = RuleScope(named, tuple(scope["tags"]), tuple(scope["queues"]), scope["q"])
        closeness = known.closeness(names, is_found=rule["id"] in finding)
        if event in rule["events"] and closeness:
            levels.setdefault(closeness, []).append(rule)
    return (max(levels), levels[max(levels)]) if levels else (0, [])


GATHER: dict[str, Callable[[Visit, dict[str, Any]], Awaitable[Context]]] = {
    "overview": overview, "figures": figures, "changes": changes, "definition": definition, "alerts": alerts,
}  # fmt: skip
ROUTES = [Route("/jobs/{job_id}", job_page)]
