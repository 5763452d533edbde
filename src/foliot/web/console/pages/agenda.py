"""Agenda: what is planned and what ran on one axis, by day, by week and by minute. The calendar file: `agenda_feed.py`."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from http import HTTPStatus
from typing import Any
from zoneinfo import ZoneInfo

from starlette.routing import Route

from foliot.web.console.api import ApiRefusal
from foliot.web.console.charts import LaneMark
from foliot.web.console.pages.agenda_grids import DAY, HOUR, MINUTE, Frame, minute_grid, week_grid
from foliot.web.console.pages.jobs import recent_runs
from foliot.web.console.pages.runs import address, instant
from foliot.web.console.site import Context, Visit, page
from foliot.web.console.text import STATUS_SHAPES, milliseconds, parse, zone_named
from foliot.web.internal_calls import ApiAnswer

MOST_HOURS = 24 * 31
MOST_LANES = 40
MARKS = 60  # newest records of each lane
MOST_RUNS = 120  # of all jobs, for a day
LINES = {"day": 400, "list": 120}  # of the agenda
FEW_LINES = 100  # often enough for the lanes of a day
VIEWS = (("day", "Day"), ("week", "Week"), ("heat", "Minutes"), ("list", "List"))


@page("agenda.html", "agenda")
async def agenda(visit: Visit) -> Context:
    wanted = {name: visit.param(name) for name in ("view", "date", "tag", "queue")}
    view = wanted["view"] if wanted["view"] in dict(VIEWS) else "list" if visit.param("hours") else "day"
    zone, now = zone_named(visit.reader.zone or "UTC"), visit.reader.now
    today = now.astimezone(zone).date()
    day = _read_date(wanted["date"]) or today
    days = 7 if view == "week" else 1
    begin, end = _midnight(day, zone), _midnight(day + DAY * days, zone)
    hours = _read_hours(visit.param("hours"))
    if view == "heat" and day == today:
        begin = now.replace(second=0, microsecond=0)  # the hours that have passed are those of tomorrow
        end = begin + DAY
    if view == "list" and not wanted["date"]:
        begin, end = now, now + HOUR * hours
    planned, freezes, *shown = await asyncio.gather(
        _density(visit, wanted, begin, end, HOUR if view == "week" else MINUTE)
        if view in ("week", "heat")
        else _planned(visit, wanted, max(begin, now), end, view),
        visit.api.answer("GET", "/freezes"),
        *([_counts(visit, wanted, begin, min(end, now))] if view == "week" and begin < now else []),
        *(
            [visit.api.get("/runs", since=instant(begin), until=instant(min(end, now)), limit=MOST_RUNS)]
            if view == "day" and begin < now
            else []
        ),
    )
    frame = Frame(begin, end, now, zone)
    context: Context = {
        "view": view,
        "agenda": {"estimated": False, "truncated": False, "notes": [], **planned},
        "tag": wanted["tag"],
        "queue": wanted["queue"],
        "day": day.isoformat(),
        "views": [(address("/console/agenda", **{**wanted, "view": name}), visit.reader.translate(label), name == view) for name, label in VIEWS],
        "steps": _steps(wanted, view, day, today, days),
        "title": _title(visit, day, days),
        "now_at": frame.share(now) if begin < now < end else None,
        "closings": _closings(frame, planned.get("closures", [])),
        "freezes": _freezes(frame, freezes.data["items"] if freezes.is_success else []),
        "ics": address("/console/agenda.ics", tag=wanted["tag"], queue=wanted["queue"]),
        "feed": address("/console/agenda/feed", tag=wanted["tag"], queue=wanted["queue"]),
        "zone_name": str(zone),
    }  # fmt: skip
    if view == "day":
        context["lanes"], context["lane_count"] = await _lanes(
            visit, frame, shown[0]["items"] if shown else [], planned["items"]
        )
    elif view == "week":
        spans = [
            (
                parse(each["start"]),
                parse(each["end"]),
                "closed",
                visit.reader.translate("Closed by {name}", name=each["name"]),
            )
            for each in planned.get("closures", [])
        ]
        spans += [
            (each["start"], each["stop"], "frozen", f"{visit.reader.translate('Freeze')}: {each['reason']}")
            for each in context["freezes"]
            if each["is_whole"]
        ]
        context["cells"] = week_grid(visit, frame, planned["counts"], shown[0] if shown else {}, spans)
        context["counted_since"] = shown[0].get("counted_since") if shown else None
    elif view == "heat":
        context |= minute_grid(visit, frame, planned["counts"])
    else:
        context |= {"by_day": _by_day(visit, planned["items"], zone), "hours": hours}
    return context


def _read_date(raw: str) -> date | None:
    try:
        found = date.fromisoformat(raw) if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", raw) else None
    except ValueError:
        return None
    return found if found is not None and 2000 <= found.year <= 2200 else None


def _read_hours(raw: str) -> int:
    return int(raw) if re.fullmatch(r"[1-9][0-9]{0,2}", raw) and int(raw) <= MOST_HOURS else 24


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time.min, zone).astimezone(zone_named("UTC"))


def _steps(
    wanted: dict[str, str], view: str, day: date, today: date, days: int
) -> list[tuple[str, str, bool]]:
    def to(when: date) -> str:
        return address("/console/agenda", **{**wanted, "view": view, "date": when.isoformat()})

    return [
        (to(day - DAY * days), "earlier", False),
        (to(today), "today", day == today),
        (to(day + DAY * days), "later", False),
    ]


def _title(visit: Visit, day: date, days: int) -> str:
    t = visit.reader.translate
    ends = [day] if days == 1 else [day, day + DAY * (days - 1)]
    return " … ".join(f"{t(f'{each:%a}')} {each.day} {t(f'{each:%b}')} {each.year}" for each in ends)


async def _density(
    visit: Visit, wanted: dict[str, str], begin: datetime, end: datetime, part: timedelta
) -> dict[str, Any]:
    """How many runs are planned in each part of the span, from now on; none where it has passed."""
    nothing = {"counts": [], "estimated": False}
    if end <= visit.reader.now:
        return nothing
    params = {
        "from": begin.isoformat(),
        "to": end.isoformat(),
        "buckets": str(round((end - begin) / part)),
        "closures": "true",
        "tag": wanted["tag"],
        "queue": wanted["queue"],
    }
    return _data(await visit.api.answer("GET", "/agenda/density", params=params), nothing)


async def _planned(
    visit: Visit, wanted: dict[str, str], begin: datetime, end: datetime, view: str
) -> dict[str, Any]:
    """What is planned from now on; nothing where the span has passed or lies too far ahead.

    A day has few lanes. Where the first lines fill them, as in a large workspace, no more are computed.
    """
    nothing = {"items": [], "truncated": False, "complete_until": None}
    if end <= visit.reader.now or end - begin > DAY * 31:
        return nothing
    params = {
        "from": begin.isoformat(),
        "to": end.isoformat(),
        "tag": wanted["tag"],
        "queue": wanted["queue"],
        "closures": "true",
    }
    if view == "day":
        found = _data(
            await visit.api.answer("GET", "/agenda", params=params | {"limit": str(FEW_LINES)}), nothing
        )
        if not found["truncated"] or len({each["job_id"] for each in found["items"]}) >= MOST_LANES:
            return found
    limited = params | {"limit": str(LINES[view])}
    return _data(await visit.api.answer("GET", "/agenda", params=limited), nothing)


def _data(answer: ApiAnswer, nothing: dict[str, Any]) -> dict[str, Any]:
    """What was answered; nothing to a filter that cannot be."""
    if answer.is_success:
        found: dict[str, Any] = answer.data
        return found
    if answer.status != HTTPStatus.UNPROCESSABLE_ENTITY:
        raise ApiRefusal(answer.status, answer.data)
    return nothing


async def _counts(visit: Visit, wanted: dict[str, str], begin: datetime, end: datetime) -> dict[str, Any]:
    """How many runs each hour had."""
    terms = [f"{name}:{wanted[name]}" for name in ("tag", "queue") if wanted[name]]
    params = {"q": " ".join(terms), "since": instant(begin), "until": instant(end), "buckets": "200"}
    answer = await visit.api.answer("GET", "/runs/summary", params=params)
    return answer.data if answer.is_success else {}


def _freezes(frame: Frame, freezes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    drawn = []
    for each in freezes:
        start = parse(each["start_at"])
        ended = each["lifted_at"] or each["end_at"]
        stop = parse(ended) if ended else frame.end
        if start < frame.end and stop > frame.begin:
            left, right = frame.share(start), frame.share(stop)
            shown = {
                "reason": each["reason"],
                "is_whole": each["scope"]["everything"],
                "start": start,
                "stop": stop,
            }
            drawn.append({"left": left, "width": max(right - left, 0.3), **shown})
    return drawn[:20]


def _closings(frame: Frame, closures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A lane for each calendar that closes in the span."""
    lanes: dict[str, dict[str, Any]] = {}
    for each in closures:
        start, stop = parse(each["start"]), parse(each["end"])
        if start < frame.end and stop > frame.begin:
            new = {"id": each["calendar_id"], "name": each["name"], "spans": []}
            left = frame.share(start)
            span = {"left": left, "width": max(frame.share(stop) - left, 0.3), "start": start, "end": stop}
            lanes.setdefault(each["calendar_id"], new)["spans"].append(span)
    return list(lanes.values())[:5]


