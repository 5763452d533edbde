"""How runs and explanations look: pure functions from the shapes of the API to what is drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.output import format_size, pluralize
from foliot.cli.tables import (
    BAD,
    GOOD,
    QUIET,
    RUN_MARKS,
    SOON,
    STRONG,
    cell,
    columns,
    facts,
    mark,
    marked,
    stacked,
)
from foliot.cli.times import format_duration, local_time_relative, local_times, relative
from foliot.wire.artifacts import ArtifactOut
from foliot.wire.explain import ExplanationOut
from foliot.wire.runs import AttemptOut, RunOut

MOST_FILES = 8  # named on the page of a run
_VERDICTS = {
    "ran": GOOD,
    "will_run": GOOD,
    "running": SOON,
    "waiting": SOON,
    "skipped": BAD,
    "unrecorded": BAD,
    "will_not_run": BAD,
}


def run_list(runs: Sequence[RunOut], now: datetime, *, of_one_job: bool = False) -> RenderableType:
    """Newest first: which, when it was planned on its job's wall clock, what came of it, how long it took."""
    if not runs:
        return Text("No runs.")
    in_seconds = any(run.planned_local.second for run in runs)
    rows = [
        (
            cell(f"#{run.number}" if of_one_job else called(run)),
            cell(run.planned_local.strftime("%a %d %b %H:%M:%S" if in_seconds else "%a %d %b %H:%M")),
            cell(relative(run.planned_for - now), QUIET),
            outcome(run),
            cell(took(run)),
            cell(run.trigger, QUIET),
            _said(run),
        )
        for run in runs
    ]
    return columns(
        ("RUN", "PLANNED", "", "STATUS", "TOOK", "BY", "WHAT"),
        rows,
        wraps=("RUN", "WHAT"),
        drops=("BY", "", "TOOK"),
    )


def run_page(run: RunOut, zone: str, now: datetime) -> RenderableType:
    gap = None
    if run.planned_until is not None:
        gap = f"{_count(run)} planned times, until {local_time_relative(run.planned_until, zone, now)}"
    page = facts(
        (
            ("id", str(run.id)),
            ("status", outcome(run)),
            ("asked to stop", _stopping(run, zone, now)),
            ("note", run.note),
            ("planned", local_time_relative(run.planned_for, zone, now)),
            ("stands for", gap),
            ("by", _by(run)),
            ("next try", _next_try(run, zone, now)),
            ("because", None if run.next_attempt is None else cell(run.next_attempt.why, BAD)),
            ("started", local_time_relative(run.started_at, zone, now) if run.started_at else None),
            ("finished", local_time_relative(run.finished_at, zone, now) if run.finished_at else None),
            ("progress", _progress(run)),
            ("took", took(run) or None),
            ("late by", format_duration(timedelta(milliseconds=run.lag_ms)) if run.lag_ms else None),
            ("where", _where(run)),
            ("error", _failure(run)),
            ("retry of", str(run.retry_of) if run.retry_of else None),
            ("input", _json(run.input)),
            ("output", _json(run.output)),
            ("files", _files(run)),
            ("handed over", next((each.external_id for each in reversed(run.attempts or [])), None)),
            ("job id", str(run.job_id)),
        )
    )
    at = local_times([each.started_at for each in run.attempts or ()], zone)
    tries = [_try(each, began) for each, began in zip(run.attempts or (), at, strict=True)]
    headers = ("ATTEMPT", "STATUS", "STARTED", "TOOK", "WHERE", "WHAT")
    table = columns(headers, tries, wraps=("WHAT",), drops=("WHERE",)) if len(tries) > 1 else None
    return stacked(cell(called(run), STRONG), page, table)


def artifact_list(found: Sequence[ArtifactOut], now: datetime) -> RenderableType:
    if not found:
        return Text("It kept no files.")
    rows = [
        (
            cell(each.name),
            cell(format_size(each.size)),
            cell(each.media_type, QUIET),
            cell(relative(each.created_at - now), QUIET),
        )
        for each in found
    ]
    return columns(("NAME", "SIZE", "TYPE", "KEPT"), rows, wraps=("NAME",))


def _progress(run: RunOut) -> str | None:
    told = run.progress
    if told is None:
        return None
    said = f"{told.share:.0%} ({told.done:g} of {told.total:g})"
    return f"{said}: {told.note}" if told.note else said


def run_line(run: RunOut, what: str, now: datetime) -> Text:
    """After a verb."""
    line = Text.assemble((what, STRONG), f" {cell(called(run)).plain}: ", outcome(run))
    if run.error is not None:
        line.append(f", {cell(run.error.message).plain}", BAD)
    return line.append(f" ({run.id})", QUIET)


