"""systemd timers: `.timer` units, each with its `.service` unit if that is given too (several units in one text, as `systemctl cat` prints)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foliot.importers.records import COMMAND_NOTE, BadRecordError, Draft, ImportedRecords, collect, seconds

_UNIT = re.compile(r"^# (?:.*/)?([^/\s]+\.(?:timer|service))\s*$")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Zµ]*)")
_SECONDS = {
    "": 1, "s": 1, "sec": 1, "second": 1, "seconds": 1, "ms": 0.001, "msec": 0.001,
    "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400, "w": 604800, "week": 604800, "weeks": 604800,
}  # fmt: skip
_WORDS = {
    "minutely": "* * * * *", "hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * 1", "monthly": "0 0 1 * *",
    "quarterly": "0 0 1 1,4,7,10 *", "semiannually": "0 0 1 1,7 *", "yearly": "0 0 1 1 *", "annually": "0 0 1 1 *",
}  # fmt: skip
_DAYS = {"mon": "1", "tue": "2", "wed": "3", "thu": "4", "fri": "5", "sat": "6", "sun": "0"}
_CALENDAR = re.compile(
    r"(?:(?P<days>[A-Za-z][A-Za-z.,-]*)\s+)?(?:(?P<date>[\d*/,.~-]+-[\d*/,.~-]+)\s+)?(?P<time>[\d*/,.]+:[\d*/,.]+(?::[\d*/,.]+)?)?"
    r"(?:\s*(?P<zone>UTC|[A-Z][A-Za-z_]+/[A-Za-z_/]+))?"
)


@dataclass(slots=True)
class _Unit:
    name: str
    values: dict[str, list[str]] = field(default_factory=dict)

    def last(self, key: str) -> str | None:
        found = self.values.get(key)
        return found[-1] if found else None


def read_systemd(text: str, name: str, *, time_zone: str | None = None) -> ImportedRecords:
    """`name` is that of the file, for a text with a single unit and no `# /path/of.timer` line."""
    units = _units(text, name)
    services = {unit.name: unit for unit in units if unit.name.endswith(".service")}
    timers = [(unit.name, unit) for unit in units if unit.name.endswith(".timer")]
    if not timers:
        raise BadRecordError("The text has no timer unit.")
    return collect("systemd", timers, lambda timer: _draft(timer, services, time_zone))


def _units(text: str, name: str) -> list[_Unit]:
    units = [_Unit(name)]
    for line in text.replace("\\\n", " ").splitlines():
        if (begins := _UNIT.fullmatch(line.strip())) is not None:
            units.append(_Unit(begins[1]))
        bare = line.strip()
        if not bare or bare[0] in "#;[":
            continue
        key, sign, value = bare.partition("=")
        if sign:
            units[-1].values.setdefault(key.strip(), []).append(value.strip())
    return [unit for unit in units if unit.values]


def _draft(timer: _Unit, services: Mapping[str, _Unit], zone: str | None) -> Draft:
    served = timer.last("Unit") or timer.name.removesuffix(".timer") + ".service"
    service = services.get(served)
    draft = Draft(
        timer.name.removesuffix(".timer"), "command", _schedule(timer, zone), notes={"unit": served}
    )
    draft.fields["description"] = timer.last("Description") or ""
    draft.warn(COMMAND_NOTE)
    if draft.schedule.get("kind") == "cron" and "timezone" not in draft.schedule:
        draft.warn("The timer names no zone: UTC is assumed. Give the zone of its host.")
    draft.fields["misfire"] = "latest" if _is_yes(timer.last("Persistent")) else "skip"
    if delay := timer.last("RandomizedDelaySec"):
        draft.schedule = {**draft.schedule, "spread": seconds(_span(delay))}
    if service is None or not service.last("ExecStart"):
        draft.config["argv"] = ["systemctl", "start", served]
        draft.warn(f"{served} was not given: the job starts that unit by systemctl.")
        return draft
    try:
        draft.config["argv"] = shlex.split((service.last("ExecStart") or "").lstrip("-@:+!"))
    except ValueError as error:
        raise BadRecordError(f"ExecStart cannot be read: {error}.") from None
    if len(service.values["ExecStart"]) > 1:
        draft.warn("The service has several ExecStart lines; only the last is kept.")
    if (folder := service.last("WorkingDirectory")) and folder.startswith("/"):
        draft.config["cwd"] = folder
    limit = service.last("RuntimeMaxSec") or service.last("TimeoutStartSec") or "infinity"
    if limit != "infinity":
        draft.fields["timeout"] = seconds(_span(limit))
    if user := service.last("User"):
        draft.warn(f"It ran as the user {user}; a command of Foliot runs as the user of its worker.")
    if service.last("Environment") or service.last("EnvironmentFile"):
        draft.warn("The variables of the service are not copied: add them as env or as secrets.")
    return draft


def _schedule(timer: _Unit, zone: str | None) -> dict[str, Any]:
    given = timer.values.get("OnCalendar", [])
    if len(given) > 1:
        raise BadRecordError("The timer has several OnCalendar lines: make a job of each.")
    if given:
        return _calendar(given[0], zone)
    every = timer.last("OnUnitActiveSec") or timer.last("OnUnitInactiveSec")
    if every is not None:
        mode = "fixed_rate" if timer.last("OnUnitActiveSec") else "fixed_delay"
        return {"kind": "interval", "every": seconds(_span(every)), "mode": mode}
    if timer.last("OnBootSec") or timer.last("OnStartupSec"):
        return {"kind": "manual"}
    raise BadRecordError("The timer has neither OnCalendar nor OnUnitActiveSec.")


def _calendar(text: str, zone: str | None) -> dict[str, Any]:
    text = text.strip()
    if text.lower() in _WORDS:
        schedule: dict[str, Any] = {"kind": "cron", "expr": _WORDS[text.lower()]}
        return schedule if zone is None else schedule | {"timezone": zone}
    found = _CALENDAR.fullmatch(text)
    if found is None or not (found["days"] or found["date"] or found["time"]):
        raise BadRecordError(f"OnCalendar={text} has no counterpart in cron.")
    hour, minute, second = _times(found["time"] or "00:00:00")
    month, day = _date(found["date"])
    fields = (minute, hour, day, month, _weekdays(found["days"]))
    expr = " ".join(fields if second in ("0", "00") else (second, *fields))
    schedule = {"kind": "cron", "expr": expr, "day_match": "and"}
    if second not in ("0", "00"):
        schedule["seconds"] = True
    named = found["zone"] or zone
    return schedule if named is None else schedule | {"timezone": named}


def _times(text: str) -> tuple[str, str, str]:
    hour, minute, *rest = text.split(":")
    return _values(hour), _values(minute), _values(rest[0]) if rest else "0"


def _date(text: str | None) -> tuple[str, str]:
    if text is None:
        return "*", "*"
    parts = text.split("-")
    if len(parts) == 3:
        if parts[0] != "*":
            raise BadRecordError("A timer for certain years has no counterpart in cron.")
        parts = parts[1:]
    if "~" in text:
        raise BadRecordError("Days counted from the end of the month are not imported: use L in cron.")
    return _values(parts[0]), _values(parts[1])


def _values(text: str) -> str:
    """systemd's ranges are 1..5, and 2/3 counts from 2 on."""
    return ",".join(_value(each) for each in text.split(","))