# ---- the day: a lane for each job


@dataclass(slots=True)
class _Lane:
    job_id: str
    name: str
    first: datetime
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)  # by id
    items: list[dict[str, Any]] = field(default_factory=list)
    marks: list[LaneMark] = field(default_factory=list)


async def _lanes(
    visit: Visit, frame: Frame, runs: list[dict[str, Any]], items: list[dict[str, Any]]
) -> tuple[list[_Lane], int]:
    """Jobs with something planned or recorded in the span, in order of time; what ran left of now, what is planned right of it."""
    lanes: dict[str, _Lane] = {}
    for run in reversed(runs):
        lane = lanes.get(run["job_id"]) or _Lane(
            run["job_id"], run["job_name"] or "", parse(run["planned_for"])
        )
        lanes.setdefault(lane.job_id, lane).runs[run["id"]] = run
    for item in items:
        lane = lanes.get(item["job_id"]) or _Lane(item["job_id"], item["job_name"], parse(item["starts_at"]))
        lanes.setdefault(lane.job_id, lane).items.append(item)
    drawn = sorted(lanes.values(), key=lambda lane: (lane.first, lane.name))[:MOST_LANES]
    if drawn and frame.begin < frame.now:
        await _add_recent(visit, frame, drawn)
    for lane in drawn:
        lane.marks += [_ran(visit, frame, run) for run in lane.runs.values()]
        lane.marks += [_planned_mark(visit, frame, item) for item in lane.items]
    return drawn, len(lanes)


