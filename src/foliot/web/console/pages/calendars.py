"""Calendars: list, one with its year, and the form that writes one from dates, countries, files and weekly rules."""

from __future__ import annotations

import asyncio
import re
from calendar import Calendar as Weeks
from datetime import date
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, Params, field_refusal, read_json, read_number
from foliot.web.console.pages.form_routes import items_of
from foliot.web.console.site import Context, Visit, action, done, page, render, shell_of
from foliot.web.console.text import as_json

WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
SPARE_ROWS = 2  # empty weekly rules in the form
MOST_ROWS = 10
FIRST_YEAR, LAST_YEAR = 1970, 2200
_DATES = re.compile(r"(\d{4}-\d\d-\d\d)(?:\s*\.\.\s*(\d{4}-\d\d-\d\d))?(?:\s+(.*))?", re.ASCII)
FIELDS = (
    "name",
    "kind",
    "timezone",
    "otherwise",
    "dates",
    "others",
    "country",
    "subdivision",
    "first_year",
    "years",
    "ics",
    "scope",
    *(SCOPES := ("types", "tags", "queues", "hosts")),
)


@page("calendars.html", "calendars")
async def calendar_list(visit: Visit) -> Context:
    found = await visit.api.get("/calendars", cursor=visit.param("cursor") or None, limit=50)
    return {"calendars": found["items"], "next_cursor": found["next_cursor"]}


@page("calendar.html", "calendars")
async def calendar(visit: Visit) -> Context:
    """One calendar with the year of the address."""
    calendar_id, raw = visit.path["calendar_id"], visit.param("year")
    wanted = raw if raw.isascii() and raw.isdecimal() and FIRST_YEAR <= int(raw[:9]) <= LAST_YEAR else None
    found, year, jobs = await asyncio.gather(
        visit.api.get(f"/calendars/{calendar_id}"),
        visit.api.answer("GET", f"/calendars/{calendar_id}/year", params={"year": wanted}),
        items_of(visit, f"/calendars/{calendar_id}/jobs", limit=20),
    )
    if not year.is_success:  # rules that take too long to evaluate
        return {"calendar": found, "jobs": jobs or [], "year": None, "problem": year.data.get("detail", "")}
    days = {each["date"]: each for each in year.data["days"]}
    return {
        "calendar": found,
        "jobs": jobs or [],
        "year": year.data,
        "months": [(MONTHS[month - 1], _weeks(year.data["year"], month, days)) for month in range(1, 13)],
        "counts": {
            state: sum(each["state"] == state for each in days.values()) for state in ("closed", "part")
        },
        "named": [each for each in year.data["days"] if each["names"]],
        "today": visit.reader.now.date().isoformat(),
        "problem": None,
    }


def _weeks(
    year: int, month: int, days: dict[str, Any]
) -> list[list[tuple[date, dict[str, Any] | None] | None]]:
    """The weeks of a month; days of other months are None."""
    weeks = Weeks().monthdatescalendar(year, month)
    return [
        [(day, days.get(day.isoformat())) if day.month == month else None for day in week] for week in weeks
    ]


# ---- the form


@page("calendar_form.html", "calendars", "editor")
async def new_calendar(visit: Visit) -> Context:
    typed = {"kind": "blackout", "otherwise": "skip", "years": "5"}
    return await _form(visit, {**dict.fromkeys(FIELDS, ""), **typed}, [])


@page("calendar_form.html", "calendars", "editor")
async def edit_calendar(visit: Visit) -> Context:
    found = await visit.api.get(f"/calendars/{visit.path['calendar_id']}")
    rules = found["rules"]
    typed = {
        **dict.fromkeys(FIELDS, ""),
        **{name: found[name] for name in ("name", "kind", "timezone", "otherwise")},
        **_typed_scope(found["scope"]),
        "years": "5",
        "dates": "\n".join(map(_date_line, (rule for rule in rules if rule["kind"] == "date"))),
        "revision": str(found["revision"]),
    }
    others = [rule for rule in rules if rule["kind"] in ("absolute", "cron")]
    weekly = [rule for rule in rules if rule["kind"] == "weekly"]
    if len(weekly) > MOST_ROWS:
        others, weekly = [*weekly[MOST_ROWS:], *others], weekly[:MOST_ROWS]
    return await _form(visit, {**typed, "others": _pretty(others)}, weekly)


async def _form(
    visit: Visit, typed: dict[str, str], weekly: list[dict[str, Any]], problems: list[str] | None = None
) -> Context:
    countries = await visit.api.get("/calendars/countries")
    empty: dict[str, Any] = {"days": [], "start": "", "end": ""}
    return {
        "calendar_id": visit.path.get("calendar_id"),
        "typed": {"revision": "", **typed},
        "weekly": [*weekly, *([empty] * SPARE_ROWS)][: MOST_ROWS + SPARE_ROWS],
        "week": WEEK,
        "countries": countries["items"],
        "problems": problems or [],
        "added": None,
    }


