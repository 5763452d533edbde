"""A file of jobs: `jobs:` with the fields of the API. Schedules may be words; jobs and calendars go by name.

Why: docs/decisions/804-jobs-as-a-file.md
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from foliot.cli.yaml_text import read_yaml
from foliot.domain.errors import Invalid
from foliot.sdk.errors import Invalid as InvalidJob
from foliot.sdk.sync.entries import FILE_TAG, INHERITABLE, JobEntry, error_lines, job_definition, read_entry
from foliot.wire.jobs import JobFields, JobOut

DEFAULT_SET = "jobs"
SAME_INSTANT = timedelta(seconds=1)
_SET = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}", re.ASCII)
_KEYS = {"set", "jobs"}


@dataclass(frozen=True, slots=True)
class JobFile:
    set: str
    entries: tuple[JobEntry, ...]

    @property
    def marker(self) -> str:
        """The tag of jobs that this file created."""
        return FILE_TAG + self.set


def read_job_file(text: str, name: str) -> JobFile:
    """Raise Invalid with every problem of every job."""
    found = read_yaml(text, name)
    found = {"jobs": found} if isinstance(found, list) else found
    if not isinstance(found, dict) or not isinstance(found.get("jobs"), list):
        raise Invalid(f'{name} must contain "jobs:", a list.', hint="`foliot export` writes such a file.")
    unknown = sorted(found.keys() - _KEYS)
    if unknown:
        raise Invalid(f'{name}: unknown key "{unknown[0]}".', hint='The top-level keys are "set" and "jobs".')
    set_name = found.get("set", DEFAULT_SET)
    if not isinstance(set_name, str) or not _SET.fullmatch(set_name):
        raise Invalid(
            f'"set" of {name} must be a short name.',
            hint="Lower-case letters, digits and - _ . up to 40 characters.",
        )
    entries: list[JobEntry] = []
    problems: list[str] = []
    for index, job in enumerate(found["jobs"]):
        try:
            entries.append(read_entry(job))
        except ValidationError as error:
            problems += [f"{_job_label(job, index)}{line}" for line in error_lines(error)]
        except InvalidJob as error:
            problems.append(f"{_job_label(job, index)} {error.message}")
    repeated = [each for each, times in Counter(entry.name for entry in entries).items() if times > 1]
    problems += [f'"{each}" is there twice. Names must be unique.' for each in repeated]
    if problems:
        raise Invalid(f"{name} is not valid.", hint="\n  ".join(problems))
    return JobFile(set_name, tuple(entries))


def job_file_of(
    jobs: Iterable[JobOut], names: Mapping[UUID, str], calendars: Mapping[UUID, str]
) -> dict[str, Any]:
    """Return the content that `read_job_file` reads back as these jobs, without fields that have their defaults."""
    return {"jobs": [_job_fields(job, names, calendars) for job in jobs]}


def _job_fields(job: JobOut, names: Mapping[UUID, str], calendars: Mapping[UUID, str]) -> dict[str, Any]:
    values = job_definition(job, names, calendars)
    fields = {name: values[name] for name in ("name", "description", "type") if values[name]}
    fields["schedule"] = _schedule_fields(job)
    for name, field in JobFields.model_fields.items():
        if name in fields or name not in values:  # written above, or inherited
            continue
        is_own = name in INHERITABLE or getattr(job, name) != field.default
        if is_own and values[name] not in ([], {}, None):
            fields[name] = values[name]
    for name in ("retry", "breaker", "retention"):
        if name in fields:
            fields[name] = getattr(job, name).model_dump(mode="json", exclude_defaults=True)
    if "retry" in fields and job.retry.strategy == "list":
        fields["retry"] |= {"delays": values["retry"]["delays"]}
    if job.status == "disabled":
        fields["enabled"] = False
    return fields


def _schedule_fields(job: JobOut) -> dict[str, Any]:
    """Leave out defaults, and the anchor of an interval if it is the job's creation time."""
    schedule = job.schedule
    fields = schedule.model_dump(mode="json", exclude={"words"}, exclude_defaults=True)
    if (
        schedule.kind == "interval"
        and schedule.anchor
        and abs(schedule.anchor - job.created_at) < SAME_INSTANT
    ):
        fields.pop("anchor", None)
    if schedule.kind in {"interval", "manual", "once"} and schedule.timezone == "UTC":
        fields.pop("timezone", None)
    return {"kind": schedule.kind, **fields}


def _job_label(job: Any, index: int) -> str:
    name = job.get("name") if isinstance(job, dict) else None
    return f'"{name}"' if isinstance(name, str) and name else f"Job {index + 1}"
