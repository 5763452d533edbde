# Made from sdk/asynchronous by ./dev format; edit it there.
"""Update the jobs of a server to match an app: read, plan, write. A refused job does not stop the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from foliot.sdk.errors import Conflict, FoliotApiError, Unavailable
from foliot.sdk.sync.entries import JobEntry
from foliot.sdk.sync.plan import JobUpdate, JobWriter, SyncResult, needs_resolving, plan_sync, unique_names
from foliot.sdk.synchronous.client import Client
from foliot.wire.jobs import JobOut


class JobStore(Protocol):
    """The jobs of a workspace: behind the API, or, for a worker, in the database. Its errors are FoliotApiError."""

    def jobs(self) -> list[JobOut]: ...

    def calendars(self) -> Mapping[UUID, str]: ...

    def resolve_schedule(self, schedule: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schedule in full, with words resolved and the zone of the workspace filled in."""
        ...

    def create(self, job: Mapping[str, Any]) -> JobOut: ...

    def replace(self, job: JobOut, wanted: Mapping[str, Any], note: str) -> JobOut: ...


class ApiJobStore:
    def __init__(self, client: Client) -> None:
        self._client = client

    def jobs(self) -> list[JobOut]:
        return [job for job in self._client.jobs.each()]

    def calendars(self) -> Mapping[UUID, str]:
        return {calendar.id: calendar.name for calendar in self._client.calendars.each()}

    def resolve_schedule(self, schedule: Mapping[str, Any]) -> Mapping[str, Any]:
        return (self._client.preview(schedule, n=1)).schedule.model_dump(mode="json")

    def create(self, job: Mapping[str, Any]) -> JobOut:
        return self._client.jobs.create(job)

    def replace(self, job: JobOut, wanted: Mapping[str, Any], note: str) -> JobOut:
        return self._client.jobs.replace(job.id, wanted, revision=job.revision, note=note, force=True)


def sync(store: JobStore, app: str, entries: Sequence[JobEntry]) -> SyncResult:
    return Sync(store, app).run(entries)


class Sync:
    def __init__(self, store: JobStore, app: str) -> None:
        self._store = store
        self._app = app
        self._resolved: dict[str, Mapping[str, Any]] = {}
        self._refused: dict[str, str] = {}
        self._raced: set[str] = set()

    def run(self, entries: Sequence[JobEntry]) -> SyncResult:
        existing = self._store.jobs()
        names, calendars = unique_names(existing), self._store.calendars()
        self._refuse_others(entries, existing)
        for entry in entries:
            self._resolve(entry)
        mine = {job.name for job in existing if job.managed_by == self._app}
        found = plan_sync(
            [entry for entry in entries if entry.name not in self._refused],
            # A job that people created is adopted, unless the app has its own with that name.
            [job for job in existing if job.name in mine and job.managed_by == self._app]
            + [job for job in existing if job.name not in mine and not job.managed_by],
            names,
            calendars,
            resolve=lambda schedule: self._resolved[repr(schedule)],
            is_mine=lambda job: job.managed_by == self._app,
        )
        writer = JobWriter(names, calendars)
        for entry in found.create:
            self._create(entry, writer)
        for update in found.update:
            self._replace(update, writer)
        return SyncResult(
            self._settled_names(entry.name for entry in found.create),
            self._settled_names(update.entry.name for update in found.update),
            self._settled_names(job.name for job in found.same),
            self._settled_names(job.name for job in found.gone),
            self._refused,
        )

    def _settled_names(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in self._refused and name not in self._raced)

    def _refuse_others(self, entries: Sequence[JobEntry], existing: Sequence[JobOut]) -> None:
        for job in existing:
            if job.managed_by not in (None, self._app):
                self._refused |= {
                    entry.name: f"the app {job.managed_by} has a job with this name."
                    for entry in entries
                    if entry.name == job.name
                }

    def _resolve(self, entry: JobEntry) -> None:
        if entry.name in self._refused or not needs_resolving(entry.schedule):
            return
        try:
            whole = self._resolved[repr(entry.schedule)] = self._store.resolve_schedule(entry.schedule)
        except FoliotApiError as error:
            self._refuse(entry, error)
            return
        if whole["kind"] == "once":
            self._refused[entry.name] = "these words mean a different time every day; use at= instead."

    def _create(self, entry: JobEntry, writer: JobWriter) -> None:
        if lacking := [each for each in entry.upstreams if each in self._refused]:
            self._refused[entry.name] = f"it depends on {lacking[0]}, which was refused."
            return
        try:
            writer.remember(entry, (self._store.create(writer.create_body(entry))).id)
        except Conflict as error:
            if error.code != "managed_by_code":
                self._refuse(entry, error)
                return
            self._raced.add(entry.name)  # another worker of this app created it first
            for job in self._store.jobs():
                if job.name == entry.name and job.managed_by == self._app:
                    writer.remember(entry, job.id)
        except FoliotApiError as error:
            self._refuse(entry, error)

    def _replace(self, update: JobUpdate, writer: JobWriter) -> None:
        note = f"Changed by the code of {self._app}."
        try:
            self._store.replace(update.job, writer.replace_body(update), note)
        except FoliotApiError as error:
            self._refuse(update.entry, error)

    def _refuse(self, entry: JobEntry, error: FoliotApiError) -> None:
        if isinstance(error, Unavailable):
            raise error
        self._refused[entry.name] = str(error)
