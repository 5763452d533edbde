"""The fast path of firing: due timers whose plan depends on their rules and cursor alone.

Most due timers plan one run now and another later. Jobs with the same rules and cursor plan the same, so the plan is made and packed
once and remembered. Such a timer crosses from one statement to the next as bytes and numbers. Every other timer is read and planned
by itself.

Why: docs/decisions/400-fast-path-of-a-tick.md
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from foliot.domain.ids import WorkspaceId
from foliot.domain.planning.fast_path import shared_plan_at
from foliot.domain.schedule import Interval
from foliot.storage.arrays import instant_of, raw_instant, text_piece
from foliot.storage.jobs.calendars import NO_CALENDARS, JobCalendars
from foliot.storage.jobs.definitions import rules_of, split_anchor
from foliot.storage.jobs.freezes import ScopedFreeze
from foliot.storage.jobs.job_types import DisabledTypes
from foliot.storage.timers.fires import DueTimer, FastFire
from foliot.storage.timers.packed_plans import MICROSECOND, PackedPlan, pack_plan

log = logging.getLogger(__name__)

_REMEMBERED = 4  # cursors of one set of rules, phases of one interval
_FAR = raw_instant(
    datetime(9000, 1, 1, tzinfo=UTC)
)  # near the end of the calendar an interval need not go on

Plans = dict[int, PackedPlan | None]


def split_due(
    taken: Sequence[DueTimer],
    now: datetime,
    frozen: Sequence[ScopedFreeze] = (),
    off: DisabledTypes = frozenset(),
    limited: Collection[WorkspaceId] = (),
    scoped: JobCalendars = NO_CALENDARS,
) -> tuple[list[FastFire], list[DueTimer]]:
    """Return the fires of the timers on the fast path, and the other timers.

    `frozen` are the freezes since the earliest cursor: jobs of their workspaces are planned one by one, as are jobs of `off`
    types, of the workspaces with a quota of fires, and jobs in the scope of a calendar (`scoped`).
    """
    fires, others, instant = [], [], raw_instant(now)
    excluded = {each.workspace_id.bytes for each in frozen} | {each.bytes for each in limited}
    off_types = {(workspace_id.bytes, text_piece(kind)) for workspace_id, kind in off}
    with_scopes = {workspace_id.bytes: workspace_id for workspace_id in scoped.scoped}
    for timer in taken:
        if (
            timer.is_fast_path
            and timer.workspace_id not in excluded
            and not (
                timer.workspace_id in with_scopes
                and scoped.of(with_scopes[timer.workspace_id], rules_of(timer.spec).spec)
            )
        ):
            plan = find_packed_plan(timer.spec, timer.cursor_at)
            if (
                plan is not None
                and plan.is_on_time(instant)
                and not (off_types and (timer.workspace_id, plan.type) in off_types)
            ):
                fires.append(FastFire(timer.job_id, timer.version, plan.columns))
                continue
        others.append(timer)
    return fires, others


def find_packed_plan(spec: str, cursor: int) -> PackedPlan | None:
    """Return the packed plan of a timer with these rules at this cursor; None where it takes more than rules and cursor.

    An interval counts from its own creation, so hardly two are equal: all with one pace and one phase share a plan relative to the cursor.
    """
    parts = split_anchor(spec)
    if parts is not None and cursor < _FAR:
        others, anchor = parts
        interval = _interval_plans(others)
        if interval is not None and anchor <= (at := instant_of(cursor)):
            return interval.find(spec, cursor, (at - anchor) // MICROSECOND % interval.every)
    known = _plans_of(spec) if parts is None else {}
    return known[cursor] if cursor in known else _remember(known, cursor, _try_pack(spec, cursor))


def make_packed_plan(spec: str, cursor: int) -> PackedPlan | None:
    """Make the plan without any cache."""
    rules = rules_of(spec)
    shared = shared_plan_at(rules, instant_of(cursor))
    return None if shared is None else pack_plan(rules, shared)


class _IntervalPlans:
    """The relative plans of intervals that differ in their anchor alone, by phase."""

    __slots__ = ("_known", "every")

    def __init__(self, every: int) -> None:
        self.every = every
        self._known: Plans = {}

    def find(self, spec: str, cursor: int, phase: int) -> PackedPlan | None:
        if phase in self._known:
            found = self._known[phase]
        else:
            plan = _try_pack(spec, cursor)
            found = _remember(self._known, phase, None if plan is None else plan.relative_to(cursor))
        return None if found is None else found.at(cursor)


@lru_cache(maxsize=50_000)
def _plans_of(_: str) -> Plans:
    return {}


@lru_cache(maxsize=4_096)
def _interval_plans(others: str) -> _IntervalPlans | None:
    rules = rules_of(others)
    spec, schedule = rules.spec, rules.spec.schedule
    if not isinstance(schedule, Interval) or not rules.is_shareable or spec.start_at or spec.end_at:
        return None
    return _IntervalPlans(schedule.every // MICROSECOND)


def _try_pack(spec: str, cursor: int) -> PackedPlan | None:
    try:
        return make_packed_plan(spec, cursor)
    except Exception:  # planning the job by itself fails as well, and records the error
        log.debug("timer.not_on_fast_path", exc_info=True)
        return None


def _remember(known: Plans, key: int, plan: PackedPlan | None) -> PackedPlan | None:
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = plan
    return plan
