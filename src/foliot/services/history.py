"""Reading the ledger: one run, its attempts, a job's history, what a workspace did last."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.run import effective_input
from foliot.services.in_hand import no_such
from foliot.storage import explaining, ledger
from foliot.storage.ledger import AttemptRecord, Bookmark, Filter, Page, RunRecord
from foliot.storage.tx import Database, Role, Tx

PAGE = 50
LONGEST_PAGE = 200
EVERYTHING = Filter()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PACKED = struct.Struct(">q16s")


@dataclass(frozen=True, slots=True)
class History:
    items: tuple[RunRecord, ...]
    next_cursor: str | None


async def run(database: Database, workspace_id: WorkspaceId, run_id: RunId) -> RunRecord:
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await ledger.one(tx, run_id)
        if found is None:
            raise no_such("run")
        [shown] = await with_inputs(tx, [found.run])
        return shown


async def attempts_of(
    database: Database, workspace_id: WorkspaceId, run_id: RunId
) -> tuple[AttemptRecord, ...]:
    async with database.tx(Role.APP, workspace_id) as tx:
        if await ledger.one(tx, run_id) is None:
            raise no_such("run")
        return await ledger.attempts(tx, run_id)


async def of_job(
    database: Database,
    workspace_id: WorkspaceId,
    job_id: JobId,
    wanted: Filter = EVERYTHING,
    *,
    cursor: str | None = None,
    limit: int = PAGE,
) -> History:
    after = read_cursor(cursor)
    async with database.tx(Role.APP, workspace_id) as tx:
        if not await explaining.names(tx, [job_id]):
            raise no_such("job")
        return await _history(tx, await ledger.of_job(tx, job_id, wanted, after, _fitting(limit)))


async def of_workspace(
    database: Database,
    workspace_id: WorkspaceId,
    wanted: Filter = EVERYTHING,
    *,
    cursor: str | None = None,
    limit: int = PAGE,
) -> History:
    after = read_cursor(cursor)
    async with database.tx(Role.APP, workspace_id) as tx:
        return await _history(tx, await ledger.of_workspace(tx, wanted, after, _fitting(limit)))


async def with_inputs(tx: Tx, runs: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """The same runs with what they work on. A run keeps only what it was given; the payload is its job's, as it was when it started."""
    payloads = await ledger.payloads(tx, {run.job_id for run in runs})
    return tuple(
        replace(
            run, input=effective_input(payloads[run.job_id].at(run.started_at or run.finished_at), run.input)
        )
        if run.job_id in payloads
        else run
        for run in runs
    )


def write_cursor(place: Bookmark) -> str:
    """URL-safe and opaque: eight bytes of microseconds, sixteen of the id."""
    microseconds = (place.planned_for - _EPOCH) // _MICROSECOND
    return urlsafe_b64encode(_PACKED.pack(microseconds, place.id.bytes)).decode()


def read_cursor(text: str | None) -> Bookmark | None:
    if text is None:
        return None
    try:
        microseconds, run_id = _PACKED.unpack(urlsafe_b64decode(text.encode("ascii")))
        planned_for = _EPOCH + _MICROSECOND * microseconds
    except (ValueError, OverflowError, struct.error) as error:
        raise Invalid(
            "This cursor is not one that Foliot gave out.",
            pointer="/cursor",
            hint="Use next_cursor of the page before, or leave it out to begin.",
        ) from error
    return Bookmark(planned_for, RunId(UUID(bytes=run_id)))


def _fitting(limit: int) -> int:
    if not 1 <= limit <= LONGEST_PAGE:
        raise Invalid(f"A page has 1 to {LONGEST_PAGE} items.", pointer="/limit")
    return limit


async def _history(tx: Tx, page: Page) -> History:
    shown = await with_inputs(tx, page.runs)
    return History(shown, None if page.next is None else write_cursor(page.next))
