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

from foliot.cli.code.yaml_text import read_yaml
from foliot.domain.errors import Invalid
from foliot.wire.jobs import JobFields, JobIn, JobOut
from foliot.wire.schedules import CronFields, IntervalFields, ManualFields, OnceFields
from foliot.wire.shape import hint_of, pointer

MARKER = "file:"  # a tag: this job was made from the file of that name
DEFAULT_SET = "jobs"
SAME_MOMENT = timedelta(seconds=1)
_SET = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}", re.ASCII)
_KNOWN = {"set", "jobs"}
_BY_KIND: Mapping[str, type[CronFields | IntervalFields | OnceFields | ManualFields]] = {
    "cron": CronFields,
    "interval": IntervalFields,
    "once": OnceFields,
    "manual": ManualFields,
}
_NOBODY = "00000000-0000-0000-0000-000000000000"  # stands in for a name while the rest is judged


@dataclass(frozen=True, slots=True)
class Entry:
    """One job as the file has it. `wanted` is complete, defaults and all; names are still names, the schedule is as written."""

    name: str
    wanted: Mapping[str, Any]
    schedule: Mapping[str, Any]
    enabled: bool

    @property
    def upstreams(self) -> tuple[str, ...]:
        return tuple(str(edge["job"]) for edge in self.wanted["depends_on"])


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
            entries.append(_entry(job))
        except ValidationError as error:
            problems += [f"{_called(job, place)}{line}" for line in _lines(error)]
        except Invalid as error:
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


def definition_of(job: JobOut, names: Mapping[UUID, str], calendars: Mapping[UUID, str]) -> dict[str, Any]:
    """Its fields as JSON, complete, with names for ids and without the marks of files."""
    plain = job.model_dump(mode="json", include=set(JobFields.model_fields))
    plain["tags"] = [tag for tag in plain["tags"] if not tag.startswith(MARKER)]
    plain["calendars"] = [calendars.get(each, str(each)) for each in job.calendars]
    for edge, known in zip(plain["depends_on"], job.depends_on, strict=True):
        edge["job"] = names.get(known.job, str(known.job))
    return plain


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


def _entry(job: Any) -> Entry:
    if not isinstance(job, dict):
        raise Invalid("is not an object with a name, a type and a schedule.")
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


def _called(job: Any, place: int) -> str:
    name = job.get("name") if isinstance(job, dict) else None
    return f'"{name}"' if isinstance(name, str) and name else f"Job {place + 1}"


def _lines(error: ValidationError) -> list[str]:
    told = []
    for each in error.errors(include_url=False):
        where, hint = pointer(each["loc"]), hint_of(each)
        told.append(f" {where}: {each['msg']}" + (f" {hint}" if hint else ""))
    return told
