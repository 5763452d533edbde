"""Changes to a job: PUT replaces the definition, PATCH merges into it (RFC 7396).

Both speak of the JSON that a GET answers with. Its read-only fields may come along, as long as they say what is so.

Why: docs/decisions/602-jobs-as-json.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from foliot.domain.errors import Invalid
from foliot.web.mapping.definitions import FieldErrors
from foliot.wire.jobs import JobIn, JobOut

WRITABLE = frozenset(JobIn.model_fields)
READ_ONLY = frozenset(JobOut.model_fields) - WRITABLE
# The server changes these between a GET and a PUT, so a PUT may carry old values.
MOVING = frozenset(
    {"next_run_at", "status_at", "status_reason", "paused_until", "updated_at", "warnings", "inherited"}
) | {name for name in READ_ONLY if name.startswith(("last_", "consecutive_")) or name.endswith("_count")}
HINTS = {
    "status": "Jobs are moved by pause, resume, disable and DELETE.",
    "next_run_at": "It follows from the schedule.",
    "paused_until": "Pause takes it as until.",
}


@dataclass(frozen=True, slots=True)
class PatchedJob:
    """The job after the change, and whether its schedule is unchanged."""

    job: JobIn
    keeps_schedule: bool


def enabled_in(given: Mapping[str, Any]) -> bool | None:
    """Return `enabled` of a PUT or PATCH; null is its default. None: it is left out, or no boolean, which the shape refuses."""
    value = given.get("enabled") if given.get("enabled", False) is not None else True
    return value if isinstance(value, bool) else None


def replace_fields(current: JobOut, given: Mapping[str, Any]) -> PatchedJob:
    """Apply a PUT: fields that are left out get their default."""
    now = current.model_dump(mode="json")
    _refuse_read_only(now, {name: value for name, value in given.items() if name not in MOVING})
    given = _without_inherited(now, given)
    return _written(now, {name: value for name, value in given.items() if name not in READ_ONLY})


def merge_patch(current: JobOut, patch: Mapping[str, Any]) -> PatchedJob:
    """Apply a PATCH: fields that are left out stay; null sets the default."""
    now = current.model_dump(mode="json")
    checked = {name: value for name, value in patch.items() if name not in {"warnings", "inherited"}}
    _refuse_read_only(now, checked)
    patch = _without_inherited(now, patch)
    stays = {name: value for name, value in now.items() if name in WRITABLE}
    wanted = {name: value for name, value in patch.items() if name not in READ_ONLY}
    for name in now["inherited"]:
        if name not in wanted:
            stays.pop(name)  # left out, it stays inherited
    if isinstance(wanted.get("target"), dict):
        stays.pop("target")  # a host and a server cannot be merged
    schedule = _patched_schedule(now["schedule"], wanted.pop("schedule", {}))
    after = _merged({**stays, "schedule": {}}, wanted)
    return _written(now, after if schedule is None else {**after, "schedule": schedule})


def _without_inherited(now: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the inherited values that a GET answered with and that come back unchanged."""
    named = given.get("inherited")
    returned = now["inherited"].keys() & (named.keys() if isinstance(named, dict) else set())
    same = {name for name in returned if given.get(name) == now[name]}
    return {name: value for name, value in given.items() if name not in same}


def _refuse_read_only(now: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    faults = FieldErrors()
    if type(given.get("revision", 0)) is not int:  # checked strictly: true would pass for 1
        faults.found.append(
            Invalid(
                "revision is a whole number.",
                pointer="/revision",
                hint="As a GET answers with it, or left out.",
            )
        )
    faults.found += [
        Invalid(
            f"{name} is read-only, and is {_shown(now[name])} now.",
            pointer=f"/{name}",
            hint=HINTS.get(name, "Leave it out."),
        )
        for name, value in given.items()
        if name in READ_ONLY and name != "revision" and value != now[name]
    ]
    if faults.found:
        faults.tell()


def _patched_schedule(now: Mapping[str, Any], patch: Any) -> Any:
    """Merge into the schedule. Other words or another kind replace it and keep only its zone: no other field fits."""
    if not isinstance(patch, dict):
        return patch
    is_new_words = "kind" not in patch and patch.get("words", now["words"]) != now["words"]
    if is_new_words or patch.get("kind", now["kind"]) != now["kind"]:
        return _merged({"timezone": now["timezone"]}, patch)
    return _merged(now, patch)


def _written(now: Mapping[str, Any], fields: dict[str, Any]) -> PatchedJob:
    schedule = fields.get("schedule")
    keeps_schedule = schedule == now["schedule"]
    if (
        isinstance(schedule, dict)
        and not keeps_schedule
        and schedule.get("words") == now["schedule"]["words"]
    ):
        # The old sentence was sent with new fields: it describes the old ones.
        fields = {**fields, "schedule": {name: schedule[name] for name in schedule if name != "words"}}
    try:
        return PatchedJob(JobIn.model_validate(fields), keeps_schedule)
    except ValidationError as error:
        found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
        raise RequestValidationError(found) from None


def _merged(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """RFC 7396, section 2."""
    after = dict(target)
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            old = after.get(name)
            after[name] = _merged(old if isinstance(old, dict) else {}, value)
        else:
            after[name] = value
    return after


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
