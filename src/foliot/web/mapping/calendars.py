"""Calendars and freezes between the wire and the domain, both ways."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from foliot.domain.errors import Invalid
from foliot.domain.freeze import FreezePolicy, RunningPolicy
from foliot.domain.ids import JobId
from foliot.domain.schedule import Absolute, Calendar, CalendarKind, CronStretch, Days, Otherwise, Weekly
from foliot.domain.schedule.calendar import CalendarScope
from foliot.domain.schedule.calendar_year import ClosedDay
from foliot.domain.schedule.merged_spans import Rule
from foliot.services.jobs.calendars import CalendarRow
from foliot.services.scheduling.freeze_search import FreezeRow
from foliot.services.scheduling.freezes import FreezePreview, NewFreeze
from foliot.wire import calendars as wire
from foliot.wire.freezes import FreezeIn, FreezeOut, FreezePreviewOut, FreezeScope, HeldTimeOut
from foliot.wire.jobs import WEEK


def calendar_from(given: wire.CalendarIn, timezone: str) -> Calendar:
    """`timezone` is the workspace's, for a calendar that names none."""
    return Calendar(
        given.name.strip(),
        CalendarKind(given.kind),
        _rules(given.rules),
        given.timezone or timezone,
        Otherwise(given.otherwise),
        _scope(given.scope),
    )


def calendar_changes_from(given: wire.CalendarChange) -> dict[str, Any]:
    """Return the fields that the change names, as domain values."""
    fields = {
        "name": given.name.strip(),
        "kind": CalendarKind(given.kind),
        "timezone": given.timezone,
        "otherwise": Otherwise(given.otherwise),
        "rules": _rules(given.rules),
        "scope": _scope(given.scope),
    }
    return {name: fields[name] for name in given.model_fields_set}


def calendar_out(row: CalendarRow) -> wire.CalendarOut:
    calendar = row.calendar
    return wire.CalendarOut.from_value(
        row,
        name=calendar.name,
        kind=calendar.kind.value,
        timezone=calendar.timezone,
        otherwise=calendar.otherwise.value,
        rules=[_rule_out(rule) for rule in calendar.rules],
        scope=_scope_out(calendar.scope),
        job_count=row.users,
    )


def date_rule_out(rule: Days) -> wire.DateRule:
    return wire.DateRule(kind="date", date=rule.first, last=rule.last, name=rule.name)


def year_out(calendar: Calendar, year: int, days: Iterable[ClosedDay]) -> wire.CalendarYearOut:
    return wire.CalendarYearOut(
        year=year,
        timezone=calendar.timezone,
        days=[
            wire.CalendarDayOut(
                date=each.date,
                state=each.state.value,
                closed=[wire.ClosedSpanOut(start=start, end=end) for start, end in each.spans],
                names=list(each.names),
            )
            for each in days
        ],
    )


def freeze_from(given: FreezeIn) -> NewFreeze:
    return NewFreeze(
        reason=given.reason,
        everything=given.scope.everything,
        jobs=frozenset(JobId(each) for each in given.scope.jobs),
        tags=frozenset(given.scope.tags),
        queues=frozenset(given.scope.queues),
        start_at=given.start_at,
        end_at=given.end_at,
        after=FreezePolicy(given.after),
        per_minute=given.per_minute,
        running=RunningPolicy(given.running),
    )


def freeze_out(row: FreezeRow, now: datetime) -> FreezeOut:
    scoped, freeze = row.scoped, row.scoped.freeze
    return FreezeOut.from_value(
        freeze,
        status="in_force" if freeze.holds(now) else "planned" if freeze.start_at > now else "over",
        scope=FreezeScope(
            everything=not (scoped.jobs or scoped.tags or scoped.queues),
            jobs=sorted(UUID(each) for each in scoped.jobs),
            tags=sorted(scoped.tags),
            queues=sorted(scoped.queues),
        ),
        after=freeze.after.value,
        running=freeze.running.value,
        created_by=row.created_by,
        created_at=row.created_at,
        lifted_by=row.lifted_by,
        lifted_at=row.lifted_at,
    )


def freeze_preview_out(found: FreezePreview) -> FreezePreviewOut:
    return FreezePreviewOut.from_value(
        found,
        sample=[
            HeldTimeOut(job_id=each.job_id, job_name=each.job_name, planned_for=each.planned_for)
            for each in found.sample
        ],
    )


def _scope(given: wire.CalendarCoverage | None) -> CalendarScope | None:
    if given is None:
        return None
    lists = (given.types, given.tags, given.queues, given.hosts)
    if given.everything == any(lists):
        raise Invalid(
            "A scope is everything, or names types, tags, queues or hosts.",
            hint='Such as {"everything": true} or {"tags": ["billing"]}.',
            pointer="/scope",
        )
    return CalendarScope(*(frozenset(each) for each in lists))


def _scope_out(scope: CalendarScope | None) -> wire.CalendarCoverage | None:
    if scope is None:
        return None
    return wire.CalendarCoverage(
        everything=scope.is_everything,
        types=sorted(scope.types),
        tags=sorted(scope.tags),
        queues=sorted(scope.queues),
        hosts=sorted(scope.hosts),
    )


def _rules(given: list[wire.Rule]) -> tuple[Rule, ...]:
    return tuple(_rule(rule) for rule in given)


def _rule(given: wire.Rule) -> Rule:
    match given:
        case wire.WeeklyRule():
            return Weekly(given.start, given.end, frozenset(WEEK.index(day) for day in given.days))
        case wire.AbsoluteRule():
            return Absolute(given.start, given.end)
        case wire.CronRule():
            return CronStretch(given.expr.strip(), given.duration)
        case wire.DateRule():
            return Days(given.date, given.last, given.name.strip())
        case _:
            assert_never(given)


def _rule_out(rule: Rule) -> wire.Rule:
    match rule:
        case Weekly():
            days = [WEEK[day] for day in sorted(rule.days)]
            return wire.WeeklyRule(kind="weekly", start=rule.start, end=rule.end, days=days)
        case Absolute():
            return wire.AbsoluteRule(kind="absolute", start=rule.start, end=rule.end)
        case CronStretch():
            return wire.CronRule(kind="cron", expr=rule.expr, duration=rule.duration)
        case Days():
            return date_rule_out(rule)
        case _:
            assert_never(rule)
