"""The ordinary case of planning: one planned time is due in time, nothing stands in its way, and another follows.

What is planned then hangs on the rules and the cursor alone, so it is worked out once for all jobs that share them. Whatever is not
ordinary goes the whole way through `planning.plan`, which for the ordinary case says the same.
"""

from __future__ import annotations

from datetime import datetime

from foliot.domain.definition import Rules
from foliot.domain.job import Timer
from foliot.domain.run_plan import NewRun, Plan, SharedPlan
from foliot.domain.schedule import planned_after

_REMEMBERED = (
    4  # cursors of one set of rules: where its jobs stood, where they stand, and a few that lag behind
)


def find_shared_plan(rules: Rules, cursor: datetime, now: datetime) -> Plan | None:
    """The plan of an active job that is due, has no live, waiting or unwanted run, and neither gate nor freeze; None where not even
    that makes it ordinary.
    """
    step = shared_plan_at(rules, cursor)
    if step is not None and step.due_at <= now <= step.late_after and now < step.following_at:
        return step.plan
    return None


def shared_plan_at(rules: Rules, cursor: datetime) -> SharedPlan | None:
    """That plan and when it holds: what is left to ask is whether it is time."""
    known = rules.steps
    if cursor in known:
        return known[cursor]
    if len(known) >= _REMEMBERED:
        known.clear()
    step = known[cursor] = _step(rules, cursor) if rules.are_ordinary else None
    return step


def _step(rules: Rules, cursor: datetime) -> SharedPlan | None:
    upcoming = planned_after(rules.timetable, cursor)
    if upcoming is None or upcoming.skip is not None:
        return None
    following = planned_after(rules.timetable, upcoming.planned_for)
    if following is None or following.due_at <= upcoming.due_at:
        return None
    timer = Timer(upcoming.planned_for, following.due_at, following.due_at)
    late_after = upcoming.due_at + rules.spec.misfire.grace
    return SharedPlan(Plan((NewRun(upcoming),), timer), upcoming.due_at, late_after, following.due_at)
