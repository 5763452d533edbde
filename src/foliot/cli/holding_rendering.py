"""How freezes and calendars look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.output import pluralize
from foliot.cli.tables import QUIET, SOON, STRONG, cell, columns, facts, stacked
from foliot.cli.times import local_time_relative, local_times, relative
from foliot.wire.calendars import AbsoluteRule, CalendarOut, CalendarUser, CronRule, WeeklyRule
from foliot.wire.durations import write_duration
from foliot.wire.freezes import FreezeOut, FreezePreviewOut, FreezeScope
from foliot.wire.jobs import WEEK

ENOUGH = 18  # characters of an id: its time to the millisecond and some chance
AFTER = {"skip": "skipped", "latest": "the latest of each job runs once", "all": "all run, {rate} a minute"}


def freeze_list(freezes: Sequence[FreezeOut], zone: str, now: datetime) -> RenderableType:
    if not freezes:
        return Text("No freezes: nothing is held.")
    named = (moment for each in freezes for moment in (each.start_at, each.end_at) if moment is not None)
    at = iter(local_times(named, zone))
    rows = [
        (
            cell(each.status.replace("_", " "), SOON if each.status == "in_force" else QUIET),
            cell(each.reason),
            cell(scope_in_short(each.scope)),
            cell(next(at)),
            cell(next(at) if each.end_at else "until turned off"),
            cell(str(each.id)[:ENOUGH], QUIET),
        )
        for each in freezes
    ]
    return columns(
        ("STATUS", "REASON", "HOLDS", "FROM", "TO", "ID"), rows, wraps=("REASON", "HOLDS"), drops=("FROM",)
    )


def freeze_line(freeze: FreezeOut, zone: str, now: datetime) -> RenderableType:
    end = (
        f"until {local_time_relative(freeze.end_at, zone, now)}"
        if freeze.end_at
        else "until it is turned off"
    )
    begins = "" if freeze.status == "in_force" else f" from {local_time_relative(freeze.start_at, zone, now)}"
    return stacked(
        Text.assemble(("Holding", STRONG), f" {scope_in_short(freeze.scope)}{begins} {end}."),
        facts(
            (
                ("id", str(freeze.id)),
                ("reason", freeze.reason),
                ("planned times", AFTER[freeze.after].format(rate=freeze.per_minute)),
            )
        ),
    )


def would_hold(seen: FreezePreviewOut, running: str, zone: str, now: datetime) -> Text:
    least = "" if seen.is_exact else "at least "
    under_way = "would finish" if running == "drain" else "would be cancelled"
    return Text(
        f"Would hold {least}{pluralize(seen.planned_times, 'planned time')} of {pluralize(seen.jobs, 'job')}"
        f" until {local_time_relative(seen.until, zone, now)}. {pluralize(seen.running, 'run')} under way {under_way},"
        f" {seen.ready:,} that are ready would wait. Nothing was done."
    )


def scope_in_short(scope: FreezeScope) -> str:
    if scope.everything:
        return "everything"
    told = [pluralize(len(scope.jobs), "job")] if scope.jobs else []
    told += [f"tag {each}" for each in scope.tags] + [f"queue {each}" for each in scope.queues]
    return cell(", ".join(told)).plain


def calendar_list(calendars: Sequence[CalendarOut]) -> RenderableType:
    if not calendars:
        return Text("No calendars.")
    rows = [
        (
            cell(each.name),
            cell(each.kind),
            cell("; ".join(map(rule_in_short, each.rules[:2])) + (" …" if len(each.rules) > 2 else "")),
            cell(each.timezone, QUIET),
            cell(each.otherwise),
            cell(each.job_count),
            cell(str(each.id)[:ENOUGH], QUIET),
        )
        for each in calendars
    ]
    return columns(
        ("NAME", "KIND", "RULES", "ZONE", "ELSE", "JOBS", "ID"),
        rows,
        wraps=("NAME", "RULES"),
        drops=("ELSE", "ZONE", "ID"),
    )


def calendar_page(calendar: CalendarOut, users: Sequence[CalendarUser], now: datetime) -> RenderableType:
    what = "jobs must not run" if calendar.kind == "blackout" else "jobs run only"
    used = ", ".join(each.name for each in users) + (" …" if calendar.job_count > len(users) else "")
    return stacked(
        cell(calendar.name, STRONG),
        facts(
            (
                ("id", str(calendar.id)),
                ("kind", f"{calendar.kind}: {what} then"),
                ("zone", calendar.timezone),
                ("otherwise", calendar.otherwise),
                *(
                    (("rules" if not place else ""), rule_in_short(each))
                    for place, each in enumerate(calendar.rules)
                ),
                ("jobs", f"{calendar.job_count:,}: {used}" if users else "none"),
                ("changed", f"{relative(calendar.updated_at - now)}, revision {calendar.revision}"),
            )
        ),
    )


def rule_in_short(rule: WeeklyRule | AbsoluteRule | CronRule) -> str:
    if isinstance(rule, WeeklyRule):
        days = "every day" if len(rule.days) == len(WEEK) else " ".join(rule.days)
        return f"{days} {rule.start:%H:%M}-{rule.end:%H:%M}"
    if isinstance(rule, AbsoluteRule):
        return f"{rule.start:%Y-%m-%d %H:%MZ} to {rule.end:%Y-%m-%d %H:%MZ}"
    return f"{rule.expr} for {write_duration(rule.duration)}"