async def _add_recent(visit: Visit, frame: Frame, lanes: list[_Lane]) -> None:
    """The list of all runs holds few of a job among busy ones: add the newest of each lane."""
    by_job = await recent_runs(visit, [lane.job_id for lane in lanes], MARKS, instant(frame.begin))
    for lane in lanes:
        for run in by_job.get(lane.job_id, []):
            if parse(run["planned_for"]) < frame.end:
                lane.runs.setdefault(run["id"], run)


def _ran(visit: Visit, frame: Frame, run: dict[str, Any]) -> LaneMark:
    start = parse(run.get("started_at") or run["planned_for"])
    still = frame.now if run["status"] == "running" else start
    stop = parse(run["finished_at"]) if run.get("finished_at") else still
    left = frame.share(start)
    word = visit.reader.translate(run["status"].replace("_", " "))
    return LaneMark(
        left,
        frame.width(left, stop),
        f"m-{STATUS_SHAPES.get(run['status'], 'wait')}",
        f"#{run['number']} {word}, {visit.reader.absolute(start)}",
        f"/console/runs/{run['id']}",
    )


def _planned_mark(visit: Visit, frame: Frame, item: dict[str, Any]) -> LaneMark:
    start = parse(item["starts_at"])
    expected = timedelta(milliseconds=item["expected_duration_ms"] or 0)
    stop = parse(item["last_for"]) if item["last_for"] else start + expected
    left, t = frame.share(start), visit.reader.translate
    many = t("{count} times", count=f"{item['count']:,}") if item["count"] and item["count"] > 1 else ""
    took = t("usually {time}", time=milliseconds(item["expected_duration_ms"])) if expected else ""
    fate = "" if item["fate"] == "runs" else t(item["fate"])
    words = ", ".join(
        each for each in (visit.reader.absolute(start), many, took, fate, *item["notes"]) if each
    )
    css = "planned series" if item["last_for"] else "planned"
    if item["fate"] != "runs":
        css += " not"
    return LaneMark(left, frame.width(left, stop), css, words, f"/console/jobs/{item['job_id']}")


# ---- the list


def _by_day(visit: Visit, items: list[dict[str, Any]], zone: ZoneInfo) -> dict[str, list[dict[str, Any]]]:
    t = visit.reader.translate
    days: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        local = parse(item["starts_at"]).astimezone(zone)
        days.setdefault(f"{t(f'{local:%a}')} {local.day} {t(f'{local:%b}')}", []).append(item)
    return days


ROUTES = [Route("/agenda", agenda)]
