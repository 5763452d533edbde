"""What plain fires write, packed once for all jobs that share it and remembered.

Jobs with the same rules and the same cursor write the same times. Intervals count from their own creation and share nothing but their
rhythm: seen from the cursor, all that have one pace and stand at the same phase of it write the same times.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from foliot.domain.definition import Rules
from foliot.domain.planning.fast_path import shared_plan_at
from foliot.domain.run_plan import NewRun, SharedPlan
from foliot.domain.schedule import Interval
from foliot.storage.arrays import (
    Packer,
    booleans,
    durations,
    instant_of,
    instant_piece,
    instants,
    pieces,
    raw_instant,
    raw_wall_time,
    smallint_piece,
    smallints,
    texts,
    wall_times,
)
from foliot.storage.jobs.definitions import apart_from_anchor, rules_of

log = logging.getLogger(__name__)

_PLACE: dict[str, Packer] = {
    "queue": texts, "type": texts, "priority": smallints, "exclusive": booleans, "concurrency_key": texts, "timeout": durations,
}  # fmt: skip
COLUMNS: dict[str, Packer] = {
    "due_at": instants, "planned_for": instants, "available_at": instants, "planned_key": wall_times, "fold": smallints,
    **_PLACE,
}  # fmt: skip
_REMEMBERED = 4  # cursors of one set of rules, phases of one rhythm
_MICROSECOND = timedelta(microseconds=1)
_FAR = raw_instant(datetime(9000, 1, 1, tzinfo=UTC))  # where the calendar ends, no rhythm goes on
_NO_FOLD = smallint_piece(0)


class Shared(NamedTuple):
    """What is written, as `COLUMNS` names it, and between which instants that holds."""

    due_at: int
    late_after: int
    following_at: int
    columns: tuple[bytes, ...]


def shared_by(spec: str, cursor: int) -> Shared | None:
    """What a free timer with these rules writes from here on; None where that takes more than its rules and cursor."""
    apart = apart_from_anchor(spec)
    if apart is not None and cursor < _FAR:
        others, anchor = apart
        rhythm = _rhythm(others)
        if rhythm is not None and anchor <= (at := instant_of(cursor)):
            return rhythm.shared(spec, cursor, (at - anchor) // _MICROSECOND % rhythm.every)
    known = _known(spec) if apart is None else {}
    return known[cursor] if cursor in known else _learn(known, cursor, spec, cursor)


def worked_out(spec: str, cursor: int) -> Shared | None:
    """The same without any memory."""
    rules = rules_of(spec)
    step = shared_plan_at(rules, instant_of(cursor))
    return None if step is None else _packed(rules, step)


class _Rhythm:
    """Of intervals that differ in their anchor alone. What is known of a phase is counted from the cursor."""

    __slots__ = ("_known", "every")

    def __init__(self, every: int) -> None:
        self.every = every
        self._known: dict[int, Shared | None] = {}

    def shared(self, spec: str, cursor: int, phase: int) -> Shared | None:
        known = self._known
        seen = known[phase] if phase in known else self._seen_from(spec, cursor, phase)
        if seen is None:
            return None
        due_at, following_at = cursor + seen.due_at, cursor + seen.following_at
        due, following = instant_piece(due_at), instant_piece(following_at)
        # An interval has no local time of its own: its planned time is due as it stands, and is its own name.
        return Shared(
            due_at,
            cursor + seen.late_after,
            following_at,
            (following, due, due, due, _NO_FOLD, *seen.columns),
        )

    def _seen_from(self, spec: str, cursor: int, phase: int) -> Shared | None:
        found = _learn({}, cursor, spec, cursor)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        seen = None
        if found is not None:
            place = found.columns[len(COLUMNS) - len(_PLACE) :]
            seen = Shared(
                found.due_at - cursor, found.late_after - cursor, found.following_at - cursor, place
            )
        self._known[phase] = seen
        return seen


@lru_cache(maxsize=50_000)
def _known(_: str) -> dict[int, Shared | None]:
    return {}


@lru_cache(maxsize=4_096)
def _rhythm(others: str) -> _Rhythm | None:
    rules = rules_of(others)
    spec, schedule = rules.spec, rules.spec.schedule
    if not isinstance(schedule, Interval) or not rules.are_ordinary or spec.start_at or spec.end_at:
        return None
    return _Rhythm(schedule.every // _MICROSECOND)


def _learn(known: dict[int, Shared | None], key: int, spec: str, cursor: int) -> Shared | None:
    if len(known) >= _REMEMBERED:
        known.clear()
    try:
        shared = known[key] = worked_out(spec, cursor)
    except Exception:  # planning it by itself will fail too, and there it is recorded
        log.debug("timer.not_plain", exc_info=True)
        return None
    return shared


def _packed(rules: Rules, step: SharedPlan) -> Shared:
    spec, (run,) = rules.spec, step.plan.records
    assert isinstance(run, NewRun)
    planned = run.planned
    due_at, following_at = raw_instant(step.due_at), raw_instant(step.following_at)
    times = (
        instant_piece(following_at), instant_piece(raw_instant(planned.planned_for)), instant_piece(due_at),
        instant_piece(raw_wall_time(planned.local)), smallint_piece(planned.fold),
    )  # fmt: skip
    place = _place(
        spec.queue, spec.type, spec.priority, rules.is_exclusive, spec.concurrency_key, spec.limits.timeout
    )
    return Shared(due_at, raw_instant(step.late_after), following_at, times + place)


@lru_cache(maxsize=1_024)
def _place(*values: Any) -> tuple[bytes, ...]:
    return pieces(_PLACE, values)
