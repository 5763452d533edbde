"""Runs: the list with its query, how many there were over time, the same error as one line, and one action on all of them."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, read_number
from foliot.web.console.charts import Axes, Bar
from foliot.web.console.site import Context, Visit, action, done, page, render, shell_of
from foliot.web.console.text import parse, zone_named

PAGE = 50
HOME = "/console/runs"
CHIPS = (
    ("", "All"),
    ("status:running,ready,waiting", "Not ended"),
    ("status:failed,timed_out,interrupted", "Failed"),
    ("status:skipped", "Skipped"),
    ("status:succeeded", "Succeeded"),
)
RANGES = (("", "Newest"), ("1h", "1 h"), ("24h", "24 h"), ("7d", "7 d"), ("30d", "30 d"))
OUTCOMES = {
    "succeeded": "m-ok",
    "failed": "m-fail",
    "skipped": "m-skip",
    "cancelled": "m-stop",
    "open": "m-run",
}
QUERIES = {
    "succeeded": "status:succeeded",
    "failed": "status:failed,timed_out,interrupted",
    "skipped": "status:skipped",
    "cancelled": "status:cancelled",
    "open": "status:running,ready,waiting",
}
_TERM = re.compile(r'[^\s"]*"[^"]*"|\S+')
MOST_BARS = 60
A_MOMENT = timedelta(milliseconds=1)  # a range of the API includes its end


def address(base: str = HOME, **params: str | None) -> str:
    """The page with these parameters; empty ones are left out."""
    given = {name: value for name, value in params.items() if value}
    return f"{base}?{urlencode(given)}" if given else base


@page("runs.html", "runs")
async def run_list(visit: Visit) -> Context:
    wanted = {name: visit.param(name) for name in ("q", "since", "until")}
    group, cursor = visit.param("group"), visit.param("cursor")
    try:
        found, summary = await asyncio.gather(
            visit.api.get("/runs", **_given(wanted), cursor=cursor or None, limit=PAGE),
            visit.api.get("/runs/summary", **_given(wanted)),
        )
        problem = None
    except ApiRefusal as refusal:
        if refusal.status != 422:
            raise
        found, summary, problem = {"items": [], "next_cursor": None}, None, refusal.sentences[0]
    q = wanted["q"]
    return {
        **wanted,
        "group": group,
        "runs": found["items"],
        "next_href": found["next_cursor"] and address(**wanted, cursor=found["next_cursor"]),
        "first_href": address(**wanted) if cursor else None,
        "problem": problem,
        "summary": summary,
        "chips": [
            (address(**{**wanted, "q": value}), visit.reader.translate(label), value == q)
            for value, label in CHIPS
        ],
        "ranges": [
            (address(q=q, since=value, group=group), visit.reader.translate(label), _is_range(wanted, value))
            for value, label in RANGES
        ],
        "terms": [(term, address(**{**wanted, "q": " ".join(rest)})) for term, rest in _terms(q)],
        "range": _range_words(visit, wanted),
        "no_range": address(q=q, group=group),
        "views": [
            (address(**wanted), visit.reader.translate("List"), group != "error"),
            (address(**wanted, group="error"), visit.reader.translate("By error"), group == "error"),
        ],
        "bars": _bars(visit, summary, q) if summary else None,
        "counts": _counts(summary, wanted) if summary else [],
        "errors": _errors(summary, wanted) if summary else [],
        "list_params": urlencode({name: value for name, value in wanted.items() if value}),
    }


def _given(wanted: dict[str, str]) -> dict[str, str | None]:
    return {name: value or None for name, value in wanted.items()}


def _is_range(wanted: dict[str, str], since: str) -> bool:
    return wanted["since"] == since and not wanted["until"]


def _terms(q: str) -> list[tuple[str, list[str]]]:
    """Each term of the query, with the others."""
    terms = _TERM.findall(q)
    return [(term, terms[:place] + terms[place + 1 :]) for place, term in enumerate(terms)]


def _range_words(visit: Visit, wanted: dict[str, str]) -> str | None:
    """A range that was drawn, in words. Chips name the others."""
    if not wanted["until"]:
        return None
    ends = []
    for value in (wanted["since"], wanted["until"]):
        try:
            ends.append(
                visit.reader.absolute(parse(value) + (A_MOMENT if value == wanted["until"] else A_MOMENT * 0))
            )
        except ValueError:
            ends.append(value)
    return " … ".join(each for each in ends if each)


def _counts(summary: dict[str, Any], wanted: dict[str, str]) -> list[tuple[str, int, str]]:
    """The number of runs of each outcome, and their list."""
    totals: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for bucket in summary["buckets"]:
        for name in totals:
            totals[name] += bucket[name]
    others = " ".join(term for term in _TERM.findall(wanted["q"]) if not term.startswith("status:"))
    return [
        (name, count, address(**{**wanted, "q": f"{others} {QUERIES[name]}".strip()}))
        for name, count in totals.items()
        if count
    ]


def _errors(summary: dict[str, Any], wanted: dict[str, str]) -> list[dict[str, Any]]:
    others = " ".join(term for term in _TERM.findall(wanted["q"]) if not term.startswith("error:"))
    return [
        {**each, "href": address(**{**wanted, "q": f"{others} error:{each['fingerprint']}".strip()})}
        for each in summary["errors"]
    ]


def _bars(visit: Visit, summary: dict[str, Any], q: str) -> dict[str, Any]:
    """Bars from the first bucket to the last, empty ones included, each with the list behind it; and the table of the same."""
    t, reader = visit.reader.translate, visit.reader
    width = timedelta(seconds=summary["bucket_seconds"])
    end, known = parse(summary["until"]), {parse(each["at"]): each for each in summary["buckets"]}
    at = _floor(max(parse(summary["since"]), end - width * MOST_BARS), width)
    bars, rows, begin = [], [], at
    while at <= end:
        counts = [known.get(at, {}).get(name, 0) for name in OUTCOMES]
        label = reader.absolute(at)
        words = ", ".join(f"{count} {t(name)}" for name, count in zip(OUTCOMES, counts, strict=True) if count)
        href = address(q=q, since=instant(at), until=instant(at + width - A_MOMENT))
        bars.append(
            Bar(
                list(zip(OUTCOMES.values(), counts, strict=True)),
                f"{label}: {words or t('no runs')}",
                href if any(counts) else None,
            )
        )
        if any(counts):
            rows.append([label, *counts])
        at += width
    legend = [
        (css, t(name)) for name, css in OUTCOMES.items() if any(each.get(name) for each in known.values())
    ]
    return {
        "bars": bars,
        "rows": rows,
        "head": [t("Time"), *(t(name) for name in OUTCOMES)],
        "axes": Axes(x=_ticks(visit, begin, at), legend=legend),
        "since": instant(begin),
        "until": instant(at),
        "href": address(q=q),
    }


def instant(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z").replace(".000Z", "Z")


def _floor(at: datetime, width: timedelta) -> datetime:
    seconds = int(width.total_seconds())
    return datetime.fromtimestamp(int(at.timestamp()) // seconds * seconds, tz=at.tzinfo)


def _ticks(visit: Visit, begin: datetime, end: datetime) -> list[str]:
    """Five instants along the axis: times of day within two days, with seconds within five minutes; days otherwise."""
    zone, t = zone_named(visit.reader.zone or "UTC"), visit.reader.translate
    is_short = end - begin <= timedelta(minutes=5)
    clock = "%H:%M:%S" if is_short else "%H:%M"
    made = []
    for place in range(5):
        local = (begin + (end - begin) * place / 4).astimezone(zone)
        day = f"{local.day} {t(f'{local:%b}')}"
        made.append(
            ""
            if is_short and place % 2  # five times with seconds are wider than a phone
            else f"{local:{clock}}"
            if end - begin <= timedelta(days=1)
            else f"{day} {local:%H:%M}"
            if end - begin <= timedelta(days=3)
            else day
        )
    return made


@page("run_bulk.html", "runs", "operator")
async def choose_bulk(visit: Visit) -> Context:
    """Before one action on many runs: how many there are, and the newest of them."""
    return await _bulk(
        visit, visit.param("action"), {name: visit.param(name) for name in ("q", "since", "until")}
    )


async def _bulk(
    visit: Visit, verb: str, wanted: dict[str, str], problems: list[str] | None = None
) -> Context:
    verb = verb if verb in ("retry", "cancel") else "retry"
    q = _as_query(wanted)
    sample, counted = await asyncio.gather(
        visit.api.get("/runs", q=q or None, limit=8),
        visit.api.call("POST", "/runs/bulk", {"action": verb, "q": q, "dry_run": True}),
    )
    shown = {"verb": verb, "query": q, "sample": sample["items"], "counted": counted}
    return {**wanted, **shown, "problems": problems or [], "back": address(**wanted)}


def _as_query(wanted: dict[str, str]) -> str:
    """The filter with its span as terms."""
    span = [f"{name}:{wanted[name]}" for name in ("since", "until") if wanted[name]]
    return " ".join([*([wanted["q"]] if wanted["q"] else []), *span])


async def act_on_many(visit: Visit) -> Response:
    verb, wanted = visit.field("action"), {name: visit.field(name) for name in ("q", "since", "until")}
    body: dict[str, Any] = {
        "action": verb,
        "q": _as_query(wanted),
        "expected_count": read_number("expected_count", visit.field("expected_count")),
    }
    if reason := visit.field("reason"):
        body["reason"] = reason
    try:
        await visit.api.call("POST", "/runs/bulk", body)
    except ApiRefusal as refusal:
        if refusal.status != 409:
            raise
        shell, context = await shell_of(visit), await _bulk(visit, verb, wanted, refusal.sentences)
        return render(visit, "run_bulk.html", {**shell, "active": "runs", **context}, 409)
    return done(HOME, "runs-retried" if verb == "retry" else "runs-cancelled")


ROUTES: list[Route] = [
    Route("/runs", run_list),
    Route("/runs/bulk", choose_bulk, methods=["GET"]),
    Route("/runs/bulk", action(act_on_many), methods=["POST"]),
]
