"""Due timers, and the plain way to fire them.

Most due timers are free and plan what their rules say from here on: one run now, another to follow. All jobs that share rules and
cursor write the same values then, so these are packed once, and such a timer crosses from one statement to the next as it came,
as bytes and numbers. Every other timer becomes a `TimerRow` and is planned by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from foliot.domain.definition import Rules
from foliot.domain.ordinary import ordinary_step
from foliot.domain.records import NewRun, Step
from foliot.storage.arrays import (
    Packer,
    assembled,
    bigints,
    booleans,
    durations,
    instant_of,
    instant_piece,
    instants,
    pieces,
    raw_instant,
    raw_uuids,
    raw_wall_time,
    smallint_piece,
    smallints,
    texts,
    wall_times,
)
from foliot.storage.definitions import has_own_rules, rules_of
from foliot.storage.queries import sql
from foliot.storage.timers import PlannedTwice, TimerRow, timer_row
from foliot.storage.tx import Tx

log = logging.getLogger(__name__)

# What a plain fire writes beside ids and version: the times, then where the run goes to.
_TIMES: dict[str, Packer] = {
    "due_at": instants, "planned_for": instants, "available_at": instants, "planned_key": wall_times, "fold": smallints,
}  # fmt: skip
_PLACE: dict[str, Packer] = {
    "queue": texts, "type": texts, "priority": smallints, "exclusive": booleans, "concurrency_key": texts, "timeout": durations,
}  # fmt: skip
_SHARED = _TIMES | _PLACE
_REMEMBERED = 4  # cursors of one set of rules
_IDS, _INSTANTS = (0, 1, 14), (6, 7, 8, 13, 16)  # places in a row of `take_due`
_JOB_ID, _SPEC, _VERSION, _CURSOR, _IS_FREE = 1, 3, 5, 6, -1

Raw = tuple[Any, ...]


class Shared(NamedTuple):
    """What jobs with the same rules and cursor write, and between which instants they may."""

    due_at: int
    late_after: int
    following_at: int
    columns: tuple[bytes, ...]


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


def split(
    taken: Sequence[Raw], now: datetime, *, may_be_plain: bool = True
) -> tuple[list[Plain], list[TimerRow]]:
    """Those that fire the plain way, and the others."""
    plain, others, instant = [], [], raw_instant(now)
    for row in taken:
        if may_be_plain and row[_IS_FREE]:
            cursor = row[_CURSOR]
            known = _known(row[_SPEC])
            shared = known[cursor] if cursor in known else _learn(known, row[_SPEC], cursor)
            if shared and shared.due_at <= instant <= shared.late_after and instant < shared.following_at:
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
        **assembled(_SHARED, shared),
    }
    answer = await tx.fetch_one(sql.timers.fire_plainly, {**params, "now": tx.now})
    assert answer is not None
    assert answer["moved"] == len(plain), "a locked timer was moved by somebody else"
    if answer["recorded"] < len(plain):
        raise PlannedTwice(f"{len(plain) - answer['recorded']} planned times have their record already")
    return len(plain)


Known = dict[int, Shared | None]


def _known(spec: str) -> Known:
    """Rules that no other job has are not worth remembering."""
    return {} if has_own_rules(spec) else _remembered(spec)


@lru_cache(maxsize=50_000)
def _remembered(_: str) -> Known:
    return {}


def _learn(known: Known, spec: str, cursor: int) -> Shared | None:
    if len(known) >= _REMEMBERED:
        known.clear()
    try:
        rules = rules_of(spec)
        step = ordinary_step(rules, instant_of(cursor))
        shared = known[cursor] = None if step is None else _shared(rules, step)
    except Exception:  # planning by itself will fail too, and there it is recorded
        log.debug("timer.not_plain", exc_info=True)
        return None
    return shared


def _shared(rules: Rules, step: Step) -> Shared:
    spec, (run,) = rules.spec, step.plan.records
    assert isinstance(run, NewRun)
    planned = run.planned
    due_at, following_at = raw_instant(step.due_at), raw_instant(step.following_at)
    place = _place(
        spec.queue, spec.type, spec.priority, rules.is_exclusive, spec.concurrency_key, spec.limits.timeout
    )
    times = (
        instant_piece(following_at), instant_piece(raw_instant(planned.planned_for)), instant_piece(due_at),
        instant_piece(raw_wall_time(planned.local)), smallint_piece(planned.fold),
    )  # fmt: skip
    return Shared(due_at, raw_instant(step.late_after), following_at, times + place)


@lru_cache(maxsize=1_024)
def _place(*values: Any) -> tuple[bytes, ...]:
    return pieces(_PLACE, values)


def _timer_row(raw: Raw) -> TimerRow:
    row = list(raw[:_IS_FREE])
    for place in _IDS:
        row[place] = row[place] and UUID(bytes=row[place])
    for place in _INSTANTS:
        row[place] = None if row[place] is None else instant_of(row[place])
    return timer_row(*row)
