"""The changes that `foliot apply` writes: the plan of jobs with that of calendars, limits and rooms, as one batch.

Why: docs/decisions/804-jobs-as-a-file.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import UUID

from foliot.cli.job_file import JobFile
from foliot.sdk.sync.entries import FILE_TAG
from foliot.sdk.sync.plan import JobChange, JobUpdate, JobWriter, SyncPlan, differences
from foliot.wire.calendars import CalendarIn, CalendarOut
from foliot.wire.fleet import LimitIn, LimitOut
from foliot.wire.jobs import JobOut
from foliot.wire.rooms import RoomIn, RoomOut

Write = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One write of the batch; `section` and `index` are its place in the file, where it has one."""

    body: Write
    label: str
    section: str | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class ThingChange:
    """A calendar, limit or room that the file creates or changes. `changes` is empty for a new one."""

    noun: str
    name: str
    write: PlannedWrite
    changes: tuple[JobChange, ...] = ()


@dataclass(frozen=True, slots=True)
class FilePlan:
    jobs: SyncPlan
    things: tuple[ThingChange, ...]
    same_things: int
    restored: Mapping[str, JobOut] = field(default_factory=dict)  # archived jobs of this set, by name

    @property
    def changes_nothing(self) -> bool:
        return self.jobs.changes_nothing and not self.things


@dataclass(slots=True)
class ThingPlanner:
    """Compares calendars, limits and rooms of the file with those of the server."""

    changes: list[ThingChange] = field(default_factory=list)
    same: int = 0
    calendars: dict[UUID | str, str] = field(default_factory=dict)  # names by id, or by ref for new ones

    def add_calendars(self, wanted: Sequence[CalendarIn], existing: Iterable[CalendarOut]) -> None:
        known = {each.name: each for each in existing}
        self.calendars |= {each.id: each.name for each in known.values()}
        for index, calendar in enumerate(wanted):
            body = calendar.model_dump(mode="json")
            before = known.get(calendar.name)
            if before is None:
                ref = f"@calendar-{index}"
                self.calendars[ref] = calendar.name
                self._create("calendar", calendar.name, _post("/calendars", body, ref), index)
                continue
            stored = before.model_dump(mode="json", include=set(CalendarIn.model_fields))
            body["timezone"] = body["timezone"] or stored["timezone"]
            write = {
                "method": "PUT",
                "path": f"/calendars/{before.id}",
                "body": body,
                "if_match": f'"{before.revision}"',
            }
            self._change("calendar", calendar.name, write, index, differences(stored, body))

    def add_limits(self, wanted: Sequence[LimitIn], existing: Iterable[LimitOut]) -> None:
        known = {each.key: each.cap for each in existing}
        for index, limit in enumerate(wanted):
            write = {"method": "PUT", "path": "/limits", "body": limit.model_dump(mode="json")}
            name = limit.key or "the whole workspace"
            if limit.key not in known:
                self._create("limit", name, write, index)
            else:
                self._change("limit", name, write, index, differences(known[limit.key], limit.cap, "/cap"))

    def add_rooms(self, wanted: Sequence[RoomIn], existing: Iterable[RoomOut]) -> None:
        known: dict[str | None, RoomOut] = {each.key: each for each in existing if each.key is not None}
        for index, room in enumerate(wanted):
            body = room.model_dump(mode="json")
            before = known.get(room.key)
            if before is None:
                self._create("room", room.key or room.name, _post("/rooms", body), index)
                continue
            stored = before.model_dump(mode="json", include={"name", "agents", "webhook"})
            if stored["webhook"] is not None:
                stored["webhook"] = {name: stored["webhook"][name] for name in ("url", "secret")}
            found = tuple(differences(stored, {name: body[name] for name in stored}))
            changed = {each.pointer.split("/")[1] for each in found}
            write = {
                "method": "PATCH",
                "path": f"/rooms/{before.id}",
                "body": {name: body[name] for name in stored if name in changed},
            }
            self._change("room", room.key or room.name, write, index, found)

    def _create(self, noun: str, name: str, write: Write, index: int) -> None:
        self.changes.append(ThingChange(noun, name, _placed(noun, name, write, index)))

    def _change(self, noun: str, name: str, write: Write, index: int, changes: Iterable[JobChange]) -> None:
        found = tuple(changes)
        if not found:
            self.same += 1
        else:
            self.changes.append(ThingChange(noun, name, _placed(noun, name, write, index), found))


