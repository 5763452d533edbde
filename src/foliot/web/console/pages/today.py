"""Today: one sentence on the state of the workspace, what needs a person, what is planned, how it went."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.routing import Route

from foliot.web.console import text
from foliot.web.console.api import Params
from foliot.web.console.charts import Axes, Bar
from foliot.web.console.pages.start import first_job
from foliot.web.console.site import Context, Visit, page

HOURS = 12
SLOTS = 48  # bars of the next hours
DAY = timedelta(hours=24)
BUCKETS = 24
DAYS = 14
FIGURES: Params = {"jobs": "true", "days": DAYS}  # of /stats/now
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OUTCOMES = (
    ("succeeded", "m-ok"),
    ("failed", "m-fail"),
    ("skipped", "m-skip"),
    ("cancelled", "m-stop"),
    ("open", "m-wait"),
)


@page("today.html", "today", now=FIGURES)
async def today(visit: Visit) -> Context:
    now = visit.reader.now
    api = visit.api
    begin = now.replace(second=0, microsecond=0)
    ahead = {"from": begin.isoformat(), "to": (begin + timedelta(hours=HOURS)).isoformat()}
    stats, failing, stopped, incidents, newest, density, queues, summary = await asyncio.gather(
        api.call("GET", "/stats/now", params=FIGURES),
        api.get("/jobs", q="failures:>=1 status:active", limit=20),
        api.get("/jobs", q="status:failed,paused", limit=20),
        api.get("/incidents", state="open", limit=20),
        api.get("/runs", limit=10),
        api.get("/agenda/density", buckets=SLOTS, **ahead),
        api.get("/queues"),
        api.get("/runs/summary", since=(now - DAY).isoformat(), buckets=BUCKETS),
    )
    needs = _needs(visit, incidents["items"], failing["items"] + stopped["items"], queues["items"])
    outcomes = _outcomes(visit, summary)
    return {
        "stats": stats,
        "needs": needs,
        "verdict": _verdict(visit, stats, needs),
        "newest": newest["items"],
        "hours": _hours(visit, density, begin),
        "hours_axes": Axes(x=_clock_labels(visit, begin, timedelta(hours=HOURS))),
        "density": density,
        "outcomes": outcomes,
        "outcomes_axes": Axes(
            x=_clock_labels(visit, text.parse(summary["since"]), DAY),
            legend=[(css, visit.reader.translate(name)) for name, css in OUTCOMES[:3]],
        ),
        "summary": summary,
        "is_empty": not any(stats["jobs"].values()),
        **first_job(visit),
    }


def _needs(
    visit: Visit,
    incidents: list[dict[str, Any]],
    jobs: list[dict[str, Any]],
    queues: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """One line for each thing that a person should look at. A job with an open incident has one line, not two."""
    t = visit.reader.translate
    lines = []
    states = {job["id"]: job for job in jobs}
    for each in incidents:
        if each["state"] in ("acknowledged", "snoozed", "muted"):
            continue  # a person looks after it already
        job = states.pop(each["job_id"], None)
        counted = t("{count} failures", count=each["failures"]) if each["failures"] else t("Missed")
        lines.append({
            "name": each["job_name"] or each["subject"],
            "href": f"/console/jobs/{each['job_id']}" if each["job_id"] else "/console/capacity",
            "incident": f"/console/incidents/{each['id']}",
            "status": job["status"] if job and job["status"] != "active" else None,
            "what": counted,
            "why": (each["error"] or {}).get("message") or t(each["event"].replace("_", " ")),
            "since": each["opened_at"],
        })  # fmt: skip
    looked_after = {each["job_id"] for each in incidents}
    for job in states.values():
        if job["id"] in looked_after or (job["status"] == "paused" and not job["consecutive_failures"]):
            continue  # paused by a person
        failures = job["consecutive_failures"]
        lines.append({
            "name": job["name"], "href": f"/console/jobs/{job['id']}", "incident": None,
            "status": job["status"] if job["status"] != "active" else None,
            "what": t("{count} failures in a row", count=failures) if failures else "",
            "why": job["last_error"] or job["status_reason"] or "", "since": job["last_run_at"] or job["status_at"],
        })  # fmt: skip
    lines.extend(
        {
            "name": t("Queue {name}", name=queue["name"]), "href": "/console/capacity", "incident": None,
            "status": None, "what": "", "why": warning, "since": queue["oldest_ready_at"],
        }
        for queue in queues
        for warning in queue["warnings"]
    )  # fmt: skip
    return lines


def _verdict(visit: Visit, stats: dict[str, Any], needs: list[dict[str, Any]]) -> tuple[str, str]:
    t = visit.reader.translate
    if needs:
        many = t("{count} things need you.", count=len(needs))
        return "fail", many if len(needs) > 1 else t("One thing needs you.")
    if stats["now"]["late"]:
        return "late", t("{count} jobs are late: the scheduler is behind.", count=stats["now"]["late"])
    if not stats["jobs"]["active"]:
        return "wait", t("No job is active.")
    return "ok", t("All is well.")


def _hours(visit: Visit, density: dict[str, Any], begin: datetime) -> list[Bar]:
    """Planned runs of each quarter of an hour ahead."""
    t = visit.reader.translate
    slot = timedelta(hours=HOURS) / SLOTS
    made = []
    for place, count in enumerate(density["counts"]):
        time = visit.reader.absolute(begin + slot * place)
        title = t("{time}: {count} planned runs", count=f"{count:,}", time=time)
        made.append(Bar((("m-run", count),), title, f"/console/agenda?hours={HOURS}"))
    return made


def _outcomes(visit: Visit, summary: dict[str, Any]) -> list[Bar]:
    """One bar for each stretch of the last day, also for those without a record."""
    t = visit.reader.translate
    width = timedelta(seconds=summary["bucket_seconds"])
    since = text.parse(summary["since"])
    begin = since - (since - EPOCH) % width  # buckets start at whole multiples of their width
    known = {int((text.parse(each["at"]) - begin) / width): each for each in summary["buckets"]}
    made = []
    for place in range(int((text.parse(summary["until"]) - begin) / width) + 1):
        at = begin + width * place
        counts = known.get(place, {})
        parts = [(css, counts.get(name, 0)) for name, css in OUTCOMES]
        said = ", ".join(f"{t(name)} {counts[name]:,}" for name, _ in OUTCOMES if counts.get(name))
        until = (at + width).isoformat().replace("+00:00", "Z")
        start = at.isoformat().replace("+00:00", "Z")
        title = f"{visit.reader.absolute(at)}: {said or t('no record')}"
        made.append(Bar(parts, title, f"/console/runs?q=since:{start}+until:{until}"))
    return made


def _clock_labels(visit: Visit, begin: datetime, span: timedelta) -> list[str]:
    zone = text.zone_named(visit.reader.zone or "UTC")
    return [f"{(begin + span * place / 4).astimezone(zone):%H:%M}" for place in range(5)]


ROUTES = [Route("/", today)]
