"""What to send for each entry of a plan: names made ids again, marks of files kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from foliot.sdk.sync.entries import MARKER, Entry
from foliot.sdk.sync.plan import Update
from foliot.wire.jobs import JobOut


class Writing:
    """Knows the ids of jobs and calendars by name; what is created on the way is told to it."""

    def __init__(self, names: Mapping[UUID, str], calendars: Mapping[UUID, str]) -> None:
        self._ids = {name: job_id for job_id, name in names.items()}
        self._calendars = {name: calendar_id for calendar_id, name in calendars.items()}

    def created(self, entry: Entry, job_id: UUID) -> None:
        self._ids[entry.name] = job_id

    def creation(self, entry: Entry, marks: Iterable[str] = ()) -> dict[str, Any]:
        job = self._body(entry, entry.schedule)
        return {**job, "tags": [*job["tags"], *marks], "enabled": entry.enabled}

    def replacement(self, update: Update) -> dict[str, Any]:
        kept = update.job.schedule.model_dump(mode="json")
        job = self._body(update.entry, kept if update.keeps_schedule else update.entry.schedule)
        marks = [tag for tag in update.job.tags if tag.startswith(MARKER)]
        return {**job, "tags": [*job["tags"], *marks]}

    def _body(self, entry: Entry, schedule: Mapping[str, Any]) -> dict[str, Any]:
        wanted = entry.wanted
        edges = [
            {**edge, "job": str(self._ids.get(edge["job"], edge["job"]))} for edge in wanted["depends_on"]
        ]
        rooms = [str(self._calendars.get(each, each)) for each in wanted["calendars"]]
        return {**wanted, "depends_on": edges, "calendars": rooms, "schedule": dict(schedule)}


def names_of(jobs: Iterable[JobOut]) -> dict[UUID, str]:
    """Only names that mean one job: others stay ids."""
    by_name: dict[str, list[UUID]] = {}
    for job in jobs:
        by_name.setdefault(job.name, []).append(job.id)
    return {ids[0]: name for name, ids in by_name.items() if len(ids) == 1}
