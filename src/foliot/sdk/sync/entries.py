"""One job as a file or an app wants it: the fields of the API, where other jobs and calendars go by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import ValidationError

from foliot.sdk.app.errors import Misdefined
from foliot.sdk.errors import Invalid
from foliot.wire.jobs import JobFields, JobIn, JobOut
from foliot.wire.schedules import CronFields, IntervalFields, ManualFields, OnceFields
from foliot.wire.shape import hint_of, pointer

if TYPE_CHECKING:
    from foliot.sdk.app.application import Foliot

MARKER = "file:"  # a tag: this job was made from the file of that name
_BY_KIND: Mapping[str, type[CronFields | IntervalFields | OnceFields | ManualFields]] = {
    "cron": CronFields,
    "interval": IntervalFields,
    "once": OnceFields,
    "manual": ManualFields,
}
_NOBODY = "00000000-0000-0000-0000-000000000000"  # stands in for a name while the rest is judged


@dataclass(frozen=True, slots=True)
class Entry:
    """`wanted` is complete, defaults and all; names are still names, the schedule is as written."""

    name: str
    wanted: Mapping[str, Any]
    schedule: Mapping[str, Any]
    enabled: bool

    @property
    def upstreams(self) -> tuple[str, ...]:
        return tuple(str(edge["job"]) for edge in self.wanted["depends_on"])


def entry_of(job: Any) -> Entry:
    """Raises Invalid for what is no job at all, and ValidationError for all that is wrong with one."""
    if not isinstance(job, dict):
        raise Invalid("is not an object with a name, a type and a schedule.", code="invalid")
    schedule = job.get("schedule")
    schedule = {"words": schedule} if isinstance(schedule, str) else schedule
    edges, calendars = job.get("depends_on"), job.get("calendars")
    judged = {**job, "schedule": schedule}
    if isinstance(edges, list):
        edges = [{"job": edge} if isinstance(edge, str) else edge for edge in edges]
        judged["depends_on"] = [_nameless(edge) for edge in edges]
    if isinstance(calendars, list):
        judged["calendars"] = [_NOBODY if isinstance(each, str) else each for each in calendars]
    whole = JobIn.model_validate(judged)
    wanted = whole.model_dump(mode="json", include=set(JobFields.model_fields))
    wanted["tags"] = [tag for tag in wanted["tags"] if not tag.startswith(MARKER)]
    wanted["calendars"] = list(calendars or ())
    for edge, written in zip(wanted["depends_on"], edges or (), strict=True):
        edge["job"] = written["job"]
    return Entry(whole.name, wanted, _as_written(whole, schedule), whole.enabled)


def app_entries(app: Foliot) -> tuple[Entry, ...]:
    """Raises Misdefined that tells all that is wrong, job by job."""
    entries: list[Entry] = []
    problems: list[str] = []
    for job in app.jobs:
        try:
            entries.append(entry_of(job.as_json()))
        except ValidationError as error:
            problems += [f"{job.name}{line}" for line in lines_of(error)]
    if problems:
        raise Misdefined(f"Jobs of the app {app.name} cannot be.", hint="\n  ".join(problems))
    return tuple(entries)


def definition_of(job: JobOut, names: Mapping[UUID, str], calendars: Mapping[UUID, str]) -> dict[str, Any]:
    """Its fields as JSON, complete, with names for ids and without the marks of files."""
    plain = job.model_dump(mode="json", include=set(JobFields.model_fields))
    plain["tags"] = [tag for tag in plain["tags"] if not tag.startswith(MARKER)]
    plain["calendars"] = [calendars.get(each, str(each)) for each in job.calendars]
    for edge, known in zip(plain["depends_on"], job.depends_on, strict=True):
        edge["job"] = names.get(known.job, str(known.job))
    return plain


def lines_of(error: ValidationError) -> list[str]:
    """What is wrong, each with the place where."""
    told = []
    for each in error.errors(include_url=False):
        where, hint = pointer(each["loc"]), hint_of(each)
        told.append(f" {where}: {each['msg']}" + (f" {hint}" if hint else ""))
    return told


def _as_written(whole: JobIn, schedule: Any) -> dict[str, Any]:
    """The schedule with its kind's defaults; what only the server knows (zone, anchor) is there only where it was written."""
    kind = getattr(whole.schedule, "kind", None)
    if kind is None:
        return whole.schedule.model_dump(mode="json", exclude_unset=True)
    fields = set(_BY_KIND[kind].model_fields) | {"timezone"}
    told = whole.schedule.model_dump(mode="json", include=fields)
    return {name: value for name, value in told.items() if value is not None or name in schedule}


def _nameless(edge: Any) -> Any:
    return {**edge, "job": _NOBODY} if isinstance(edge, dict) and isinstance(edge.get("job"), str) else edge
