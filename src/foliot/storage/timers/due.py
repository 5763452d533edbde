"""Due timers, and the plain way to fire them.

Most due timers are free and plan what their rules say from here on: one run now, another to follow. All jobs that share rules and
cursor write the same values then, so these are packed once, and such a timer crosses from one statement to the next as it came,
as bytes and numbers. Every other timer becomes a `TimerRow` and is planned by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from foliot.domain.ids import JobId, WorkspaceId
from foliot.storage.arrays import assembled, bigints, instant_of, raw_instant, raw_uuids, text_piece
from foliot.storage.jobs.job_types import Off
from foliot.storage.queries import sql
from foliot.storage.timers.fires import AlreadyRecordedError
from foliot.storage.timers.shared_fires import COLUMNS, shared_by
from foliot.storage.timers.timers import TimerRow, timer_row
from foliot.storage.tx import Tx

_IDS, _INSTANTS = (0, 1, 14), (6, 7, 8, 13, 16)  # places in a row of `take_due`
_WORKSPACE_ID, _JOB_ID, _SPEC, _VERSION, _CURSOR, _IS_FREE = 0, 1, 3, 5, 6, -1
_TYPE = list(COLUMNS).index("type")  # place in what a plain fire writes
NOTHING_OFF: Off = frozenset()

Raw = tuple[Any, ...]


class Plain(NamedTuple):
    """A timer that fires the plain way."""

    job_id: bytes
    version: int
    columns: tuple[bytes, ...]


async def take_due(tx: Tx, limit: int, zone_data: str) -> list[Raw]:
    """Due timers, locked: as they came, for `split`."""
    return await tx.fetch_raw(sql.timers.take_due, {"now": tx.now, "limit": limit, "zone_data": zone_data})


def earliest_cursor(taken: Sequence[Raw]) -> datetime:
    return instant_of(min(row[_CURSOR] for row in taken))


def jobs_of(taken: Sequence[Raw]) -> list[JobId]:
    return [JobId(UUID(bytes=row[_JOB_ID])) for row in taken]


def workspaces_of(taken: Sequence[Raw]) -> list[WorkspaceId]:
    return [WorkspaceId(UUID(bytes=each)) for each in {row[_WORKSPACE_ID] for row in taken}]


def split(
    taken: Sequence[Raw], now: datetime, *, may_be_plain: bool = True, off: Off = NOTHING_OFF
) -> tuple[list[Plain], list[TimerRow]]:
    """Those that fire the plain way, and the others, among which are the jobs of types that are switched off."""
    plain, others, instant = [], [], raw_instant(now)
    skipped = {(workspace_id.bytes, text_piece(kind)) for workspace_id, kind in off}
    for row in taken:
        if may_be_plain and row[_IS_FREE]:
            shared = shared_by(row[_SPEC], row[_CURSOR])
            if (
                shared
                and shared.due_at <= instant <= shared.late_after
                and instant < shared.following_at
                and not (skipped and (row[_WORKSPACE_ID], shared.columns[_TYPE]) in skipped)
            ):
                plain.append(Plain(row[_JOB_ID], row[_VERSION], shared.columns))
                continue
        others.append(row)
    return plain, [_timer_row(row) for row in others]


async def fire_plainly(tx: Tx, plain: Sequence[Plain]) -> int:
    """Move the timers and record their runs; answers with how many."""
    if not plain:
        return 0
    job_ids, versions, shared = zip(*plain, strict=True)
    params = {
        "job_id": raw_uuids(job_ids),
        "version": bigints(versions),
        "run_id": raw_uuids(tx.new_raw_ids(len(plain))),
        **assembled(COLUMNS, shared),
    }
    answer = await tx.fetch_one(sql.timers.fire_plainly, {**params, "now": tx.now})
    assert answer is not None
    assert answer["moved"] == len(plain), "a locked timer was moved by somebody else"
    if answer["recorded"] < len(plain):
        raise AlreadyRecordedError(
            f"{len(plain) - answer['recorded']} planned times have their record already"
        )
    return len(plain)


def _timer_row(raw: Raw) -> TimerRow:
    row = list(raw[:_IS_FREE])
    for place in _IDS:
        row[place] = row[place] and UUID(bytes=row[place])
    for place in _INSTANTS:
        row[place] = None if row[place] is None else instant_of(row[place])
    return timer_row(*row)