def _value(text: str) -> str:
    text = text.replace("..", "-")
    text = text.removesuffix(".0")
    base, slash, step = text.partition("/")
    plain = "-".join(str(int(each)) if each.isdecimal() else each for each in base.split("-"))
    return f"{'*' if plain == '0' else plain}/{step}" if slash else plain


def _weekdays(text: str | None) -> str:
    if text is None:
        return "*"
    found = []
    for part in text.lower().replace("..", "-").split(","):
        ends = [_DAYS.get(each[:3]) for each in part.split("-")]
        if None in ends:
            raise BadRecordError(f"{part!r} is not a day of the week.")
        if len(ends) == 2 and ends[1] == "0":
            ends[1] = "7"
        found.append("-".join(str(each) for each in ends))
    return ",".join(found)


def _span(text: str) -> float:
    parts = _SPAN.findall(text)
    if not parts or "".join(text.split()) != "".join(
        "".join(each.split()) for part in parts for each in part
    ):
        raise BadRecordError(f"{text!r} is not a time span.")
    if unknown := [unit for _, unit in parts if unit not in _SECONDS]:
        raise BadRecordError(f"{unknown[0]!r} is not a unit of time that is imported.")
    return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))


def _is_yes(value: str | None) -> bool:
    return (value or "").lower() in ("true", "yes", "on", "1")