async def save(visit: Visit) -> Response:
    """Write the calendar; or, asked by a button, add the days of a country or a file to the form."""
    typed = {name: visit.field(name) for name in (*FIELDS, "revision")}
    weekly: list[dict[str, Any]] = []
    try:
        weekly = _weekly_rules(visit)
        if source := visit.field("add"):
            return await _add(visit, typed, weekly, source)
        calendar_id = visit.path.get("calendar_id")
        body: dict[str, Any] = {name: typed[name] for name in ("name", "kind", "otherwise")}
        body["rules"] = [*_dates(typed["dates"]), *weekly, *_others(typed["others"])]
        body |= {"timezone": typed["timezone"]} if typed["timezone"] else {}
        if typed["scope"]:
            lists = {name: re.findall(r"[^,\s]+", typed[name]) for name in SCOPES}
            body["scope"] = {"everything": True} if typed["scope"] == "everything" else lists
        path = f"/calendars/{calendar_id}" if calendar_id else "/calendars"
        headers = {"if-match": f'"{typed["revision"]}"'} if calendar_id and typed["revision"] else None
        made = await visit.api.call("PUT" if calendar_id else "POST", path, body, headers=headers)
    except ApiRefusal as refusal:
        return await _again(visit, await _form(visit, typed, weekly, refusal.sentences), refusal.status)
    return done(f"/console/calendars/{made['id']}", "calendar-saved")


async def _add(visit: Visit, typed: dict[str, str], weekly: list[dict[str, Any]], source: str) -> Response:
    years = read_number("years", typed["years"] or "5")
    first = read_number("first_year", typed["first_year"]) if typed["first_year"] else None
    if source == "country":
        if not re.fullmatch(r"[A-Za-z]{2,3}", typed["country"]):
            raise field_refusal("country", "Choose a country, by its code of two letters.")
        params: Params = {
            "country": typed["country"],
            "subdivision": typed["subdivision"] or None,
            "first_year": first,
            "years": years,
        }
        found = await visit.api.call("GET", "/calendars/holidays", params=params)
    else:
        body = {"text": visit.field("file") or typed["ics"], "first_year": first, "years": years}
        found = await visit.api.call("POST", "/calendars/ics", body)
    known = typed["dates"].splitlines()
    lines = [line for line in map(_date_line, found["rules"]) if line not in known]
    form = await _form(
        visit, {**typed, "dates": "\n".join(sorted([*known, *lines])).strip(), "ics": ""}, weekly
    )
    return await _again(visit, {**form, "added": len(lines)}, 200)


async def _again(visit: Visit, found: Context, status: int) -> Response:
    return render(
        visit, "calendar_form.html", {**await shell_of(visit), "active": "calendars", **found}, status
    )


def _typed_scope(scope: dict[str, Any] | None) -> dict[str, str]:
    if scope is None:
        return {}
    lists = {name: ", ".join(scope[name]) for name in SCOPES}
    return {**lists, "scope": "everything" if scope["everything"] else "some"}


def _dates(text: str) -> list[dict[str, Any]]:
    """Days, one a line: 2027-01-01 New Year, 2027-12-24..2027-12-26 Christmas."""
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        found = _DATES.fullmatch(line.strip())
        if found is None:
            raise field_refusal(
                "dates", f"Line {number} is not a day: write it like 2027-12-24 or 2027-12-24..2027-12-26."
            )
        rules.append({"kind": "date", "date": found[1], "last": found[2], "name": (found[3] or "").strip()})
    return rules


def _date_line(rule: dict[str, Any]) -> str:
    last = f"..{rule['last']}" if rule["last"] else ""
    return f"{rule['date']}{last} {rule['name']}".strip()


def _weekly_rules(visit: Visit) -> list[dict[str, Any]]:
    """The weekly rows that have days. Without times a row is about whole days."""
    rules = []
    for row in range(MOST_ROWS + SPARE_ROWS):
        days = [day for day in WEEK if visit.field(f"weekly-{row}-{day}")]
        start, end = visit.field(f"weekly-{row}-start"), visit.field(f"weekly-{row}-end")
        if days:
            rules.append({"kind": "weekly", "days": days, "start": start or "00:00", "end": end or "00:00"})
        elif start or end:
            raise field_refusal("weekly", "Tick the days of a weekly time.")
    return rules


def _others(text: str) -> list[Any]:
    found = read_json("others", text) if text else []
    if not isinstance(found, list):
        raise field_refusal("others", "This is a list of rules.")
    return found


def _pretty(rules: list[dict[str, Any]]) -> str:
    return as_json(rules) if rules else ""


async def delete(visit: Visit) -> Response:
    params = {"force": "true" if visit.field("force") else ""}
    await visit.api.call("DELETE", f"/calendars/{visit.path['calendar_id']}", params=params)
    return done("/console/calendars", "calendar-deleted")


ROUTES = [
    Route("/calendars", calendar_list),
    Route("/calendars/new", new_calendar),
    Route("/calendars/new", action(save), methods=["POST"]),
    Route("/calendars/{calendar_id}", calendar),
    Route("/calendars/{calendar_id}/edit", edit_calendar),
    Route("/calendars/{calendar_id}/edit", action(save), methods=["POST"]),
    Route("/calendars/{calendar_id}/delete", action(delete), methods=["POST"]),
]
