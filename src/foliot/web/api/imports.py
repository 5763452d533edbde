"""/imports: jobs of other schedulers. Each record is a write of its own through the routes of jobs, so one bad record stops no other."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import quote
from uuid import UUID

from fastapi import Request
from fastapi.exceptions import RequestValidationError

from foliot.clock import SystemClock
from foliot.domain.errors import Denied, FoliotError, ImportedAlready, Invalid, Unavailable
from foliot.domain.ids import JobId, RunId
from foliot.importers.records import (
    IMPORTED,
    BadRecordError,
    HistoryLine,
    ImportedHistory,
    ImportedJob,
    ImportedRecords,
    RejectedRecord,
)
from foliot.importers.sources import read_source
from foliot.services import Database
from foliot.services.identity.authentication import Caller
from foliot.services.runs import past_runs
from foliot.web.api.imported_rules import RuleWriter, reasons_of
from foliot.web.api.writes import Write, Writing
from foliot.web.auth import Editor
from foliot.web.internal_calls import RouteCall, call_route
from foliot.web.routes import WITH_BODY, api_router, max_body_size
from foliot.wire.imports import (
    LARGEST_IMPORT,
    MOST_RECORDS,
    MOST_RUNS,
    ImportIn,
    ImportLine,
    ImportOut,
    ImportResult,
)
from foliot.wire.jobs import JobStatus
from foliot.wire.shape import LONGEST_PAGE

log = logging.getLogger(__name__)
routes = api_router("imports")
REVIEWS = {
    "jobs.imported": "foliot jobs list --disabled",
    "runs.imported": "foliot runs list trigger:import",
}
RUNS_OF = "openclaw"  # the source of the jobs whose runs an import records
NEXT_TIMES = 3  # of each record in a dry run
NOTE = "imported again"  # of the revision that an import writes


@routes.post("/imports", responses=WITH_BODY)
@max_body_size(2 * LARGEST_IMPORT)
async def import_jobs(given: ImportIn, caller: Editor, request: Request, write: Writing) -> ImportOut:
    """Import jobs of another scheduler. They arrive disabled, or with `shadow` in shadow mode; the original stands in `external_ref`.

    Importing the same text again changes nothing. A record that cannot be read is named with its reason and stops no other.
    """
    try:
        records = await asyncio.to_thread(read_source, given, (write.db.clock or SystemClock()).now())
    except BadRecordError as error:
        raise Invalid(str(error), pointer="/text") from None
    importing = _Import(request, replace(caller, claim=None), given, write)
    if isinstance(records, ImportedHistory):
        _check_count(len(records.lines) + len(records.rejected), MOST_RUNS)
        lines = await importing.record(records)
    else:
        _check_count(len(records.jobs) + len(records.rejected), MOST_RECORDS)
        lines = await importing.write_jobs(records)
    counts = {each: sum(line.result is each for line in lines) for each in ImportResult}
    if not write.dry_run:
        found = {each.value: count for each, count in counts.items()}
        event = "runs.imported" if isinstance(records, ImportedHistory) else "jobs.imported"
        log.info(event, extra={"source": records.source, **found, "review": REVIEWS[event]})
    return ImportOut(source=records.source, planned=write.dry_run, counts=counts, records=lines)


@dataclass(frozen=True, slots=True)
class _Import:
    request: Request
    caller: Caller
    given: ImportIn
    write: Write

    @property
    def is_plan(self) -> bool:
        return self.write.dry_run

    async def write_jobs(self, records: ImportedRecords) -> list[ImportLine]:
        existing = await self._existing(records.source)
        lines = [_rejected(each) for each in records.rejected]
        lines += [await self._write_one(job, existing.get(job.key)) for job in records.jobs]
        return sorted(lines, key=lambda each: each.index)

    async def _write_one(self, job: ImportedJob, found: dict[str, Any] | None) -> ImportLine:
        line = ImportLine(
            index=job.index,
            key=job.key,
            name=job.name if found is None else found["name"],
            result=ImportResult.UNCHANGED,
            job_id=None if found is None else found["id"],
            schedule=dict(job.body["schedule"]),
        )
        if self.is_plan:
            line = await self._with_times(line)
        if found is not None and found["external_ref"].get("digest") == job.digest:
            await self._copy_state(job, found["id"])
            return line
        if found is not None and not self.given.update and await self._is_edited(found):
            note = "It was edited here; `update` overwrites it."
            return line.model_copy(update={"result": ImportResult.SKIPPED, "notes": [note]})
        try:
            done = await self._save(job, found)
        except (Unavailable, Denied):
            raise  # not the record's fault
        except ImportedAlready:
            if found is not None:
                raise
            existing = await self._existing(job.body["external_ref"]["source"])  # another import was faster
            return await self._write_one(job, existing[job.key])
        except (FoliotError, RequestValidationError) as error:
            rejected = {
                "result": ImportResult.REJECTED,
                "notes": reasons_of(error),
                "raw": job.body["external_ref"]["raw"],
            }
            return line.model_copy(update=rejected)
        job_id = found["id"] if found is not None else done["job_id"]
        await self._copy_state(job, job_id)
        notes = await RuleWriter(self._call, self.is_plan).add(line.name, job_id, job.rules)
        return line.model_copy(update={**done, "notes": [*job.warnings, *notes]})

    async def _with_times(self, line: ImportLine) -> ImportLine:
        """Add the sentence and the next times; a schedule that cannot be read is refused with the job."""
        call = RouteCall("POST", f"/preview?n={NEXT_TIMES}", line.schedule)
        try:
            shown = (await call_route(self.request, call, self.caller)).data
        except (Invalid, RequestValidationError):
            return line
        times = [each["planned_for"] for each in shown["items"]]
        return ImportLine.model_validate({**line.model_dump(), "words": shown["words"], "next_times": times})

    async def _copy_state(self, job: ImportedJob, job_id: str | None) -> None:
        """Copy it also into an unchanged job: an import may have ended between the job and its state."""
        if job.state is not None and job_id is not None and not self.is_plan:
            await past_runs.copy_state(self.write.db, self.caller.scope, JobId(UUID(job_id)), job.state)

    async def record(self, history: ImportedHistory) -> list[ImportLine]:
        """Record the runs of jobs that were imported before, those of each job in one transaction."""
        existing = await self._existing(RUNS_OF)
        found = [_rejected(each) for each in history.rejected]
        by_job: dict[str, list[HistoryLine]] = {}
        for line in history.lines:
            by_job.setdefault(line.key, []).append(line)
        for key, lines in by_job.items():
            job = existing.get(key)
            if job is None:
                reason = f"No job of the id {key} was imported: import the jobs first."
                found += [_rejected(RejectedRecord(line.index, key, reason)) for line in lines]
            else:
                found += await self._record_runs(job, lines)
        return sorted(found, key=lambda each: each.index)

    async def _record_runs(self, job: dict[str, Any], lines: list[HistoryLine]) -> list[ImportLine]:
        job_id = JobId(UUID(job["id"]))

        async def verb(db: Database) -> frozenset[RunId]:
            runs = [line.run for line in lines]
            return await past_runs.record_runs(db, self.caller.scope, job_id, runs, self.given.source.value)

        new = set(await (self.write.roll_back(verb) if self.is_plan else verb(self.write.db)))
        found = []
        for line in lines:
            run_id = line.run.id_for(job_id)
            result = ImportResult.IMPORTED if run_id in new else ImportResult.UNCHANGED
            new.discard(run_id)  # the same line once more
            found.append(
                ImportLine(index=line.index, key=line.key, name=job["name"], result=result, job_id=job["id"])
            )
        return found

    async def _save(self, job: ImportedJob, found: dict[str, Any] | None) -> dict[str, Any]:
        body = dict(job.body)
        if found is None:
            if self.given.shadow:
                body |= {"enabled": True, "shadow": True}
            made = await self._call("POST", "/jobs", body)
            return {"result": ImportResult.IMPORTED, "job_id": None if self.is_plan else made["id"]}
        body.pop("enabled")  # what a person decided stays
        await self._call("PATCH", f"/jobs/{found['id']}?revision_note={quote(NOTE)}", body, if_match="*")
        return {"result": ImportResult.UPDATED}

    async def _existing(self, source: str) -> dict[str, dict[str, Any]]:
        """Return the jobs of earlier imports from this source, by the key of their record."""
        statuses = "&".join(f"status={each}" for each in get_args(JobStatus))
        found: dict[str, dict[str, Any]] = {}
        cursor = ""
        while True:
            path = f"/jobs?tag={IMPORTED}&{statuses}&limit={LONGEST_PAGE}{cursor}"
            answer = await self._call("GET", path)
            for job in answer["items"]:
                ref = job.get("external_ref") or {}
                if ref.get("source") == source:
                    found[str(ref.get("id"))] = job
            if answer["next_cursor"] is None:
                return found
            cursor = f"&cursor={quote(answer['next_cursor'])}"

    async def _is_edited(self, job: dict[str, Any]) -> bool:
        if job["revision"] == 1:
            return False
        newest = await self._call("GET", f"/jobs/{job['id']}/revisions?limit=1")
        return bool(newest["items"][0]["note"] != NOTE)

    async def _call(self, method: str, path: str, body: Any = None, if_match: str | None = None) -> Any:
        if self.is_plan and method != "GET":
            path += ("&" if "?" in path else "?") + "dry_run=true"
        call = RouteCall(method, path, body, if_match)
        return (await call_route(self.request, call, self.caller)).data


def _check_count(count: int, most: int) -> None:
    if count > most:
        raise Invalid(
            f"This text holds {count} records; one import takes {most}.",
            pointer="/text",
            hint="Import it in parts.",
        )


def _rejected(record: RejectedRecord) -> ImportLine:
    return ImportLine(
        index=record.index,
        key=record.key,
        name="",
        result=ImportResult.REJECTED,
        notes=[record.reason],
        raw=record.raw,
    )
