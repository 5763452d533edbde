"""Airflow: the DAGs that `airflow dags list -o json` or GET /dags of its REST API lists, with their schedules.

A job starts its DAG with `airflow dags trigger`; the tasks stay in Airflow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from foliot.importers.records import (
    COMMAND_NOTE,
    BadRecordError,
    Draft,
    ImportedRecords,
    collect,
    read_json,
    seconds,
)

_PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
_NO_TIMES = frozenset(
    {"", "None", "null", "@once", "@continuous", "Dataset", "Asset", "Never, external triggers only"}
)
_SPAN = re.compile(r"(?:(\d+) days?, )?(\d+):(\d\d):(\d\d)")
_SCHEDULES = ("schedule_interval", "timetable_summary", "schedule")


def read_airflow(text: str, *, time_zone: str | None = None) -> ImportedRecords:
    content = read_json(text, "The file")
    dags = content.get("dags") if isinstance(content, dict) else content
    if not isinstance(dags, list):
        raise BadRecordError("The file holds no list of DAGs.")
    named = [
        (str(dag["dag_id"]) if isinstance(dag, dict) and dag.get("dag_id") else None, dag) for dag in dags
    ]
    return collect("airflow", named, lambda dag: _draft(dag, time_zone))


def _draft(dag: Any, time_zone: str | None) -> Draft:
    if not isinstance(dag, dict) or not dag.get("dag_id"):
        raise BadRecordError("The record names no dag_id.")
    given = next((dag[name] for name in _SCHEDULES if name in dag), _MISSING)
    if given is _MISSING:
        raise BadRecordError(
            "The record has no schedule: list the DAGs with --columns dag_id,timetable_summary,is_paused,owners."
        )
    name = str(dag["dag_id"])
    zone = dag.get("timezone") or time_zone
    draft = Draft(name, "command", _schedule(given, zone), {"argv": ["airflow", "dags", "trigger", name]})
    draft.fields["description"] = str(dag.get("description") or "")
    draft.notes["was_enabled"] = str(dag.get("is_paused", False)).lower() != "true"
    draft.warn(COMMAND_NOTE)
    if draft.schedule["kind"] == "manual":
        draft.warn(
            "Airflow starts this DAG by an asset or by hand: it is a manual job. Give it dependencies."
        )
    elif zone is None:
        draft.warn("The list names no zone: UTC is assumed, which is Airflow's default.")
    if dag.get("catchup"):
        draft.fields["misfire"] = "all"
    return draft


_MISSING = object()


def _schedule(given: Any, zone: str | None) -> dict[str, Any]:
    if isinstance(given, dict):
        given = _typed(given)
    if isinstance(given, timedelta):
        return {"kind": "interval", "every": seconds(given.total_seconds())}
    words = "" if given is None else str(given).strip()
    if words in _NO_TIMES or words.startswith(("Dataset", "Asset")):
        return {"kind": "manual"}
    if (span := _SPAN.fullmatch(words)) is not None:
        days, hours, minutes, whole = (int(part or 0) for part in span.groups())
        return _schedule(timedelta(days=days, hours=hours, minutes=minutes, seconds=whole), zone)
    expr = _PRESETS.get(words, words)
    if len(expr.split()) != 5:
        raise BadRecordError(f"The timetable {words!r} has no counterpart.")
    schedule = {"kind": "cron", "expr": expr}
    return schedule if zone is None else schedule | {"timezone": str(zone)}


def _typed(given: Mapping[str, Any]) -> Any:
    match given.get("__type"):
        case "CronExpression":
            return given.get("value")
        case "TimeDelta":
            return timedelta(days=int(given.get("days", 0)), seconds=int(given.get("seconds", 0)))
        case other:
            raise BadRecordError(f"The schedule of type {other!r} has no counterpart.")
