"""Incidents: from the first failure of a subject to its next success, with reminders in between.

Why: docs/decisions/910-incidents.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from foliot.domain.ids import IncidentId, JobId, RunId
from foliot.domain.notifications.notice import Notice, NoticeEvent, fingerprint
from foliot.domain.run import RunError

REMINDERS = (
    timedelta(hours=1),
    timedelta(hours=6),
    timedelta(days=1),
)  # after the message before; the last repeats


class IncidentState(StrEnum):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    SNOOZED = "snoozed"
    MUTED = "muted"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Incident:
    id: IncidentId
    subject: str
    job_id: JobId | None
    event: NoticeEvent
    fingerprint: str
    opened_at: datetime
    last_at: datetime
    error: RunError | None = None
    failures: int = 0
    missed: int = 0
    first_run_id: RunId | None = None
    last_run_id: RunId | None = None
    closed_at: datetime | None = None
    closed_by: str | None = None
    messages: int = 0
    reminders: int = 0
    remind_at: datetime | None = None
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    muted_at: datetime | None = None
    muted_by: str | None = None
    snoozed_until: datetime | None = None
    note: str | None = None

    @property
    def is_muted(self) -> bool:
        return self.muted_at is not None

    def state(self, now: datetime) -> IncidentState:
        if self.closed_at is not None:
            return IncidentState.CLOSED
        if self.is_muted:
            return IncidentState.MUTED
        if self.is_silent(now):
            return IncidentState.SNOOZED
        return IncidentState.OPEN if self.acknowledged_at is None else IncidentState.ACKNOWLEDGED

    def is_silent(self, now: datetime) -> bool:
        """Return whether no message about trouble may leave now."""
        return self.is_muted or (self.snoozed_until is not None and self.snoozed_until > now)


def open_incident(incident_id: IncidentId, notice: Notice) -> Incident:
    """Open an incident for the first fact of its subject."""
    return Incident(
        id=incident_id,
        subject=notice.subject,
        job_id=notice.job_id,
        event=notice.event,
        fingerprint=fingerprint(notice.event, notice.error),
        opened_at=notice.at,
        last_at=notice.at,
        error=notice.error,
        first_run_id=notice.run_id,
        remind_at=notice.at + REMINDERS[0],
    )


def add_trouble(incident: Incident, notice: Notice) -> Incident:
    """Count a further fact in an open incident. Its error is that of the last failure."""
    is_failure = notice.event is NoticeEvent.RUN_FAILED
    return replace(
        incident,
        failures=incident.failures + is_failure,
        missed=incident.missed + int(notice.facts.get("missed", 0)),
        last_at=max(incident.last_at, notice.at),
        last_run_id=notice.run_id or incident.last_run_id,
        error=notice.error or incident.error,
        fingerprint=fingerprint(notice.event, notice.error) if notice.error else incident.fingerprint,
    )


def close_incident(incident: Incident, at: datetime, by: str) -> Incident:
    return replace(incident, closed_at=at, closed_by=by, remind_at=None)


def announced(incident: Incident, at: datetime, *, is_first: bool) -> Incident:
    """Count the reminders from a message that leaves at `at`, unless people have ended them."""
    if incident.remind_at is None:
        return incident
    reminders = 0 if is_first else incident.reminders
    return replace(incident, remind_at=at + REMINDERS[0], reminders=reminders)


def look_again(incident: Incident, at: datetime) -> Incident:
    """Look at the incident again at `at` or before: a freeze, a cooldown or quiet hours hold a message back."""
    if incident.acknowledged_at is not None or incident.is_muted:
        return incident
    return replace(incident, remind_at=at if incident.remind_at is None else min(at, incident.remind_at))


def after_reminder(incident: Incident, now: datetime) -> Incident:
    """Count a reminder and plan the next one."""
    place = min(incident.reminders + 1, len(REMINDERS) - 1)
    return replace(incident, reminders=incident.reminders + 1, remind_at=now + REMINDERS[place])


def acknowledge(incident: Incident, at: datetime, by: str) -> Incident:
    """Stop the reminders: a person works on it. The recovery is still sent."""
    return replace(incident, acknowledged_at=at, acknowledged_by=by, remind_at=None)


def mute(incident: Incident, at: datetime, by: str) -> Incident:
    """Send nothing more about it, not even its recovery."""
    return replace(incident, muted_at=at, muted_by=by, remind_at=None)


def unmute(incident: Incident, now: datetime) -> Incident:
    """Send messages again. Reminders come again too, unless a person works on it."""
    remind_at = now + REMINDERS[0] if incident.acknowledged_at is None else None
    return replace(incident, muted_at=None, muted_by=None, remind_at=remind_at)


def snooze(incident: Incident, until: datetime) -> Incident:
    """Send nothing about further trouble until then; then remind. The recovery is still sent."""
    return replace(incident, snoozed_until=until, remind_at=until)