def explanation(told: ExplanationOut) -> RenderableType:
    """The sentence, what else is known, and what to do next. Where all is well, the sentence alone."""
    if (
        told.verdict == "ran"
        and told.run is not None
        and told.run.status == "succeeded"
        and not told.what_next
    ):
        planned = f", planned for {told.run.planned_local:%a %d %b %Y %H:%M:%S},"
        line = Text.assemble(mark(told.run.status, RUN_MARKS), " ", cell(called(told.run)), planned)
        return line.append(f" succeeded in {took(told.run)}.")
    place = None
    if told.place is not None and told.place.position is not None:
        place = f"It is number {told.place.position} of {told.place.of} in line."
    known = [cell(f"  {fact}") for fact in (*told.facts, *([place] if place else []))]
    do_next = [Text.assemble(("  do next  ", STRONG), cell(each)) for each in told.what_next]
    run = None
    if told.run is not None and told.verdict in {"ran", "running", "skipped", "waiting"}:
        run = Text.assemble(("  run      ", QUIET), cell(called(told.run)), "  ", outcome(told.run))
    return stacked(cell(told.sentence, _VERDICTS.get(told.verdict, "")), *known, run, *do_next)


def called(run: RunOut) -> str:
    """As `foliot runs show` takes it."""
    return f"{run.job_name or run.job_id}#{run.number}"


def took(run: RunOut | AttemptOut) -> str:
    if run.duration_ms is None:
        return ""
    return (
        f"{run.duration_ms} ms"
        if run.duration_ms < 1_000
        else format_duration(timedelta(milliseconds=run.duration_ms))
    )


def outcome(run: RunOut) -> Text:
    text = marked(run.status, RUN_MARKS)
    return text.append(f" ({cell(run.skip_reason).plain})") if run.skip_reason else text


def _said(run: RunOut) -> Text:
    if run.error is not None:
        return cell(f"{run.error.code}: {run.error.message}".replace("\n", " "), BAD)
    if run.planned_until is not None:
        return cell(f"{_count(run)} planned times")
    if run.note:
        return cell(run.note)
    return cell(pluralize(run.attempt_count, "attempt")) if run.attempt_count > 1 else Text("")


def _try(attempt: AttemptOut, began: str) -> tuple[Text, ...]:
    status = "failed" if attempt.status == "lost" else attempt.status
    return (
        cell(attempt.number),
        Text.assemble(marked(status, RUN_MARKS), " (lost)" if attempt.status == "lost" else ""),
        cell(began),
        cell(took(attempt)),
        cell(_place(attempt) or "", QUIET),
        cell(f"{attempt.error.code}: {attempt.error.message}", BAD) if attempt.error else Text(""),
    )


def _by(run: RunOut) -> str:
    """A member by name; one that is gone by its id."""
    who = run.triggered_by_name or run.triggered_by
    return f"{run.trigger}, {who}" if who else run.trigger


def _place(told: RunOut | AttemptOut) -> str | None:
    return told.worker_name if told.host is None else f"host {told.host}"


def _where(run: RunOut) -> str | None:
    if run.worker is None:
        return None
    return _place(run) or f"a worker whose name is not known ({run.worker})"


def _next_try(run: RunOut, zone: str, now: datetime) -> str | None:
    planned = run.next_attempt
    if planned is None:
        return None
    due = local_time_relative(planned.at, zone, now) if planned.at > now else "as soon as a worker takes it"
    return f"attempt {planned.number}, {due}"


def _stopping(run: RunOut, zone: str, now: datetime) -> str | None:
    asked_at = run.cancel_requested_at
    return (
        local_time_relative(asked_at, zone, now) if asked_at is not None and run.status == "running" else None
    )


def _failure(run: RunOut) -> Text | None:
    """Of a run that is tried again the reason stands there."""
    if run.error is None or run.next_attempt is not None:
        return None
    return cell(f"{run.error.code}: {run.error.message}", BAD)


def _files(run: RunOut) -> str | None:
    """`foliot runs artifacts` fetches them."""
    shown = [f"{each.name} ({format_size(each.size)})" for each in (run.artifacts or ())[:MOST_FILES]]
    more = len(run.artifacts or ()) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "") or None


def _count(run: RunOut) -> str:
    return "over 10,000" if run.count is None else f"{run.count:,}"


def _json(value: object) -> str | None:
    return None if value is None or value == {} else json.dumps(value, ensure_ascii=False)
