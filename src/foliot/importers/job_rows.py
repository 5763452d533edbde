"""Rows of a table of jobs, as JSON or CSV, in the columns of the systems whose interfaces the dialects speak.

The columns say whose rows they are: `interval_seconds` of schedules, `schedule_kind` of agent jobs, `CronExpression` of the actions,
`cronExpression` of a fleet, `schedule` beside a job type of scheduled jobs. snake_case and camelCase are both read where a system has both.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foliot.importers.records import BadRecordError, Draft, ImportedRecords, collect, read_json, seconds

_LISTS = ("items", "rows", "jobs", "schedules", "data", "Jobs")
_OVERLAP = {"skip": "skip", "queue": "queue", "concurrent": "concurrent"}
_NO_ZONE = "The row names no zone: the workspace's is used. Give the zone of its server."


@dataclass(frozen=True, slots=True)
class RowMapping:
    """Whose the jobs become, and the zone of rows that name none."""

    agents: Mapping[str, str] = field(default_factory=dict)
    rooms: Mapping[str, str] = field(default_factory=dict)
    default_agent: str | None = None
    zone: str | None = None


def read_rows(text: str, mapping: RowMapping | None = None) -> ImportedRecords:
    """Read every row by its own columns. The id of a row is its key."""
    given = mapping or RowMapping()
    rows = [(_key(each), each) for each in _rows(text)]
    return collect("rows", rows, lambda raw: _draft(_Row(raw), given))


def _key(raw: Any) -> str | None:
    return (_text(_Row(raw).get("id")) or None) if isinstance(raw, dict) else None


def _rows(text: str) -> list[Any]:
    bare = text.lstrip("\ufeff \r\n\t")
    if not bare.startswith(("[", "{")):
        try:
            rows = list(csv.DictReader(io.StringIO(bare)))
        except csv.Error as error:
            raise BadRecordError(f"The text is not CSV: {error}.") from None
        if not rows:
            raise BadRecordError("The text is neither JSON nor CSV with a line of column names.")
        return [{name: _cell(value) for name, value in row.items() if name} for row in rows]
    content = read_json(bare)
    if isinstance(content, dict):
        content = next((content[name] for name in _LISTS if isinstance(content.get(name), list)), [content])
    return list(content)


def _cell(value: Any) -> Any:
    """Read a cell of CSV: JSON where it holds some, else its text; nothing where it is empty."""
    bare = str(value or "").strip()
    if bare in {"", "NULL", "\\N"}:
        return None
    if bare[0] in "[{" or bare in {"true", "false"}:
        try:
            return json.loads(bare)
        except ValueError:
            return bare
    return {"t": True, "f": False}.get(bare, bare)


class _Row:
    """A row whose columns are found in any case: schedule_kind, scheduleKind, ScheduleKind."""

    def __init__(self, raw: Any) -> None:
        if not isinstance(raw, dict):
            raise BadRecordError("The row is not an object.")
        self._values = {re.sub(r"[^a-z0-9]", "", str(name).lower()): value for name, value in raw.items()}

    def get(self, name: str, default: Any = None) -> Any:
        value = self._values.get(name.replace("_", ""))
        return default if value is None else value

    def number(self, name: str, default: int | None = None) -> int | None:
        value = self.get(name)
        if value is None:
            return default
        try:
            return int(value)
        except (TypeError, ValueError):
            raise BadRecordError(f"{name} is not a whole number: {value!r}.") from None

    def object(self, name: str) -> dict[str, Any]:
        value = self.get(name, {})
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                raise BadRecordError(f"{name} is not JSON.") from None
        if not isinstance(value, dict):
            raise BadRecordError(f"{name} is not an object.")
        return value


def _draft(row: _Row, mapping: RowMapping) -> Draft:
    name = _text(row.get("name"))
    if not name:
        raise BadRecordError("The row has no name.")
    if row.get("interval_seconds") is not None:
        draft = _event(row, name)
    elif row.get("schedule_kind") is not None:
        draft = _message(row, name, mapping)
    elif row.get("cron_expression") is not None:
        draft = _command(row, name, mapping)
    elif isinstance(row.get("schedule"), str):
        draft = _scheduled(row, name, mapping)
    else:
        raise BadRecordError("The columns are of none of the known systems: there is no schedule in them.")
    draft.fields["description"] = _text(row.get("description"))
    draft.notes["was_enabled"] = bool(row.get("enabled", True))
    if (status := row.get("status")) is not None:
        draft.notes["was_status"] = status
    return draft


def _event(row: _Row, name: str) -> Draft:
    """Read a schedule that sends an event to a workflow: done after its repeats, dead when its retries are used up."""
    every = row.number("interval_seconds")
    if every is None or every < 1:
        raise BadRecordError("interval_seconds must be at least 1.")
    config = {
        "event": "schedule",
        "workflow_id": row.get("workflow_id"),
        "trigger_node_id": row.get("trigger_node_id"),
    }
    draft = Draft(name, "event", {"kind": "interval", "every": seconds(every)}, config)
    retry = {"max": row.number("max_retries", 3), "strategy": "interval_exponential", "past_next": True}
    draft.fields |= {
        "retry": retry, "timeout": seconds(row.number("timeout_seconds", 600) or 600), "breaker": {"after": 1, "action": "fail"},
        "payload": row.object("trigger_payload"),
    }  # fmt: skip
    if repeats := row.number("total_repeats", 0):
        done = row.number("current_repeat", 0) or 0
        draft.fields["max_runs"] = max(1, repeats - done)
        if done:
            draft.warn(f"{done} of its {repeats} repeats are done: {max(1, repeats - done)} are left.")
    return draft


def _message(row: _Row, name: str, mapping: RowMapping) -> Draft:
    """Read a job of an agent: a message or an event for a room."""
    kind, text = row.get("schedule_kind"), _text(row.get("payload_text"))
    if not text:
        raise BadRecordError("The row has no payload_text.")
    if kind == "cron":
        draft = Draft(name, "message", _cron(_text(row.get("cron_expr")), row.get("timezone", "UTC")))
    elif kind == "interval":
        draft = Draft(
            name, "message", {"kind": "interval", "every": seconds((row.number("interval_ms") or 0) / 1000)}
        )
    elif kind == "once":
        draft = Draft(name, "message", {"kind": "once", "at": _text(row.get("run_at"))})
    else:
        raise BadRecordError(f"schedule_kind is none of cron, interval and once: {kind!r}.")
    draft.config = {"text": text} | (
        {"kind": "system_event"} if row.get("payload_kind") == "system_event" else {}
    )
    if (room := row.get("room_id")) is not None:
        if str(room) in mapping.rooms:
            draft.config["room"] = mapping.rooms[str(room)]
        else:
            draft.warn(f"The room {room} is mapped to no room: the job gets a room of its own.")
    draft.fields["breaker"] = {"after": row.number("max_failures", 5), "action": "pause"}
    agent = _text(row.get("agent") or row.get("agent_id"))
    owner = mapping.agents.get(agent, mapping.default_agent)
    if owner is not None:
        draft.fields["owner"] = owner
    if agent not in mapping.agents:
        draft.warn(f"The agent {agent or 'of the row'} is not mapped: {owner or 'the job is yours'}.")
    return draft


def _command(row: _Row, name: str, mapping: RowMapping) -> Draft:
    """Read a schedule with a cron expression and a type: of a fleet, or of the actions."""
    kind = _text(row.get("job_type") or row.get("job_type_id"))
    if not kind:
        raise BadRecordError("The row names no type of job.")
    zone = row.get("timezone") or mapping.zone
    draft = Draft(
        name,
        kind,
        _cron(_text(row.get("cron_expression")), zone),
        row.object("configuration") or row.object("config"),
    )
    if zone is None:
        draft.warn(_NO_ZONE)
    if "ActionName" in draft.config:
        draft.type = "action"
        draft.config = {
            "action": draft.config["ActionName"],
            "parameters": draft.config.get("Parameters") or [],
        }
    if payload := row.object("payload"):
        draft.fields["payload"] = payload
    if start := row.get("execution_window_start"):
        draft.fields["window"] = {
            "start": start,
            "end": row.get("execution_window_end", "24:00"),
            "otherwise": "defer",
        }
    if retry := row.object("retry_policy"):
        draft.fields["retry"] = {
            "max": retry.get("maxRetries", 0), "strategy": retry.get("backoffType", "fixed"),
            "base": seconds(retry.get("backoffMs", 1000) / 1000),
        }  # fmt: skip
    for theirs, ours in (("start_at", "start_at"), ("end_at", "end_at")):
        if row.get(theirs) is not None:
            draft.fields[ours] = _text(row.get(theirs))
    if mode := row.get("concurrency_mode"):
        draft.fields["overlap"] = _OVERLAP.get(str(mode).lower(), "skip")
    if server := row.get("server_instance_id") or row.get("server_id"):
        draft.notes["server"] = server
        draft.warn(f"It ran on the server {server}: give it a target of this workspace.")
    return draft


def _scheduled(row: _Row, name: str, mapping: RowMapping) -> Draft:
    """Read a scheduled job with a configuration, notifications and perhaps a job before it."""
    zone = row.get("timezone") or mapping.zone or "UTC"
    draft = Draft(
        name,
        _text(row.get("job_type")) or "CUSTOM",
        _cron(str(row.get("schedule")), zone),
        row.object("configuration"),
    )
    channels = row.object("notify_on_failure") or {"email": True}
    wanted = {each: bool(channels.get(each)) for each in ("email", "slack", "whatsapp")}
    recipients = row.get("notify_recipients", [])
    draft.fields["notify"] = {**wanted, "recipients": [str(each) for each in recipients if each]}
    if (upstream := row.get("depends_on_job_id")) is not None:
        minutes = row.number("dependency_delay_minutes", 0)
        draft.notes["depends_on"] = {"job": upstream, "delay_minutes": minutes}
        draft.warn(
            f"It ran {minutes} minutes after the job {upstream}: add that dependency, or it runs by its own cron."
        )
    return draft


def _cron(expr: str, zone: Any) -> dict[str, Any]:
    if not expr:
        raise BadRecordError("The row has no cron expression.")
    schedule: dict[str, Any] = {"kind": "cron", "expr": expr}
    if len(expr.split()) == 6:
        schedule["seconds"] = True
    return schedule if zone is None else schedule | {"timezone": str(zone)}


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()