@dataclass(frozen=True, slots=True)
class WriteOptions:
    note: str | None = None
    force: bool = False
    prune: bool = False


def batch_of(file: JobFile, plan: FilePlan, writer: JobWriter, options: WriteOptions) -> list[PlannedWrite]:
    """Return the writes in the order of dependence: things, new jobs with upstream jobs first, changes, then archived jobs."""
    places = {entry.name: index for index, entry in enumerate(file.jobs)}
    writes = [each.write for each in plan.things]
    for entry in plan.jobs.create:
        index = places[entry.name]
        archived = plan.restored.get(entry.name)
        if archived is None:
            ref = f"@job-{index}"
            write = _post("/jobs", writer.create_body(entry, file.marks), ref)
            writes.append(PlannedWrite(write, entry.name, "jobs", index))
            writer.remember(entry, ref)
            continue
        steps: list[Write] = [_post(f"/jobs/{archived.id}/restore")]
        body = writer.create_body(entry, file.marks)
        del body["enabled"]
        steps.append({"method": "PUT", "path": _edit_path(archived.id, options), "body": body})
        if entry.enabled is not False:
            steps.append(_post(f"/jobs/{archived.id}/resume"))
        writes += [PlannedWrite(step, entry.name, "jobs", index) for step in steps]
        writer.remember(entry, archived.id)
    for update in sorted(
        plan.jobs.update, key=lambda each: each.job.id
    ):  # the order in which others lock them
        writes.append(_replacement(file, update, writer, options, places[update.entry.name]))
    if options.prune:
        writes += [
            PlannedWrite({"method": "DELETE", "path": f"/jobs/{job.id}"}, job.name)
            for job in downstream_first(plan.jobs.gone)
        ]
    return writes


def foreign_set(job: JobOut, file: JobFile) -> str | None:
    """Return the set of another file that the job belongs to."""
    sets = [tag for tag in job.tags if tag.startswith(FILE_TAG)]
    return None if not sets or file.marker in sets else sets[0].removeprefix(FILE_TAG)


def downstream_first(jobs: Sequence[JobOut]) -> list[JobOut]:
    """Order jobs so that none is archived while another one of them depends on it."""
    left = {job.id: job for job in jobs}
    ordered: list[JobOut] = []
    while left:
        needed = {edge.job for job in left.values() for edge in job.depends_on}
        free = [job for job in left.values() if job.id not in needed] or list(left.values())
        ordered += free
        for job in free:
            del left[job.id]
    return ordered


def _replacement(
    file: JobFile, update: JobUpdate, writer: JobWriter, options: WriteOptions, index: int
) -> PlannedWrite:
    is_foreign = foreign_set(update.job, file) is not None
    marks = file.marks if is_foreign else None  # only with --force: the job moves to this set
    write = {
        "method": "PUT",
        "path": _edit_path(update.job.id, options),
        "body": writer.replace_body(update, marks),
        "if_match": f'"{update.job.revision}"',
    }
    return PlannedWrite(write, update.entry.name, "jobs", index)


def _edit_path(job_id: UUID, options: WriteOptions) -> str:
    query = [f"revision_note={quote(options.note)}"] if options.note else []
    query += ["force=true"] if options.force else []
    return f"/jobs/{job_id}" + (f"?{'&'.join(query)}" if query else "")


def _placed(noun: str, name: str, write: Write, index: int) -> PlannedWrite:
    return PlannedWrite(write, name, f"{noun}s", index)


def _post(path: str, body: Any = None, ref: str | None = None) -> Write:
    write: Write = {"method": "POST", "path": path}
    return write | ({} if body is None else {"body": body}) | ({} if ref is None else {"ref": ref})
