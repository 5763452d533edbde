"""Compare wanted jobs with existing ones: what to create, change, leave and archive. Pure.

Why: docs/decisions/805-jobs-managed-by-code.md
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from foliot.sdk.errors import Invalid
from foliot.sdk.job_names import MAX_LISTED, describe_for_choice
from foliot.sdk.sync.entries import FILE_TAG, JobEntry, job_definition
from foliot.wire.jobs import JobOut

CalendarNames = Mapping[UUID, str] | Mapping[UUID | str, str]  # by id, or by the ref of a batch
ResolveSchedule = Callable[[Mapping[str, Any]], Mapping[str, Any]]
SERVER_FILLED = ("anchor", "timezone")  # fields that the server fills in if a schedule omits them


@dataclass(frozen=True, slots=True)
class JobChange:
    pointer: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class JobUpdate:
    entry: JobEntry
    job: JobOut
    changes: tuple[JobChange, ...]
    keeps_schedule: bool


@dataclass(frozen=True, slots=True)
class SyncPlan:
    create: tuple[JobEntry, ...]  # upstream jobs first
    update: tuple[JobUpdate, ...]
    same: tuple[JobOut, ...]
    gone: tuple[JobOut, ...]  # created by this file or app, and no longer in it
    untouched: tuple[JobOut, ...]

    @property
    def changes_nothing(self) -> bool:
        return not self.create and not self.update


def plan_sync(
    entries: Sequence[JobEntry],
    jobs: Sequence[JobOut],
    names: Mapping[UUID, str],
    calendars: CalendarNames,
    *,
    resolve: ResolveSchedule,
    is_mine: Callable[[JobOut], bool],
) -> SyncPlan:
    """Return the plan. `resolve` completes a schedule that only the server understands; `is_mine` tells which jobs came
    from the same source. Raise Invalid for unknown names.
    """
    by_name: defaultdict[str, list[JobOut]] = defaultdict(list)
    for job in jobs:
        by_name[job.name].append(job)
    _check_names(entries, by_name, set(calendars.values()) | {str(each) for each in calendars})
    create: list[JobEntry] = []
    update: list[JobUpdate] = []
    same: list[JobUpdate] = []
    for entry in entries:
        found = by_name.get(entry.name)
        if not found:
            create.append(entry)
            continue
        changed = _compare(entry, found[0], names, calendars, resolve)
        (update if changed.changes else same).append(changed)
    wanted = {entry.name for entry in entries}
    others = [job for job in jobs if job.name not in wanted]
    return SyncPlan(
        tuple(_upstreams_first(create)),
        tuple(update),
        tuple(each.job for each in same),
        tuple(job for job in others if is_mine(job)),
        tuple(job for job in others if not is_mine(job)),
    )


def needs_resolving(schedule: Mapping[str, Any]) -> bool:
    """Return whether only the server can complete it: words, and cron in the zone of the workspace."""
    return "words" in schedule or (schedule["kind"] == "cron" and "timezone" not in schedule)


def differences(before: Any, after: Any, at: str = "") -> Iterator[JobChange]:
    """Yield the changed leaves; a list is one value."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            yield from differences(before.get(name), after.get(name), f"{at}/{name}")
    elif before != after:
        yield JobChange(at, before, after)


def _compare(
    entry: JobEntry,
    job: JobOut,
    names: Mapping[UUID, str],
    calendars: CalendarNames,
    resolve: ResolveSchedule,
) -> JobUpdate:
    is_now = job.schedule.model_dump(mode="json", exclude={"words"})
    wanted = dict(entry.schedule)
    if needs_resolving(wanted):
        resolved = dict(resolve(wanted))
        resolved.pop("words", None)
        if "words" in wanted and resolved["kind"] == "once":
            raise Invalid(
                f'"{entry.name}" /schedule: these words mean a different time every day.',
                code="invalid",
                hint='Write a single time as {"kind": "once", "at": "2027-01-02T18:00:00Z"}.',
            )
        resolved.pop("anchor", None)
        if resolved["kind"] == "interval":
            resolved.pop("timezone", None)
        wanted = resolved
    for name in SERVER_FILLED:
        if name not in wanted and name in is_now and wanted["kind"] == is_now["kind"]:
            wanted[name] = is_now[name]
    of_schedule = tuple(differences(is_now, wanted, "/schedule"))
    of_others = differences(job_definition(job, names, calendars), dict(entry.wanted))
    written = tuple(_written_changes(entry, job))
    return JobUpdate(entry, job, (*of_schedule, *of_others, *written), keeps_schedule=not of_schedule)


def _written_changes(entry: JobEntry, job: JobOut) -> Iterator[JobChange]:
    """Yield the changes of fields that count only where they are written."""
    if entry.enabled not in (None, job.enabled):
        yield JobChange("/enabled", job.enabled, entry.enabled)
    if entry.owner is not None and entry.owner not in {job.owner_name, str(job.owner)}:
        yield JobChange("/owner", job.owner_name or (job.owner and str(job.owner)), entry.owner)


