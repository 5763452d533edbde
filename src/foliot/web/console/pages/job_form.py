"""The fields of the editor and the job as the API takes it, in both directions.

A patch holds only what differs from the form as it was shown: a job has more than the form shows, and two people who change different
fields do not undo each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from foliot.web.console.api import ApiRefusal, field_refusal, label_at, read_json, read_number
from foliot.web.console.forms import SchemaField
from foliot.wire.jobs import WEEK, JobFields

Fields = dict[str, str]
KINDS = ("words", "cron", "interval", "once", "manual", "after")
SIX_FIELDS = 6  # a cron expression that starts with seconds
MOST_ROWS = 12  # dependencies in the form
DEFAULTS: dict[str, Any] = JobFields(name="x", type="http").model_dump(mode="json")
PLAIN = (
    "name",
    "description",
    "type",
    "queue",
    "timeout",
    "overlap",
    "misfire",
    "depends_when",
    "owner",
)  # text as it is
RETRY = ("retry_max", "retry_strategy", "retry_delays", "retry_base", "retry_cap")
WINDOW = (
    "window_start",
    "window_end",
    "window_otherwise",
    *(f"window_{day}" for day in WEEK),
)
NOTIFY_KINDS = ("email", "slack", "whatsapp")
BLANK: Fields = {
    "kind": "words", "when": "every weekday at 9am", "timezone": "", "config": "", "payload": "", "tags": "", "start_at": "", "end_at": "", "max_runs": "",
    "note": "", "notify": "", "notify_to": "", **dict.fromkeys((*PLAIN, *RETRY, *WINDOW), ""), "type": "http", "window_otherwise": "defer",
}  # fmt: skip
# Labels of the fields, for the form and for its refusals. Fields of the type's config have those of their schema.
LABELS: Mapping[str, str] = {
    "name": "Name", "when": "Schedule", "timezone": "Time zone", "type": "Type", "config": "Configuration (JSON)", "payload": "Payload (JSON)",
    "retry_max": "Retries", "retry_strategy": "Waits between them", "retry_delays": "Waits before each retry", "retry_base": "First wait",
    "retry_cap": "Longest wait", "timeout": "Timeout", "misfire": "Times missed while Foliot was down", "overlap": "When the run before is still going",
    "dep_job": "Jobs that it follows", "depends_when": "With several", "window_start": "From", "window_end": "To", "window_otherwise": "Outside of them",
    "calendars": "Calendars", "start_at": "Not before", "end_at": "Not after", "max_runs": "Most runs", "description": "Description",
    "tags": "Tags", "owner": "Owner", "queue": "Queue", "notify": "Failures go to", "notify_to": "Recipients", "note": "What changed, and why (optional)",
}  # fmt: skip
# The folded parts of the form and the beginnings of their fields: a part with a refused field is open.
FOLDED: Mapping[str, tuple[str, ...]] = {
    "payload-box": ("payload",),
    "more": ("retry_", "timeout", "misfire", "overlap"),
    "before": ("dep_", "depends_when", "window_", "calendars", "start_at", "end_at", "max_runs"),
    "about": ("description", "tags", "owner", "queue", "notify"),
}
# The parts of a job and the fields that make them. Names with a * stand for all fields that begin so.
PARTS: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in PLAIN},
    "config": ("type", "config", "config_*"),
    "payload": ("payload",),
    "schedule": ("kind", "when", "timezone"),
    "tags": ("tags",),
    "notify": ("notify", "notify_to"),
    "retry": RETRY,
    "window": WINDOW,
    "calendars": ("cal_*",),
    "depends_on": ("dep_*",),
    "start_at": ("start_at",),
    "end_at": ("end_at",),
    "max_runs": ("max_runs",),
}


def schedule_of(fields: Fields) -> dict[str, Any]:
    """The schedule as the API takes it. An empty zone leaves the choice to the workspace."""
    when = fields["when"].strip()
    zone = {"timezone": fields["timezone"].strip()} if fields["timezone"].strip() else {}
    match fields["kind"]:
        case "cron":
            return {
                "kind": "cron",
                "expr": when,
                "seconds": len(when.split()) == SIX_FIELDS,
                **zone,
            }
        case "interval":
            return {"kind": "interval", "every": when}
        case "once":
            return {"kind": "once", "at": when, **zone}
        case "manual" | "after":
            return {"kind": "manual"}
        case _:
            return {"words": when, **zone}


def body_of(fields: Fields, schema: list[SchemaField], names: Mapping[str, str]) -> dict[str, Any]:
    """The whole job. What is left empty is left out: the server has defaults for it. `names` are ids of jobs by name."""
    body: dict[str, Any] = {name: fields[name].strip() for name in PLAIN if fields[name].strip()}
    body |= {
        "name": fields["name"].strip(),
        "description": fields["description"].strip(),
        "schedule": schedule_of(fields),
        "tags": [tag.strip() for tag in fields["tags"].split(",") if tag.strip()],
        "calendars": [
            name.removeprefix("cal_") for name in fields if name.startswith("cal_") and fields[name]
        ],
    }
    optional: dict[str, Any] = {name: fields[name].strip() or None for name in ("start_at", "end_at")}
    optional |= {"window": window_of(fields)}
    read = read_all(
        {
            "config": lambda: config_of(fields, schema),
            "payload": lambda: json_object("payload", fields["payload"]),
            "depends_on": lambda: dependencies_of(fields, names),
            "retry": lambda: retry_of(fields),
            "notify": lambda: notify_of(fields),
            "max_runs": lambda: number_of(fields, "max_runs"),
        }
    )
    body |= {name: read.pop(name) for name in ("config", "payload", "depends_on")}
    return body | {name: value for name, value in {**optional, **read}.items() if value}


def read_all(parts: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Read each part of the form. Refuse all that cannot be read at once: a person mends them together."""
    found: dict[str, Any] = {}
    errors: list[dict[str, Any]] = []
    for name, read in parts.items():
        try:
            found[name] = read()
        except ApiRefusal as refusal:
            errors += refusal.problem["errors"]
    if errors:
        raise ApiRefusal(422, {"errors": errors})
    return found


