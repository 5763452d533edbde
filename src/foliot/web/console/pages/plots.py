"""Plots: duration, failure rate, 95th percentiles and start lag by day, of the workspace or of one job."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from typing import Any

from starlette.routing import Route

from foliot.web.console.charts import Axes, Bar, Line
from foliot.web.console.pages.runs import address
from foliot.web.console.site import Context, Visit, page
from foliot.web.console.text import milliseconds

SPANS = (7, 14, 30, 90)
TICKS = 5


@page("plots.html", "runs")
async def plots(visit: Visit) -> Context:
    job_id, asked = visit.param("job"), visit.param("days")
    days = int(asked) if asked in [str(each) for each in SPANS] else 30
    path = f"/jobs/{job_id}/stats" if job_id else "/stats"
    stats, job = await asyncio.gather(
        visit.api.get(path, days=days, percentiles="true"),
        visit.api.get(f"/jobs/{job_id}") if job_id else _nothing(),
    )
    first = visit.reader.now.date() - timedelta(days=days - 1)
    known = {each["day"]: each for each in stats["days"]}
    rows = [(day, known.get(day.isoformat())) for day in (first + timedelta(days=n) for n in range(days))]
    return {
        "job": job,
        "stats": stats,
        "days": days,
        "spans": [(address("/console/plots", job=job_id, days=str(each)), f"{each} d", each == days) for each in SPANS],
        "plots": _plots(visit, rows, job_id),
        "is_empty": not stats["days"],
    }  # fmt: skip


async def _nothing() -> None:
    return None


def _plots(visit: Visit, rows: list[tuple[date, dict[str, Any] | None]], job_id: str) -> list[dict[str, Any]]:
    t = visit.reader.translate
    ticks = [_day(visit, rows[round(place * (len(rows) - 1) / (TICKS - 1))][0]) for place in range(TICKS)]
    days = [row for _, row in rows]
    rate = [None if not row or not _judged(row) else row["failures"] * 100 / _judged(row) for row in days]

    def values(name: str) -> list[float | None]:
        return [None if row is None else row[name] for row in days]

    def table(*columns: list[str]) -> list[list[str]]:
        named = [day.isoformat() for day, _ in rows]
        return [list(each) for each, row in zip(zip(named, *columns, strict=True), days, strict=True) if row]

    def times(name: str) -> list[str]:
        return [milliseconds(value) for value in values(name)]

    seconds, percent = Axes(x=ticks, show=milliseconds), Axes(x=ticks, show=_percent)
    return [
        {
            "id": "outcomes",
            "title": t("Runs by day"),
            "kind": "bars",
            "bars": [_bar(visit, day, row, job_id) for day, row in rows],
            "axes": Axes(
                x=ticks, legend=[("m-ok", t("succeeded")), ("m-fail", t("failed")), ("m-skip", t("skipped"))]
            ),
            "head": [t("Day"), t("succeeded"), t("failed"), t("skipped")],
            "rows": table(*[[f"{value or 0:,}" for value in values(name)] for name in ("successes", "failures", "skips")]),
        },
        {
            "id": "failures",
            "title": t("Failure rate"),
            "kind": "lines",
            "lines": [Line("m-fail", t("failure rate"), rate)],
            "axes": percent,
            "head": [t("Day"), t("failure rate")],
            "rows": table([_percent(each) for each in rate]),
        },
        {
            "id": "durations",
            "title": t("Duration"),
            "kind": "lines",
            "lines": [
                Line("m-run", t("average"), values("average_duration_ms")),
                Line("m-p95", t("95th percentile"), values("p95_duration_ms")),
            ],
            "axes": seconds,
            "head": [t("Day"), t("average"), t("95th percentile")],
            "rows": table(times("average_duration_ms"), times("p95_duration_ms")),
        },
        {
            "id": "lag",
            "title": t("Start lag"),
            "kind": "lines",
            "lines": [
                Line("m-run", t("average"), values("average_lag_ms")),
                Line("m-p95", t("95th percentile"), values("p95_lag_ms")),
            ],
            "axes": seconds,
            "head": [t("Day"), t("average"), t("95th percentile")],
            "rows": table(times("average_lag_ms"), times("p95_lag_ms")),
        },
    ]  # fmt: skip


def _judged(row: dict[str, Any]) -> int:
    return int(row["successes"] + row["failures"])


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{value:.1f} %" if value < 10 else f"{value:.0f} %"


def _day(visit: Visit, day: date) -> str:
    return f"{day.day} {visit.reader.translate(f'{day:%b}')}"


def _bar(visit: Visit, day: date, row: dict[str, Any] | None, job_id: str) -> Bar:
    counts = row or {"successes": 0, "failures": 0, "skips": 0}
    title = visit.reader.translate(
        "{day}: {ok} succeeded, {failed} failed, {skipped} skipped",
        day=day.isoformat(),
        ok=counts["successes"],
        failed=counts["failures"],
        skipped=counts["skips"],
    )
    parts = (("m-ok", counts["successes"]), ("m-fail", counts["failures"]), ("m-skip", counts["skips"]))
    query = f"job:{job_id}" if job_id else ""
    href = address(q=query, since=f"{day}T00:00:00Z", until=f"{day}T23:59:59.999Z")
    return Bar(parts, title, href if row else None)


ROUTES = [Route("/plots", plots)]
