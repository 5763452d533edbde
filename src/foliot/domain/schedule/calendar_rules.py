"""The rules of a calendar, and how many spans each makes in a week."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.schedule.cron import parse_cron
from foliot.domain.schedule.window import Weekly


@dataclass(frozen=True, slots=True)
class Absolute:
    """One span of real time, from an instant up to another."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class CronStretch:
    """Starts whenever the cron expression fires and lasts for `duration`."""

    expr: str
    duration: timedelta


Rule = Weekly | Absolute | CronStretch


def starts_a_week(rule: Rule) -> int:
    """Return how many spans of this rule begin in one week, at most."""
    match rule:
        case Weekly():
            return len(rule.days)
        case Absolute():
            return 0
        case CronStretch():
            walls = parse_cron(rule.expr)
            return 7 * len(walls.hours) * len(walls.minutes)