def changes_of(
    base: Mapping[str, Any],
    fields: Fields,
    shown: Fields,
    schema: list[SchemaField],
    names: Mapping[str, str],
) -> dict[str, Any]:
    """The patch that turns `base`, shown as these fields, into what the form says now."""
    whole = body_of(fields, schema, names)
    changes: dict[str, Any] = {}
    for part, sources in PARTS.items():
        if not differs(fields, shown, sources):
            continue
        value: Any = whole.get(part, DEFAULTS.get(part))
        if part in ("config", "payload"):
            value = merge_patch_between(base[part], value)
        elif part == "retry":
            value = merge_patch_between(base[part], {**base[part], **(value or {})})
        elif part == "depends_on":
            kept = {each["job"]: each for each in base[part]}
            value = [kept.get(each["job"], {}) | each for each in value]
        if value != {} or part not in ("config", "payload", "retry"):
            changes[part] = value
    if changes.get("owner", "") is None:
        del changes["owner"]
    return changes


def differs(fields: Fields, shown: Fields, sources: tuple[str, ...]) -> bool:
    names = {
        name for source in sources for name in (fields | shown)
        if name == source or (source.endswith("*") and name.startswith(source[:-1]))
    }  # fmt: skip
    return any(_same(fields.get(name, "")) != _same(shown.get(name, "")) for name in names)


