"""Audit: who changed what, when, from where; the difference of each change; export."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import AsyncIterator
from datetime import datetime, time
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal
from foliot.web.console.pages.form_routes import instant_of, items_of, zone_of
from foliot.web.console.session import api_of
from foliot.web.console.site import SECURITY_HEADERS, Context, Visit, page

FILTERS = ("actor", "action", "object", "since", "until")
PAGES_OF_OBJECTS = {
    "job": "/console/jobs/{}",
    "run": "/console/runs/{}",
    "calendar": "/console/calendars/{}",
    "channel": "/console/settings/channels/{}",
    "notification_rule": "/console/settings/rules/{}",
    "incident": "/console/incidents/{}",
    "room": "/console/rooms/{}",
    "member": "/console/settings/members/{}",
    "principal": "/console/settings/members/{}",
    "freeze": "/console/freezes",
}
LONGEST_VALUE = 300  # characters of a value in a difference
MOST_EXPORTED = 50_000  # entries in one file
PAGE = 200
COLUMNS = (
    "at",
    "actor",
    "actor_name",
    "action",
    "object_kind",
    "object_id",
    "address",
    "request_id",
    "before",
    "after",
)


@page("audit.html", "audit")
async def audit(visit: Visit) -> Context:
    wanted = {name: visit.param(name) for name in FILTERS}
    cursor, problems = visit.param("cursor"), []
    found: dict[str, Any] = {"items": [], "next_cursor": None}
    query: dict[str, str] = {}
    try:
        query = _query(visit, wanted)
        found = await visit.api.get("/audit", **query, cursor=cursor or None, limit=50)
    except ApiRefusal as refusal:
        if refusal.status == 403:
            raise
        problems = refusal.sentences
    members = await items_of(visit, "/members") or []
    midnight = datetime.combine(visit.reader.now.astimezone(zone_of(visit)).date(), time())
    flags = "".join(f" --{name} {shlex.quote(value)}" for name, value in query.items())
    return {
        "entries": [_shown(each) for each in found["items"]],
        "next_cursor": found["next_cursor"],
        "is_later": bool(cursor),
        "wanted": wanted,
        "query": urlencode({name: value for name, value in wanted.items() if value}),
        "api_query": urlencode(query),
        "command": f"foliot audit list{flags}",
        "actors": [("engine", "Foliot"), *((each["id"], each["name"]) for each in members)],
        "today": f"{midnight:%Y-%m-%dT%H:%M}",
        "problems": problems,
    }


def _query(visit: Visit, wanted: dict[str, str]) -> dict[str, str]:
    """The filters as the API takes them: times get their zone."""
    times = {name: instant_of(visit, name, wanted[name]) for name in ("since", "until")}
    return {name: value for name, value in {**wanted, **times}.items() if value}


def _shown(entry: dict[str, Any]) -> dict[str, Any]:
    before, after = entry["before"] or {}, entry["after"] or {}
    address = PAGES_OF_OBJECTS.get(entry["object"]["kind"])
    name = next((each["name"] for each in (*_named(after), *_named(before)) if each.get("name")), None)
    return {
        **entry,
        "href": address.format(entry["object"]["id"]) if address else None,
        "name": name if isinstance(name, str) else None,
        "changes": differences(before, after),
    }


def _named(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Where the name of the object may stand: in the entry itself, or in the definition that it stores."""
    definition = values.get("definition")
    return [values, definition] if isinstance(definition, dict) else [values]


def differences(
    before: dict[str, Any], after: dict[str, Any], within: str = ""
) -> list[dict[str, str | None]]:
    """The fields that differ, with both values as text; fields that are equal are left out. Of an object, the fields in it."""
    found: list[dict[str, str | None]] = []
    for field in dict.fromkeys([*before, *after]):
        old, new = before.get(field), after.get(field)
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new, f"{within}{field}.")
        elif old != new or (field in before) != (field in after):
            name = f"{within}{field}"
            found.append({"field": name, "before": _text(before, field), "after": _text(after, field)})
    return found


def _text(values: dict[str, Any], field: str) -> str | None:
    if field not in values:
        return None
    value = values[field]
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return written if len(written) <= LONGEST_VALUE else written[:LONGEST_VALUE] + "…"


async def export(request: Request) -> Response:
    """The entries that match, newest first, as a file: CSV, or one JSON object a line."""
    visit = Visit(request, api_of(request))
    kind = visit.path["kind"]
    if kind not in ("csv", "jsonl"):
        raise ApiRefusal(404, {"detail": "There is no such page."})
    query = _query(visit, {name: visit.param(name) for name in FILTERS})
    first = await visit.api.get("/audit", **query, limit=PAGE)  # refused before the answer begins
    headers = {**SECURITY_HEADERS, "Content-Disposition": f'attachment; filename="audit.{kind}"'}
    media = "text/csv; charset=utf-8" if kind == "csv" else "application/jsonl"
    return StreamingResponse(_lines(visit, query, first, kind), media_type=media, headers=headers)


async def _lines(visit: Visit, query: dict[str, str], found: dict[str, Any], kind: str) -> AsyncIterator[str]:
    write = _csv_line if kind == "csv" else _json_line
    if kind == "csv":
        yield ",".join(COLUMNS) + "\r\n"
    left = MOST_EXPORTED
    while True:
        yield "".join(write(each) for each in found["items"])
        left -= len(found["items"])
        if found["next_cursor"] is None or left <= 0:
            return
        found = await visit.api.get("/audit", **query, cursor=found["next_cursor"], limit=PAGE)


def _json_line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False) + "\n"


def _csv_line(entry: dict[str, Any]) -> str:
    """A line for spreadsheets. A text that they would run as a formula begins with an apostrophe."""
    actor, of = entry["actor"], entry["object"]
    states = [
        json.dumps(entry[name], ensure_ascii=False) if entry[name] else "" for name in ("before", "after")
    ]
    cells = [
        entry["at"], actor["id"], actor["name"], entry["action"], of["kind"], of["id"], entry["address"],
        entry["request_id"], *states,
    ]  # fmt: skip
    written = io.StringIO()
    texts = ["" if cell is None else str(cell) for cell in cells]
    csv.writer(written).writerow([f"'{each}" if each[:1] in "=+-@\t\r" and each else each for each in texts])
    return written.getvalue()


ROUTES = [Route("/audit", audit), Route("/audit/export.{kind}", export)]
