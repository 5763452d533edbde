"""Start: the guide to the first run, and a page that reads a schedule and names its next times."""

from __future__ import annotations

import asyncio
from zoneinfo import available_timezones

from starlette.routing import Route

from foliot.web.console.api import ApiRefusal
from foliot.web.console.site import Context, Visit, page

NAME = "hello"
WHEN = "every 10 seconds"
TIMES = 10
COUNTS = {"jobs": "true"}  # of /stats/now
EXAMPLES = (
    "every weekday at 9am",
    "30 2 * * 1-5",
    "every 15 minutes",
    "last friday of the month at 17:00",
    "tomorrow at 18:00",
    "0 4 1,15 * *",
)


def first_job(visit: Visit) -> Context:
    """What the guide puts into the first job: a request to this server's own health page."""
    port = (visit.request.scope["server"] or ("", 8700))[1]
    return {"first_name": NAME, "first_when": WHEN, "first_url": f"http://127.0.0.1:{port}/healthz"}


@page("start.html", "start", now=COUNTS)
async def start(visit: Visit) -> Context:
    stats, runs, good, channels, members = await asyncio.gather(
        visit.api.call("GET", "/stats/now", params=COUNTS),
        visit.api.get("/runs", limit=1),
        visit.api.get("/runs", q="status:succeeded", limit=1),
        visit.api.answer("GET", "/channels", params={"limit": 1}),
        visit.api.answer("GET", "/members", params={"limit": 2}),
    )
    return {
        "has_job": any(stats["jobs"].values()),
        "newest": next(iter(runs["items"]), None),
        "good": next(iter(good["items"]), None),
        "has_channel": channels.is_success and bool(channels.data["items"]),
        "has_colleague": members.is_success and len(members.data["items"]) > 1,
        **first_job(visit),
    }


@page("tester.html", "start")
async def tester(visit: Visit) -> Context:
    """The address holds the schedule, so a link to it can be shared."""
    me = await visit.api.me()
    when = visit.param("when") or EXAMPLES[0]
    zone = visit.param("timezone") or visit.reader.zone or me["workspace"]["default_timezone"]
    found, problem = None, None
    try:
        body = {"words": when[:500], "timezone": zone}
        found = await visit.api.call("POST", "/preview", body, params={"n": TIMES})
    except ApiRefusal as refusal:
        if refusal.status not in (400, 422):
            raise
        problem = refusal.sentences
    return {
        "when": when,
        "timezone": zone,
        "preview": found,
        "problem": problem,
        "examples": EXAMPLES,
        "zones": sorted(available_timezones()),
    }


ROUTES = [Route("/start", start), Route("/start/schedule", tester)]
