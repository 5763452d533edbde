"""One job of a file or an app: the fields of the API, with names of other jobs and calendars in place of ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import ValidationError

from foliot.sdk.app.options import AppDefinitionError
from foliot.sdk.errors import Invalid
from foliot.wire.jobs import JobFields, JobIn, JobOut
from foliot.wire.schedules import CronFields, IntervalFields, ManualFields, OnceFields
from foliot.wire.shape import hint_of, pointer

if TYPE_CHECKING:
    from foliot.sdk.app.application import Foliot

INHERITABLE = frozenset(
    {"retry", "timeout", "retention"}
)  # fields with defaults of the workspace or installation
FILE_TAG = "file:"  # prefix of the tag that names the file which created the job
_BY_KIND: Mapping[str, type[CronFields | IntervalFields | OnceFields | ManualFields]] = {
    "cron": CronFields,
    "interval": IntervalFields,
    "once": OnceFields,
    "manual": ManualFields,
}
_PLACEHOLDER_ID = "00000000-0000-0000-0000-000000000000"  # replaces a name during validation


@dataclass(frozen=True, slots=True)
class JobEntry:
    """`wanted` includes defaults except inherited ones, and has names in place of ids. The schedule is as written."""

    name: str
    wanted: Mapping[str, Any]
    schedule: Mapping[str, Any]
    enabled: bool | None  # None: not written; a new job is enabled, and others keep their status
    owner: str | None = None  # None: not written; a new job is the caller's, and others keep their owner

    @property
    def upstreams(self) -> tuple[str, ...]:
        return tuple(str(edge["job"]) for edge in self.wanted["depends_on"])


def read_entry(job: Any) -> JobEntry:
    """Raise Invalid if it is not an object, and ValidationError with every problem of its fields."""
    if not isinstance(job, dict):
        raise Invalid("is not an object with a name, a type and a schedule.", code="invalid")
    schedule = job.get("schedule")
    schedule = {"words": schedule} if isinstance(schedule, str) else schedule
    edges, calendars = job.get("depends_on"), job.get("calendars")
    checked = {**job, "schedule": schedule}
    if isinstance(edges, list):
        edges = [{"job": edge} if isinstance(edge, str) else edge for edge in edges]
        checked["depends_on"] = [_with_placeholder(edge) for edge in edges]
    if isinstance(calendars, list):
        checked["calendars"] = [_PLACEHOLDER_ID if isinstance(each, str) else each for each in calendars]
    whole = JobIn.model_validate(checked)
    wanted = whole.model_dump(mode="json", include=set(JobFields.model_fields))
    wanted["tags"] = [tag for tag in wanted["tags"] if not tag.startswith(FILE_TAG)]
    for name in INHERITABLE - whole.model_fields_set:
        del wanted[name]  # the job inherits it
    wanted["calendars"] = list(calendars or ())
    for edge, written in zip(wanted["depends_on"], edges or (), strict=True):
        edge["job"] = written["job"]
    enabled = whole.enabled if "enabled" in whole.model_fields_set else None
    return JobEntry(whole.name, wanted, _written_schedule(whole, schedule), enabled, whole.owner)


def app_entries(app: Foliot) -> tuple[JobEntry, ...]:
    """Raise AppDefinitionError with every problem of every job."""
    entries: list[JobEntry] = []
    problems: list[str] = []
    for job in app.jobs:
        try:
            entries.append(read_entry(job.as_json()))
        except ValidationError as error:
            problems += [f"{job.name}{line}" for line in error_lines(error)]
    if problems:
        raise AppDefinitionError(f"Jobs of the app {app.name} are not valid.", hint="\n  ".join(problems))
    return tuple(entries)


def job_definition(
    job: JobOut, names: Mapping[UUID, str], calendars: Mapping[UUID | str, str] | Mapping[UUID, str]
) -> dict[str, Any]:
    """Return all fields that are not inherited as JSON, with names in place of ids and without the tags of files."""
    plain = job.model_dump(mode="json", include=set(JobFields.model_fields))
    plain["tags"] = [tag for tag in plain["tags"] if not tag.startswith(FILE_TAG)]
    for name in job.inherited:
        del plain[name]
    plain["calendars"] = [calendars.get(each, str(each)) for each in job.calendars]
    for edge, known in zip(plain["depends_on"], job.depends_on, strict=True):
        edge["job"] = names.get(known.job, str(known.job))
    return plain


def error_lines(error: ValidationError) -> list[str]:
    """Return one line for each problem: where, what, and a hint."""
    lines = []
    for each in error.errors(include_url=False):
        where, hint = pointer(each["loc"]), hint_of(each)
        lines.append(f" {where}: {each['msg']}" + (f" {hint}" if hint else ""))
    return lines


def _written_schedule(whole: JobIn, schedule: Any) -> dict[str, Any]:
    """Return the schedule with the defaults of its kind. Zone and anchor appear only if written: the server fills them."""
    kind = getattr(whole.schedule, "kind", None)
    if kind is None:
        return whole.schedule.model_dump(mode="json", exclude_unset=True)
    fields = set(_BY_KIND[kind].model_fields) | {"timezone"}
    written = whole.schedule.model_dump(mode="json", include=fields)
    return {name: value for name, value in written.items() if value is not None or name in schedule}


def _with_placeholder(edge: Any) -> Any:
    return (
        {**edge, "job": _PLACEHOLDER_ID}
        if isinstance(edge, dict) and isinstance(edge.get("job"), str)
        else edge
    )
