"""A file of jobs: `jobs:` with the fields of the API, where a schedule may be words and other jobs and calendars go by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from foliot.cli.apply.yaml_text import read_yaml
from foliot.domain.errors import Invalid
from foliot.sdk.errors import Invalid as NoJob
from foliot.sdk.sync.entries import MARKER, Entry, definition_of, entry_of, lines_of
from foliot.wire.jobs import JobFields, JobOut

DEFAULT_SET = "jobs"
SAME_MOMENT = timedelta(seconds=1)
_SET = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}", re.ASCII)
_KNOWN = {"set", "jobs"}


@dataclass(frozen=True, slots=True)
class Sheet:
    set: str
    entries: tuple[Entry, ...]

    @property
    def marker(self) -> str:
        return MARKER + self.set


def read_sheet(text: str, name: str) -> Sheet:
    """Raises Invalid that tells all that is wrong, job by job."""
    found = read_yaml(text, name)
    found = {"jobs": found} if isinstance(found, list) else found
    if not isinstance(found, dict) or not isinstance(found.get("jobs"), list):
        raise Invalid(f'{name} must hold "jobs:", a list.', hint="`foliot export` writes such a file.")
    wrong = sorted(found.keys() - _KNOWN)
    if wrong:
        raise Invalid(f'{name} has "{wrong[0]}" at its top.', hint='Only "set" and "jobs" stand there.')
    called = found.get("set", DEFAULT_SET)
    if not isinstance(called, str) or not _SET.fullmatch(called):
        raise Invalid(
            f'"set" of {name} must be a short word.', hint="Small letters, digits and - _ . up to 40."
        )
    entries: list[Entry] = []
    problems: list[str] = []
    for place, job in enumerate(found["jobs"]):
        try:
            entries.append(entry_of(job))
        except ValidationError as error:
            problems += [f"{_called(job, place)}{line}" for line in lines_of(error)]
        except NoJob as error:
            problems.append(f"{_called(job, place)} {error.message}")
    twice = [each for each, times in Counter(entry.name for entry in entries).items() if times > 1]
    problems += [f'"{each}" is there twice: jobs are known by their names.' for each in twice]
    if problems:
        raise Invalid(f"{name} cannot be applied.", hint="\n  ".join(problems))
    return Sheet(called, tuple(entries))


def sheet_of(
    jobs: Iterable[JobOut], names: Mapping[UUID, str], calendars: Mapping[UUID, str]
) -> dict[str, Any]:
    """What `read_sheet` reads back as these jobs: only what is not a default, in the order of the API."""
    return {"jobs": [_written(job, names, calendars) for job in jobs]}


def _written(job: JobOut, names: Mapping[UUID, str], calendars: Mapping[UUID, str]) -> dict[str, Any]:
    plain = definition_of(job, names, calendars)
    told = {name: plain[name] for name in ("name", "description", "type") if plain[name]}
    told["schedule"] = _schedule(job)
    for name, field in JobFields.model_fields.items():
        if name not in told and getattr(job, name) != field.default and plain[name] not in ([], {}, None):
            told[name] = plain[name]
    for name in ("retry", "breaker", "retention"):
        if name in told:
            told[name] = getattr(job, name).model_dump(mode="json", exclude_defaults=True)
    if "retry" in told and job.retry.strategy == "list":
        told["retry"] |= {"delays": plain["retry"]["delays"]}
    if job.status == "disabled":
        told["enabled"] = False
    return told


def _schedule(job: JobOut) -> dict[str, Any]:
    """Without its defaults; the anchor of a pace only where it is another than the job's creation."""
    schedule = job.schedule
    told = schedule.model_dump(mode="json", exclude={"words"}, exclude_defaults=True)
    if (
        schedule.kind == "interval"
        and schedule.anchor
        and abs(schedule.anchor - job.created_at) < SAME_MOMENT
    ):
        told.pop("anchor", None)
    if schedule.kind in {"interval", "manual", "once"} and schedule.timezone == "UTC":
        told.pop("timezone", None)
    return {"kind": schedule.kind, **told}


def _called(job: Any, place: int) -> str:
    name = job.get("name") if isinstance(job, dict) else None
    return f'"{name}"' if isinstance(name, str) and name else f"Job {place + 1}"
