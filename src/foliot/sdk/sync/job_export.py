"""Jobs as the content of a file that `foliot apply` reads back, and YAML with the scalar types of JSON.

The command `foliot export` and the console show the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import yaml

from foliot.sdk.sync.entries import INHERITABLE, job_definition
from foliot.wire.jobs import JobFields, JobOut

SAME_INSTANT = timedelta(seconds=1)
JSON_SCALARS = (
    ("tag:yaml.org,2002:bool", re.compile(r"true|false"), "tf"),
    ("tag:yaml.org,2002:null", re.compile(r"null|~|"), ["n", "~", ""]),
    ("tag:yaml.org,2002:int", re.compile(r"-?(?:0|[1-9][0-9]*)"), "-0123456789"),
    (
        "tag:yaml.org,2002:float",
        re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"),
        "-0123456789",
    ),
)


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


for _tag, _pattern, _first in JSON_SCALARS:
    _Dumper.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern.pattern})$"), list(_first))


def write_yaml(value: Any) -> str:
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False
    )


def job_file_of(
    jobs: Iterable[JobOut], names: Mapping[UUID, str], calendars: Mapping[UUID, str]
) -> dict[str, Any]:
    """Return the content that `read_job_file` reads back as these jobs, without fields that have their defaults."""
    return {"jobs": [_job_fields(job, names, calendars) for job in jobs]}


def _job_fields(job: JobOut, names: Mapping[UUID, str], calendars: Mapping[UUID, str]) -> dict[str, Any]:
    values = job_definition(job, names, calendars)
    fields = {name: values[name] for name in ("name", "description", "type") if values[name]}
    fields["schedule"] = _schedule_fields(job)
    for name, declared in JobFields.model_fields.items():
        if name in fields or name not in values:  # written above, or inherited
            continue
        is_own = name in INHERITABLE or getattr(job, name) != declared.default
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
