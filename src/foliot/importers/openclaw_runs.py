"""OpenClaw's history of runs: the lines of `cron/runs/<job>.jsonl`, those of several jobs one after the other."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from foliot.domain.lifecycle import RunStatus
from foliot.domain.past_run import PastRun
from foliot.domain.run import RunError
from foliot.importers.records import (
    BadRecordError,
    HistoryLine,
    ImportedHistory,
    RejectedRecord,
    clean_text,
    instant_of_ms,
    read_json,
)

_STATUSES = {"ok": RunStatus.SUCCEEDED, "error": RunStatus.FAILED, "skipped": RunStatus.SKIPPED}
_KEPT = (
    "sessionId",
    "sessionKey",
    "delivered",
    "deliveryStatus",
    "deliveryError",
    "model",
    "provider",
    "usage",
    "nextRunAtMs",
)
_LONGEST_LINE = 64 << 10  # characters
_LONGEST_RUN = timedelta(days=366)


def read_openclaw_runs(text: str, now: datetime) -> ImportedHistory:
    """Read every line; one that is wrong stops no other."""
    lines: list[HistoryLine] = []
    rejected: list[RejectedRecord] = []
    # Not splitlines: JSON may hold U+2028 and its like inside a string.
    for index, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        key = None
        try:
            raw = _object(line)
            key = _key(raw)
            lines.append(HistoryLine(index, key, _past_run(raw, now)))
        except BadRecordError as error:
            rejected.append(RejectedRecord(index, key, str(error), clean_text(line)))
    return ImportedHistory("openclaw-runs", tuple(lines), tuple(rejected))


def _object(line: str) -> dict[str, Any]:
    if len(line) > _LONGEST_LINE:
        raise BadRecordError(f"The line is longer than {_LONGEST_LINE} characters.")
    raw = read_json(line, "The line")
    if not isinstance(raw, dict):
        raise BadRecordError("The line is not an object.")
    return raw


def _key(raw: dict[str, Any]) -> str:
    given = raw.get("jobId")
    if given in (None, "") or isinstance(given, dict | list):
        raise BadRecordError("The line names no job.")
    return clean_text(given, 200)


def _past_run(raw: dict[str, Any], now: datetime) -> PastRun:
    action = raw.get("action", "finished")
    if action != "finished":
        raise BadRecordError(f"Only finished runs are recorded; this line says {clean_text(action, 50)}.")
    status = _STATUSES.get(str(raw.get("status", "")).lower())
    if status is None:
        raise BadRecordError("status is none of ok, error and skipped.")
    started_at, finished_at = _times(raw, now)
    error, summary = raw.get("error"), raw.get("summary")
    output = {"summary": summary} if summary is not None else {}
    output |= {name: raw[name] for name in _KEPT if raw.get(name) is not None}
    return PastRun(
        started_at,
        finished_at,
        status,
        RunError("imported", clean_text(error or "OpenClaw gave no error."))
        if status is RunStatus.FAILED
        else None,
        None if status is RunStatus.SKIPPED or not output else _storable(output),
        clean_text(error or summary or "", 500) or None if status is RunStatus.SKIPPED else None,
    )


def _times(raw: dict[str, Any], now: datetime) -> tuple[datetime, datetime]:
    """Start and end. `ts` is when the line was written: at the end of the run."""
    if raw.get("ts") is None and raw.get("runAtMs") is None:
        raise BadRecordError("The line has neither ts nor runAtMs.")
    lasted = raw.get("durationMs") or 0
    if (
        not isinstance(lasted, int | float)
        or isinstance(lasted, bool)
        or not 0 <= lasted <= _LONGEST_RUN / timedelta(milliseconds=1)
    ):
        raise BadRecordError("durationMs is no duration of a run.")
    duration = timedelta(milliseconds=lasted)
    if raw.get("runAtMs") is not None:
        started_at = instant_of_ms(raw["runAtMs"], "runAtMs")
    else:
        started_at = instant_of_ms(raw["ts"], "ts") - duration
    if raw.get("durationMs") is None and raw.get("ts") is not None:
        finished_at = instant_of_ms(raw["ts"], "ts")
    else:
        finished_at = started_at + duration
    if started_at.timestamp() < 0 or finished_at > now:
        raise BadRecordError("Its time lies before 1970 or in the future.")
    if finished_at < started_at:
        raise BadRecordError("It ended before it started.")
    return started_at, finished_at


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_storable(each) for each in value]
    if isinstance(value, dict):
        return {clean_text(name, 200): _storable(each) for name, each in value.items()}
    return value
