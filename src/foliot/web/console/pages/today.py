"""Today: one sentence on the state of the workspace, what needs a person, what is planned, how it went."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from starlette.routing import Route

from foliot.web.console import text
from foliot.web.console.charts import Bar
from foliot.web.console.site import Context, Visit, page

HOURS = 12
DAYS = 14


@page("today.html", "today")
async def today(visit: Visit) -> Context:
    now = visit.reader.now
    api = visit.api
    stats, failing, stopped, newest, agenda, queues = await asyncio.gather(
        api.get("/stats", days=DAYS),
        api.get("/jobs", q="failures>=1 status:active", limit=20),
        api.get("/jobs", q="status:failed,paused", limit=20),
        api.get("/runs", limit=12),
        api.get("/agenda", **{"from": now.isoformat(), "to": (now + timedelta(hours=HOURS)).isoformat()}),
        api.get("/queues"),
    )
    stopped_by_itself = [
        job for job in stopped["items"] if job["status"] == "failed" or job["consecutive_failures"]
    ]
    unserved = [queue for queue in queues["items"] if queue["warnings"]]
    needs = len(failing["items"]) + len(stopped_by_itself) + len(unserved)
    return {
        "stats": stats,
        "failing": failing["items"],
        "stopped": stopped_by_itself,
        "unserved": unserved,
        "verdict": _verdict(visit, stats, needs),
        "newest": newest["items"],
        "hours": _hours(visit, agenda["items"], now),
        "days": _days(visit, stats["days"]),
        "first_url": f"http://127.0.0.1:{(visit.request.scope['server'] or ('', 8700))[1]}/healthz",
        "is_empty": not any(stats["jobs"].values()),
        "agenda_count": sum(item["count"] or 0 for item in agenda["items"]),
    }


def _verdict(visit: Visit, stats: dict[str, Any], needs: int) -> tuple[str, str]:
    t = visit.reader.translate
    if needs:
        return "fail", t("{count} things need you.", count=needs) if needs > 1 else t("One thing needs you.")
    if stats["now"]["late"]:
        return "wait", t("{count} runs are late.", count=stats["now"]["late"])
    if not stats["jobs"]["active"]:
        return "wait", t("No job is active.")
    return "ok", t("All is well.")


def _hours(visit: Visit, items: list[dict[str, Any]], now: datetime) -> list[Bar]:
    """Planned runs of each hour ahead. A line with a count stands for evenly spread times."""
    t = visit.reader.translate
    counts = [0.0] * HOURS
    for item in items:
        first = text.parse(item["planned_for"])
        many = item["count"] or 1
        last = text.parse(item["last_for"]) if item["last_for"] else first
        step = (last - first) / max(many - 1, 1)
        for place in range(min(many, 20_000)) if many > 1 else [0]:
            hour = int((first + step * place - now) / timedelta(hours=1))
            if 0 <= hour < HOURS:
                counts[hour] += 1
    made = []
    for hour, count in enumerate(counts):
        at = now + timedelta(hours=hour)
        title = t(
            "{count} planned runs in the hour from {time}",
            count=f"{count:,.0f}",
            time=visit.reader.absolute(at),
        )
        made.append(Bar((("m-run", count),), title, f"/console/agenda?hours={HOURS}"))
    return made


def _days(visit: Visit, days: list[dict[str, Any]]) -> list[Bar]:
    """One bar for each of the last days, also for days without a record."""
    t, today_ = visit.reader.translate, visit.reader.now.date()
    known = {day["day"]: day for day in days}
    made = []
    for back in reversed(range(DAYS)):
        name = (today_ - timedelta(days=back)).isoformat()
        day = known.get(name, {"successes": 0, "failures": 0, "skips": 0})
        title = t(
            "{day}: {ok} succeeded, {failed} failed, {skipped} skipped",
            day=name,
            ok=day["successes"],
            failed=day["failures"],
            skipped=day["skips"],
        )
        parts = (("m-ok", day["successes"]), ("m-fail", day["failures"]), ("m-skip", day["skips"]))
        made.append(Bar(parts, title, f"/console/runs?q=since:{name}"))
    return made


ROUTES = [Route("/", today)]