def _same(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def merge_patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch (RFC 7396) that turns one object into the other: null removes a key."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            patch |= {name: merge_patch_between(old, value)} if old != value else {}
        elif name not in before or old != value:
            patch[name] = value
    return patch


def config_of(fields: Fields, schema: list[SchemaField]) -> dict[str, Any]:
    """The config: a field for each property of the schema, and JSON for the rest."""
    config = json_object("config", fields["config"])
    for each in schema:
        raw = fields.get(f"config_{each.name}", "")
        if raw.strip():
            value = each.read(raw, f"config/{each.name}")
            if each.is_required or value != each.default:
                config[each.name] = value
    return config


def retry_of(fields: Fields) -> dict[str, Any]:
    retry: dict[str, Any] = {}
    if fields["retry_max"].strip():
        retry["max"] = read_number("retry_max", fields["retry_max"].strip())
    if fields["retry_strategy"].strip():
        retry["strategy"] = fields["retry_strategy"].strip()
    if delays := [part.strip() for part in fields["retry_delays"].split(",") if part.strip()]:
        retry["delays"] = delays
        retry.setdefault("strategy", "list")
    for name in ("base", "cap"):
        if value := fields[f"retry_{name}"].strip():
            retry[name] = value
    return retry


def window_of(fields: Fields) -> dict[str, Any] | None:
    start, end = fields["window_start"].strip(), fields["window_end"].strip()
    if not start and not end:
        return None
    days = [day for day in WEEK if fields[f"window_{day}"]]
    return {"start": start, "end": end, "otherwise": fields["window_otherwise"] or "defer", **({"days": days} if days else {})}  # fmt: skip


def notify_of(fields: Fields) -> dict[str, Any] | None:
    """Who hears of the job: kinds of channels joined by +, or `nobody`. Empty: the rules of the workspace decide."""
    chosen = fields["notify"].strip()
    if not chosen and fields["notify_to"].strip():
        raise field_refusal("notify", "Choose the channel that reaches these recipients.")
    if not chosen:
        return None
    recipients = [each.strip() for each in fields["notify_to"].split(",") if each.strip()]
    return {kind: kind in chosen.split("+") for kind in NOTIFY_KINDS} | {"recipients": recipients}


def notify_text(notify: Mapping[str, Any] | None) -> str:
    return "" if notify is None else "+".join(kind for kind in NOTIFY_KINDS if notify[kind]) or "nobody"


def dependencies_of(fields: Fields, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The edges of the rows that name a job. A name must be that of one job."""
    edges = []
    for place in range(MOST_ROWS):
        named = fields.get(f"dep_job_{place}", "").strip()
        if not named:
            continue
        job_id = named if is_id(named) else names.get(named)
        if job_id is None:
            raise field_refusal(
                f"depends_on/{place}/job",
                "There is no job, or more than one, of this name. Its id names one job for certain.",
            )
        edge = {
            "job": job_id,
            "on": fields.get(f"dep_on_{place}") or "success",
            "mode": fields.get(f"dep_mode_{place}") or "trigger",
        }
        if delay := fields.get(f"dep_delay_{place}", "").strip():
            edge["delay"] = delay
        edges.append(edge)
    return edges  # fmt: skip


def is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def number_of(fields: Fields, name: str) -> int | None:
    return read_number(name, fields[name].strip()) if fields[name].strip() else None


def fields_of(job: Mapping[str, Any], schema: list[SchemaField], names: Mapping[str, str]) -> Fields:
    """A stored job as the fields of the form. `names` are names of jobs by id."""
    schedule, retry, window, config = (
        job["schedule"],
        job["retry"],
        job["window"] or {},
        dict(job["config"]),
    )
    when = {"cron": "expr", "interval": "every", "once": "at"}.get(schedule["kind"], "")
    is_after = schedule["kind"] == "manual" and any(each["mode"] == "trigger" for each in job["depends_on"])
    fields = BLANK | {name: str(job.get(name) or "") for name in (*PLAIN, "start_at", "end_at", "max_runs")}
    fields |= {
        "owner": job.get("owner_name") or "",
        "kind": "after" if is_after else schedule["kind"],
        "when": str(schedule.get(when) or ""),
        "timezone": schedule.get("timezone") or "",
        "tags": ", ".join(job["tags"]),
        "notify": notify_text(job["notify"]),
        "notify_to": ", ".join((job["notify"] or {}).get("recipients", ())),
        "payload": json.dumps(job["payload"], indent=2, ensure_ascii=False) if job["payload"] else "",
        "retry_max": str(retry["max"]),
        "retry_strategy": retry["strategy"],
        "retry_delays": ", ".join(retry.get("delays") or []),
        "retry_base": retry.get("base") or "",
        "retry_cap": retry.get("cap") or "",
        "window_start": (window.get("start") or "")[:5],
        "window_end": (window.get("end") or "")[:5],
        "window_otherwise": window.get("otherwise", "defer"),
        **{f"window_{day}": "1" if day in window.get("days", ()) else "" for day in WEEK},
        **{f"cal_{each}": "1" for each in job["calendars"]},
    }
    for place, each in enumerate(job["depends_on"][:MOST_ROWS]):
        delay = each.get("delay") or ""
        fields |= {
            f"dep_job_{place}": names.get(each["job"], each["job"]), f"dep_on_{place}": each["on"], f"dep_mode_{place}": each["mode"],
            f"dep_delay_{place}": "" if delay in ("0s", "0") else delay,
        }  # fmt: skip
    for known in schema:
        if known.name in config:
            fields[f"config_{known.name}"] = known.write(config.pop(known.name))
    fields["config"] = json.dumps(config, indent=2, ensure_ascii=False) if config else ""
    return fields


def json_object(name: str, raw: str) -> dict[str, Any]:
    if not raw.strip():
        return {}
    value = read_json(name, raw)
    if not isinstance(value, dict):
        raise field_refusal(name, "This must be a JSON object: {…}.")
    return value


def field_label(name: str, schema: list[SchemaField]) -> str:
    """The label of a field of the form."""
    of_type = {f"config_{each.name}": each.label for each in schema}
    known = "dep_job" if name.startswith("dep_job_") else name
    return of_type.get(name) or LABELS.get(known) or label_at(name)


def field_at(pointer: str, fields: Fields) -> str:
    """The field of the form that a pointer of the API means."""
    first, *rest = pointer.strip("/").split("/")
    if first == "config":
        return f"config_{rest[0]}" if rest and f"config_{rest[0]}" in fields else "config"
    if first == "schedule":
        return "timezone" if rest == ["timezone"] else "when"
    if first == "retry":
        return f"retry_{rest[0]}" if rest and f"retry_{rest[0]}" in fields else "retry_max"
    if first == "depends_on":
        return f"dep_job_{rest[0]}" if rest else "dep_job_0"
    if first == "window":
        return f"window_{rest[0]}" if rest and f"window_{rest[0]}" in fields else "window_start"
    if first == "notify":
        return "notify_to" if rest and rest[0] == "recipients" else "notify"
    return {"words": "when", "expr": "when", "every": "when", "at": "when"}.get(first, first)
