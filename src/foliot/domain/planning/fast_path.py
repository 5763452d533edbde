"""The fast path of planning: one planned time is due and not late, nothing prevents its run, and another follows.

The plan then depends on the rules and the cursor alone, so it is made once for all jobs that share them. It equals what the walk plans.

Why: docs/decisions/400-fast-path-of-a-tick.md
"""

from __future__ import annotations

from datetime import datetime

from foliot.domain.definition import Rules
from foliot.domain.job import Timer
from foliot.domain.planning.due_job import DueJob
from foliot.domain.run_plan import NewRun, Plan, SharedPlan
from foliot.domain.schedule import planned_after

_REMEMBERED = 4  # cursors of one set of rules: its jobs stand at one or two, and a few lag behind


def find_shared_plan(due: DueJob, now: datetime) -> Plan | None:
    """Return the plan of a due job on the fast path; None where it needs a walk."""
    if due.rules is None or due.freezes or due.is_type_off or due.fires_left is not None:
        return None
    shared = shared_plan_at(due.rules, due.timer.cursor)
    return shared.plan if shared is not None and shared.is_on_time(now) else None


def shared_plan_at(rules: Rules, cursor: datetime) -> SharedPlan | None:
    """Return the shared plan at this cursor and when it holds; None where the rules need a walk."""
    known = rules.shared_plans
    try:
        return known[cursor]  # one lookup: another thread may clear it in between
    except KeyError:
        pass
    if len(known) >= _REMEMBERED:
        known.clear()
    shared = known[cursor] = _make(rules, cursor) if rules.is_shareable else None
    return shared


def _make(rules: Rules, cursor: datetime) -> SharedPlan | None:
    upcoming = planned_after(rules.timetable, cursor)
    if upcoming is None or upcoming.skip is not None:
        return None
    following = planned_after(rules.timetable, upcoming.planned_for)
    if following is None or following.due_at <= upcoming.due_at:
        return None
    timer = Timer(upcoming.planned_for, following.due_at, following.due_at)
    late_after = upcoming.due_at + rules.spec.misfire.grace
    return SharedPlan(Plan((NewRun(upcoming),), timer), upcoming.due_at, late_after, following.due_at)
