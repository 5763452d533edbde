# Made from sdk/asynchronous by ./dev format; edit it there.
"""Making the jobs of a server what an app says: read, plan, write. One job that is refused stops no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from foliot.sdk.errors import Conflict, FoliotApiError, Unavailable
from foliot.sdk.sync.entries import Entry
from foliot.sdk.sync.plan import Update, must_be_settled, plan
from foliot.sdk.sync.result import Synced
from foliot.sdk.sync.writes import Writing, names_of
from foliot.sdk.synchronous.client import Client
from foliot.wire.jobs import JobOut


class Books(Protocol):
    """Where the jobs are: behind the API, or, for a worker, right in the database. Refusals are of FoliotApiError."""

    def jobs(self) -> list[JobOut]: ...

    def calendars(self) -> Mapping[UUID, str]: ...

    def settle(self, schedule: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schedule in full: what its words mean, in the zone of the workspace where it names none."""
        ...

    def create(self, job: Mapping[str, Any]) -> JobOut: ...

    def replace(self, job: JobOut, wanted: Mapping[str, Any], note: str) -> JobOut: ...


class ClientBooks:
    def __init__(self, client: Client) -> None:
        self._client = client

    def jobs(self) -> list[JobOut]:
        return [job for job in self._client.jobs.each()]

    def calendars(self) -> Mapping[UUID, str]:
        return {calendar.id: calendar.name for calendar in self._client.calendars.each()}

    def settle(self, schedule: Mapping[str, Any]) -> Mapping[str, Any]:
        return (self._client.preview(schedule, n=1)).schedule.model_dump(mode="json")

    def create(self, job: Mapping[str, Any]) -> JobOut:
        return self._client.jobs.create(job)

    def replace(self, job: JobOut, wanted: Mapping[str, Any], note: str) -> JobOut:
        return self._client.jobs.replace(job.id, wanted, revision=job.revision, note=note, force=True)


def sync(books: Books, app: str, entries: Sequence[Entry]) -> Synced:
    return Sync(books, app).run(entries)


class Sync:
    def __init__(self, books: Books, app: str) -> None:
        self._books = books
        self._app = app
        self._settled: dict[str, Mapping[str, Any]] = {}
        self._refused: dict[str, str] = {}
        self._met: set[str] = set()

    def run(self, entries: Sequence[Entry]) -> Synced:
        there = self._books.jobs()
        names, calendars = names_of(there), self._books.calendars()
        self._refuse_others(entries, there)
        for entry in entries:
            self._settle(entry)
        mine = {job.name for job in there if job.managed_by == self._app}
        found = plan(
            [entry for entry in entries if entry.name not in self._refused],
            # One that people made is taken over, unless the app has its own of that name.
            [job for job in there if job.name in mine and job.managed_by == self._app]
            + [job for job in there if job.name not in mine and not job.managed_by],
            names,
            calendars,
            settle=lambda schedule: self._settled[repr(schedule)],
            is_mine=lambda job: job.managed_by == self._app,
        )
        writing = Writing(names, calendars)
        for entry in found.create:
            self._create(entry, writing)
        for update in found.update:
            self._replace(update, writing)
        return Synced(
            self._taken(entry.name for entry in found.create),
            self._taken(update.entry.name for update in found.update),
            self._taken(job.name for job in found.same),
            self._taken(job.name for job in found.gone),
            self._refused,
        )

    def _taken(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in self._refused and name not in self._met)

    def _refuse_others(self, entries: Sequence[Entry], there: Sequence[JobOut]) -> None:
        for job in there:
            if job.managed_by not in (None, self._app):
                self._refused |= {
                    entry.name: f"a job of this name belongs to the app {job.managed_by}."
                    for entry in entries
                    if entry.name == job.name
                }

    def _settle(self, entry: Entry) -> None:
        if entry.name in self._refused or not must_be_settled(entry.schedule):
            return
        try:
            whole = self._settled[repr(entry.schedule)] = self._books.settle(entry.schedule)
        except FoliotApiError as error:
            self._refuse(entry, error)
            return
        if whole["kind"] == "once":
            self._refused[entry.name] = "these words mean another time on each day; name it with at=."

    def _create(self, entry: Entry, writing: Writing) -> None:
        if lacking := [each for each in entry.upstreams if each in self._refused]:
            self._refused[entry.name] = f"it depends on {lacking[0]}, which was refused."
            return
        try:
            writing.created(entry, (self._books.create(writing.creation(entry))).id)
        except Conflict as error:
            if error.code != "managed_by_code":
                self._refuse(entry, error)
                return
            self._met.add(entry.name)  # another worker of this app was faster
            for job in self._books.jobs():
                if job.name == entry.name and job.managed_by == self._app:
                    writing.created(entry, job.id)
        except FoliotApiError as error:
            self._refuse(entry, error)

    def _replace(self, update: Update, writing: Writing) -> None:
        note = f"The code of {self._app} says so."
        try:
            self._books.replace(update.job, writing.replacement(update), note)
        except FoliotApiError as error:
            self._refuse(update.entry, error)

    def _refuse(self, entry: Entry, error: FoliotApiError) -> None:
        if isinstance(error, Unavailable):
            raise error
        self._refused[entry.name] = str(error)
