"""APScheduler: a JSON list of jobs, each with the text of its trigger. `scheduler.export_jobs` holds pickles, which are never read.

The text of a trigger is what `str(job.trigger)` gives: cron[hour='9', minute='30'], interval[0:05:00], date[2030-01-01 10:00:00 CET].
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from foliot.importers.records import BadRecordError, Draft, ImportedRecords, collect, read_json, seconds

_TRIGGER = re.compile(r"(cron|interval|date)\[(.*)\]", re.DOTALL)
_FIELD = re.compile(r"(\w+)='([^']*)'")
_SPAN = re.compile(r"(?:(-?\d+) days?, )?(\d+):(\d\d):(\d\d)(\.\d+)?")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NTH = {"1st": "1", "2nd": "2", "3rd": "3", "4th": "4", "5th": "5"}
# From the most significant on: fields after the last one given are at their smallest value, those before it are free.
_ORDER = ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second")
_SMALLEST = {"month": "1", "day": "1", "day_of_week": "*", "hour": "0", "minute": "0", "second": "0"}


def read_apscheduler(text: str, *, time_zone: str | None = None) -> ImportedRecords:
    content = read_json(text, "The file")
    jobs = content.get("jobs") if isinstance(content, dict) else content
    if not isinstance(jobs, list):
        raise BadRecordError("The file holds no list of jobs.")
    named = [(str(job["id"]) if isinstance(job, dict) and job.get("id") else None, job) for job in jobs]
    return collect("apscheduler", named, lambda job: _draft(job, time_zone))


def _draft(job: Any, time_zone: str | None) -> Draft:
    if not isinstance(job, dict) or not isinstance(job.get("func"), str) or ":" not in job["func"]:
        raise BadRecordError("The job names no function as module:name.")
    if not isinstance(trigger := job.get("trigger"), str):
        raise BadRecordError("The trigger is not text: write str(job.trigger), not an export with pickles.")
    zone = str(job.get("timezone") or time_zone or "UTC")
    draft = Draft(
        str(job.get("name") or job["func"]), "python", _schedule(trigger, zone), {"call": job["func"]}
    )
    if jitter := job.get("jitter"):
        draft.schedule = {**draft.schedule, "spread": seconds(float(jitter))}
    if kwargs := job.get("kwargs"):
        draft.fields["payload"] = kwargs
    if args := job.get("args"):
        draft.notes["args"] = args
        draft.warn("The function has positional arguments, which a job cannot send: give them by name.")
    if isinstance(grace := job.get("misfire_grace_time"), int | float) and grace >= 1:
        draft.fields["grace"] = seconds(grace)
    if job.get("coalesce") is False:
        draft.fields["misfire"] = "all"
    if isinstance(most := job.get("max_instances"), int) and most > 1:
        draft.fields["overlap"] = "concurrent"
        draft.warn(f"At most {most} of it ran at once: give the job a concurrency key with that limit.")
    draft.notes["was_enabled"] = job.get("next_run_time") is not None
    return draft


def _schedule(trigger: str, zone: str) -> dict[str, Any]:
    found = _TRIGGER.fullmatch(trigger.strip())
    if found is None:
        raise BadRecordError(
            f"The trigger {trigger.split('[', maxsplit=1)[0]!r} has no counterpart: make a job for each."
        )
    kind, inside = found.groups()
    match kind:
        case "interval":
            return {"kind": "interval", "every": seconds(_span(inside).total_seconds())}
        case "date":
            return _date(inside, zone)
        case _:
            return _cron(dict(_FIELD.findall(inside)), zone)


def _span(text: str) -> timedelta:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise BadRecordError(f"{text!r} is not an interval.")
    days, hours, minutes, whole, rest = found.groups()
    span = timedelta(
        days=int(days or 0), hours=int(hours), minutes=int(minutes), seconds=float(whole + (rest or ""))
    )
    if span < timedelta(seconds=1):
        raise BadRecordError("The shortest interval is one second.")
    return span


def _date(text: str, zone: str) -> dict[str, Any]:
    found = _DATE.match(text)
    if found is None:
        raise BadRecordError(f"{text!r} is not a date.")
    try:
        at = datetime.fromisoformat(found[1]).replace(tzinfo=ZoneInfo(zone))
    except (ValueError, ZoneInfoNotFoundError):
        raise BadRecordError(f"{text!r} in {zone!r} is not a time.") from None
    return {"kind": "once", "at": at.isoformat(), "timezone": zone}


def _cron(given: Mapping[str, str], zone: str) -> dict[str, Any]:
    for name in ("year", "week"):
        if given.get(name, "*") != "*":
            raise BadRecordError(f"Cron has no field {name!r}: give the job start_at and end_at instead.")
    last = max((_ORDER.index(name) for name in given if name in _ORDER), default=-1)
    fields = {
        name: given.get(name, "*" if place < last else _SMALLEST[name])
        for place, name in enumerate(_ORDER)
        if name in _SMALLEST
    }
    fields["day"], fields["day_of_week"] = _days(fields["day"], fields["day_of_week"])
    names = ("minute", "hour", "day", "month", "day_of_week")
    expr = " ".join(fields[name].replace(" ", "") for name in names)
    schedule: dict[str, Any] = {"kind": "cron", "expr": expr, "timezone": zone, "day_match": "and"}
    if fields["second"] != "0":
        schedule |= {"expr": f"{fields['second']} {expr}", "seconds": True}
    return schedule


def _days(day: str, weekday: str) -> tuple[str, str]:
    """`last` and `2nd fri` as cron says them. APScheduler counts weekdays from Monday = 0, so they are named."""
    if day == "last":
        return "L", _names(weekday)
    nth = re.fullmatch(r"(\w+) (\w{3})", day)
    if nth is None:
        return day, _names(weekday)
    which, name = nth.groups()
    number = (_WEEKDAYS.index(name) + 1) % 7 if name in _WEEKDAYS else None
    if number is None or weekday != "*" or (which != "last" and which not in _NTH):
        raise BadRecordError(f"The day {day!r} has no counterpart.")
    return "*", f"{number}L" if which == "last" else f"{number}#{_NTH[which]}"


def _names(weekday: str) -> str:
    def named(found: re.Match[str]) -> str:
        return _WEEKDAYS[int(found[0])] if int(found[0]) < len(_WEEKDAYS) else found[0]

    return re.sub(r"(?<![/\w])\d", named, weekday)
