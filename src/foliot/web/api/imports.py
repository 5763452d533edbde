"""/imports: jobs of other schedulers. Each record is a write of its own through the routes of jobs, so one bad record stops no other."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import quote

from fastapi import Request
from fastapi.exceptions import RequestValidationError

from foliot.clock import SystemClock
from foliot.domain.errors import Denied, FoliotError, ImportedAlready, Invalid, Unavailable
from foliot.importers.records import IMPORTED, BadRecordError, ImportedJob, ImportedRecords
from foliot.importers.sources import read_source
from foliot.services.identity.authentication import Caller
from foliot.web.api.writes import Writing
from foliot.web.auth import Editor
from foliot.web.errors import field_problems
from foliot.web.internal_calls import RouteCall, call_route
from foliot.web.routes import WITH_BODY, api_router, max_body_size
from foliot.wire.imports import LARGEST_IMPORT, MOST_RECORDS, ImportIn, ImportLine, ImportOut, ImportResult
from foliot.wire.jobs import JobStatus
from foliot.wire.shape import LONGEST_PAGE

log = logging.getLogger(__name__)
routes = api_router("imports")
REVIEW = "foliot jobs list --disabled"
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
    if len(records.jobs) > MOST_RECORDS:
        raise Invalid(
            f"This text holds {len(records.jobs)} records; one import takes {MOST_RECORDS}.",
            pointer="/text",
            hint="Import it in parts.",
        )
    importing = _Import(request, replace(caller, claim=None), given, is_plan=write.dry_run)
    lines = await importing.write(records)
    counts = {each: sum(line.result is each for line in lines) for each in ImportResult}
    if not write.dry_run:
        found = {each.value: count for each, count in counts.items()}
        log.info("jobs.imported", extra={"source": records.source, **found, "review": REVIEW})
    return ImportOut(source=records.source, planned=write.dry_run, counts=counts, records=lines)


@dataclass(frozen=True, slots=True)
class _Import:
    request: Request
    caller: Caller
    given: ImportIn
    is_plan: bool

    async def write(self, records: ImportedRecords) -> list[ImportLine]:
        existing = await self._existing(records.source)
        lines = [
            ImportLine(
                index=each.index,
                key=each.key,
                name="",
                result=ImportResult.REJECTED,
                notes=[each.reason],
                raw=each.raw,
            )
            for each in records.rejected
        ]
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
        if found is not None and found["external_ref"].get("digest") == job.digest:
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
                "notes": _reasons(error),
                "raw": job.body["external_ref"]["raw"],
            }
            return line.model_copy(update=rejected)
        return line.model_copy(update={**done, "notes": list(job.warnings)})

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


def _reasons(error: FoliotError | RequestValidationError) -> list[str]:
    if isinstance(error, RequestValidationError):
        return [f"{each['pointer']}: {each['message']}" for each in field_problems(error.errors())]
    return [part.message for part in error.parts or (error,)]