def _check_names(
    entries: Sequence[JobEntry], by_name: Mapping[str, Sequence[JobOut]], calendars: set[str]
) -> None:
    known = {entry.name for entry in entries}
    ids = {str(job.id) for several in by_name.values() for job in several}
    problems = []
    for entry in entries:
        if len(by_name.get(entry.name, ())) > 1:
            problems.append(f'"{entry.name}": {_several(by_name[entry.name])} Rename all but one.')
        problems += [
            f'"{entry.name}" /depends_on: {_unclear_upstream(each, by_name.get(each, ()))}'
            for each in entry.upstreams
            if each not in known and each not in ids and len(by_name.get(each, ())) != 1
        ]
        problems += [
            f'"{entry.name}" /calendars: calendar not found: "{each}".'
            for each in entry.wanted["calendars"]
            if each not in calendars
        ]
    if problems:
        raise Invalid("The jobs do not match the server.", code="invalid", hint="\n  ".join(problems))


def _unclear_upstream(name: str, jobs: Sequence[JobOut]) -> str:
    if not jobs:
        return f'job not found: "{name}".'
    return f'"{name}": {_several(jobs)} Write an id here instead.'


def _several(jobs: Sequence[JobOut]) -> str:
    ids = ", ".join(f"{job.id} ({describe_for_choice(job)})" for job in jobs[:MAX_LISTED])
    return f"{len(jobs)} jobs on the server have this name: {ids}."


def _upstreams_first(entries: Iterable[JobEntry]) -> list[JobEntry]:
    """Order jobs so that an upstream exists before a job depends on it. Raise Invalid for a cycle."""
    waiting = {entry.name: entry for entry in entries}
    ordered: list[JobEntry] = []
    while waiting:
        free = [entry for entry in waiting.values() if not any(each in waiting for each in entry.upstreams)]
        if not free:
            raise Invalid(
                f"These jobs depend on each other: {', '.join(waiting)}.",
                code="invalid",
                hint="Remove one of the dependencies.",
            )
        for entry in free:
            ordered.append(entry)
            del waiting[entry.name]
    return ordered


class JobWriter:
    """Builds request bodies, with names turned back into ids. `remember` adds jobs created on the way."""

    def __init__(self, names: Mapping[UUID, str], calendars: CalendarNames) -> None:
        self._ids: dict[str, UUID | str] = {name: job_id for job_id, name in names.items()}
        self._calendars: dict[str, UUID | str] = {
            name: calendar_id for calendar_id, name in calendars.items()
        }

    def remember(self, entry: JobEntry, job_id: UUID | str) -> None:
        self._ids[entry.name] = job_id

    def create_body(self, entry: JobEntry, marks: Iterable[str] = ()) -> dict[str, Any]:
        job = self._body(entry, entry.schedule)
        return {**job, "tags": [*job["tags"], *marks], "enabled": entry.enabled is not False}

    def replace_body(self, update: JobUpdate, marks: Iterable[str] | None = None) -> dict[str, Any]:
        """`marks` are the tags of files; by default the job keeps those that it has."""
        kept = update.job.schedule.model_dump(mode="json")
        job = self._body(update.entry, kept if update.keeps_schedule else update.entry.schedule)
        if marks is None:
            marks = [tag for tag in update.job.tags if tag.startswith(FILE_TAG)]
        enabled = {} if update.entry.enabled is None else {"enabled": update.entry.enabled}
        return {**job, "tags": [*job["tags"], *marks], **enabled}

    def _body(self, entry: JobEntry, schedule: Mapping[str, Any]) -> dict[str, Any]:
        wanted = entry.wanted
        edges = [
            {**edge, "job": str(self._ids.get(edge["job"], edge["job"]))} for edge in wanted["depends_on"]
        ]
        calendars = [str(self._calendars.get(each, each)) for each in wanted["calendars"]]
        owner = {} if entry.owner is None else {"owner": entry.owner}
        return {**wanted, **owner, "depends_on": edges, "calendars": calendars, "schedule": dict(schedule)}


def unique_names(jobs: Iterable[JobOut]) -> dict[UUID, str]:
    """Return the names that belong to one job only, by id."""
    by_name: dict[str, list[UUID]] = {}
    for job in jobs:
        by_name.setdefault(job.name, []).append(job.id)
    return {ids[0]: name for name, ids in by_name.items() if len(ids) == 1}


@dataclass(frozen=True, slots=True)
class SyncResult:
    """Names of jobs. `gone` exist on the server but no longer in the code; `refused` maps names to reasons."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    def checked(self) -> SyncResult:
        if self.refused:
            lines = "\n  ".join(f"{name}: {why}" for name, why in self.refused.items())
            raise Invalid("The server refused some jobs of the app.", code="invalid", hint=lines)
        return self
