"""How runs look: pure functions from the shapes of the API to what is drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.looks import BAD, QUIET, RUN_MARKS, STRONG, cell, columns, facts, marked, stacked
from foliot.cli.times import lasting, relative, when
from foliot.wire.runs import RunOut


def run_list(runs: Sequence[RunOut], now: datetime, names: Mapping[UUID, str]) -> RenderableType:
    """Newest first: when it was planned on its job's wall clock, what came of it, how long it took."""
    if not runs:
        return Text("No runs.")
    with_job = len({run.job_id for run in runs}) > 1 or len(names) != 1
    rows = [
        (
            cell(f"#{run.number}", QUIET),
            *((cell(names.get(run.job_id, str(run.job_id)[:13])),) if with_job else ()),
            cell(_planned(run)),
            cell(relative(run.planned_for - now), QUIET),
            _outcome(run),
            cell(took(run)),
            cell(run.trigger, QUIET),
            _said(run),
            cell(run.id, QUIET),
        )
        for run in runs
    ]
    job = ("JOB",) if with_job else ()
    return columns(
        ("NO", *job, "PLANNED", "", "STATUS", "TOOK", "BY", "WHAT", "ID"), rows, wraps=("WHAT", "JOB")
    )


def run_page(run: RunOut, name: str, zone: str, now: datetime) -> RenderableType:
    gap = None
    if run.planned_until is not None:
        gap = f"{run.count if run.count is not None else 'more than 10,000'} planned times, until {when(run.planned_until, zone, now)}"
    return stacked(
        cell(f"{name} #{run.number}", STRONG),
        facts(
            (
                ("id", str(run.id)),
                ("status", _outcome(run)),
                ("planned", when(run.planned_for, zone, now)),
                ("stands for", gap),
                ("by", run.trigger),
                ("started", when(run.started_at, zone, now) if run.started_at else None),
                ("finished", when(run.finished_at, zone, now) if run.finished_at else None),
                ("took", took(run) or None),
                ("late by", lasting(timedelta(milliseconds=run.lag_ms)) if run.lag_ms else None),
                ("attempts", str(run.attempt_count)),
                ("error", cell(f"{run.error.code}: {run.error.message}", BAD) if run.error else None),
                ("input", _json(run.input)),
                ("output", _json(run.output)),
                ("worker", str(run.worker) if run.worker else None),
                ("job", str(run.job_id)),
            )
        ),
    )


def took(run: RunOut) -> str:
    if run.duration_ms is None:
        return ""
    length = timedelta(milliseconds=run.duration_ms)
    return f"{run.duration_ms} ms" if run.duration_ms < 1_000 else lasting(length)


def _outcome(run: RunOut) -> Text:
    text = marked(run.status, RUN_MARKS)
    return text.append(f" ({cell(run.skip_reason).plain})") if run.skip_reason else text


def _said(run: RunOut) -> Text:
    if run.error is not None:
        return cell(f"{run.error.code}: {run.error.message}".replace("\n", " "), BAD)
    if run.planned_until is not None:
        return cell(f"{run.count if run.count is not None else 'over 10,000'} planned times")
    return cell(f"{run.attempt_count} attempts") if run.attempt_count > 1 else Text("")


def _planned(run: RunOut) -> str:
    wall = run.planned_local
    return wall.strftime("%a %d %b %H:%M:%S" if wall.second else "%a %d %b %H:%M")


def _json(value: object) -> str | None:
    return None if value is None or value == {} else json.dumps(value, ensure_ascii=False)
