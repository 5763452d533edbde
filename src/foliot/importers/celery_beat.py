"""Celery beat: `beat_schedule` as JSON or YAML, and rows of django-celery-beat by `manage.py dumpdata django_celery_beat`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foliot.importers.records import BadRecordError, Draft, ImportedRecords, collect, read_yaml, seconds

_PERIOD = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
_MODEL = "django_celery_beat."


def read_celery_beat(text: str, *, time_zone: str = "UTC") -> ImportedRecords:
    """Celery's clock is UTC unless its setting `timezone` names another: `time_zone`."""
    content = next(iter(read_yaml(text)), None)
    if isinstance(content, list):
        return _read_django(content, time_zone)
    if isinstance(content, dict):
        entries = content.get("beat_schedule", content)
        if isinstance(entries, dict):
            named = [(str(name), (str(name), entry)) for name, entry in entries.items()]
            return collect("celery-beat", named, lambda pair: _entry(pair[0], pair[1], time_zone))
    raise BadRecordError("The file holds neither beat_schedule nor rows of django-celery-beat.")


def _entry(name: str, entry: Any, zone: str) -> Draft:
    if not isinstance(entry, dict) or not entry.get("task"):
        raise BadRecordError("The entry names no task.")
    when = entry.get("schedule")
    draft = _task(Draft(name, "celery", _schedule(when, zone), {"task": str(entry["task"])}), entry)
    if isinstance(options := entry.get("options"), dict):
        _options(draft, options)
    return draft


def _schedule(when: Any, zone: str) -> dict[str, Any]:
    if isinstance(when, int | float) and not isinstance(when, bool):
        return _interval(when)
    if isinstance(when, str):
        return {"kind": "cron", "expr": when, "timezone": zone}
    if isinstance(when, dict) and "seconds" in when:
        return _interval(when["seconds"])
    if isinstance(when, dict):
        return _crontab(when, zone)
    raise BadRecordError("The schedule is neither seconds nor a crontab.")


def _interval(every: Any) -> dict[str, Any]:
    if not isinstance(every, int | float) or every < 1:
        raise BadRecordError("The shortest interval is one second.")
    return {"kind": "interval", "every": seconds(every)}


def _crontab(fields: Mapping[str, Any], zone: str) -> dict[str, Any]:
    names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    expr = " ".join(str(fields.get(name, "*")).replace(" ", "") for name in names)
    return {"kind": "cron", "expr": expr, "timezone": str(fields.get("timezone") or zone), "day_match": "and"}


def _task(draft: Draft, entry: Mapping[str, Any]) -> Draft:
    """Keyword arguments are the payload; a job of Foliot has no positional ones."""
    if kwargs := entry.get("kwargs"):
        draft.fields["payload"] = kwargs
    if args := entry.get("args"):
        draft.notes["args"] = args
        draft.warn(
            "The task has positional arguments, which a job cannot send: give them by name in the payload."
        )
    return draft


def _options(draft: Draft, options: Mapping[str, Any]) -> None:
    if queue := options.get("queue"):
        draft.config["queue"] = str(queue)
    if isinstance(expires := options.get("expires"), int | float) and expires > 0:
        draft.fields["start_deadline"] = seconds(expires)
    unknown = sorted(set(options) - {"queue", "expires"})
    if unknown:
        draft.notes["options"] = {name: options[name] for name in unknown}
        draft.warn(f"Options that have no counterpart are kept beside the job: {', '.join(unknown)}.")


def _read_django(rows: list[Any], zone: str) -> ImportedRecords:
    schedules = {
        (row["model"].removeprefix(_MODEL), str(row.get("pk"))): row.get("fields")
        for row in rows
        if isinstance(row, dict) and str(row.get("model", "")).startswith(_MODEL)
    }
    tasks = [(pk, fields) for (model, pk), fields in schedules.items() if model == "periodictask"]
    if not tasks:
        raise BadRecordError("The rows hold no periodic task of django-celery-beat.")
    return collect("django-celery-beat", tasks, lambda fields: _django_task(fields, schedules, zone))


def _django_task(fields: Mapping[str, Any], schedules: Mapping[tuple[str, str], Any], zone: str) -> Draft:
    def named(model: str, column: str) -> Mapping[str, Any] | None:
        key = fields.get(column)
        if key is None:
            return None
        found = schedules.get((model, str(key)))
        if not isinstance(found, dict):
            raise BadRecordError(f"The {column} schedule {key} is not in the file.")
        return found

    if (interval := named("intervalschedule", "interval")) is not None:
        period = str(interval["period"])
        if period not in _PERIOD:
            raise BadRecordError(f"An interval in {period} is too short.")
        when = _interval(interval["every"] * _PERIOD[period])
    elif (crontab := named("crontabschedule", "crontab")) is not None:
        when = _crontab(crontab, zone)
    elif (clocked := named("clockedschedule", "clocked")) is not None:
        when = {"kind": "once", "at": str(clocked["clocked_time"])}
    elif fields.get("solar") is not None:
        raise BadRecordError("A schedule by the sun has no counterpart.")
    else:
        raise BadRecordError("The task has no schedule.")
    entry = {
        "args": _arguments(fields, "args"),
        "kwargs": _arguments(fields, "kwargs"),
    }
    name, task = str(fields.get("name") or fields.get("task")), str(fields.get("task"))
    draft = _task(Draft(name, "celery", when, {"task": task}), entry)
    draft.fields["description"] = str(fields.get("description") or "")
    draft.notes["was_enabled"] = bool(fields.get("enabled", True))
    if queue := fields.get("queue"):
        draft.config["queue"] = str(queue)
    if start := fields.get("start_time"):
        draft.fields["start_at"] = str(start)
    if end := fields.get("expires"):
        draft.fields["end_at"] = str(end)
    if fields.get("one_off"):
        draft.fields["max_runs"] = 1
    return draft


def _arguments(fields: Mapping[str, Any], name: str) -> Any:
    """Read a column that holds JSON."""
    text = fields.get(name)
    return next(iter(read_yaml(str(text))), None) if text else None
