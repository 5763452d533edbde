"""Turn a batch of notices into incidents and messages. Pure: the caller loads the state and writes the plan.

A channel gets at most `SINGLES` messages in a window; the rest waits for one digest, so that ten thousand failures are a bounded number of
messages. Incidents of one batch with the same error are one message.

Why: docs/decisions/910-incidents.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from foliot.domain.ids import ChannelId, IncidentId, JobId, RunId
from foliot.domain.notifications import texts
from foliot.domain.notifications.channel import ChannelKind
from foliot.domain.notifications.content import DigestEntry, NoticeContent, NoticeKind, Occasion, Site
from foliot.domain.notifications.incidents import (
    REMINDERS,
    Incident,
    add_trouble,
    after_reminder,
    announced,
    close_incident,
    look_again,
    open_incident,
)
from foliot.domain.notifications.notice import TROUBLES, JobNames, Notice, NoticeEvent, RunNames
from foliot.domain.notifications.rules import Destination, RuleSet

WINDOW = timedelta(minutes=5)
SINGLES = 10  # messages of a channel in a window
DIGEST_AFTER = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class ChannelState:
    """A channel that may send, as planning needs it."""

    id: ChannelId
    name: str
    kind: ChannelKind
    window_at: datetime | None = None
    window_count: int = 0
    digest_at: datetime | None = None
    timezone: str | None = None  # of the people whom it reaches


@dataclass(frozen=True, slots=True)
class IncidentThread:
    """A channel that knows of an incident."""

    channel_id: ChannelId
    recipients: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedMessage:
    """A delivery to write. Messages of one incident to one channel leave in the order of their positions."""

    channel_id: ChannelId
    content: NoticeContent
    position: int = 0
    incident_id: IncidentId | None = None
    recipients: tuple[str, ...] = ()
    due_at: datetime | None = None  # None: at once


@dataclass(frozen=True, slots=True)
class WaitingEntry:
    channel_id: ChannelId
    incident_id: IncidentId | None
    entry: DigestEntry
    recipients: tuple[str, ...] = ()
    due_at: datetime | None = None  # the end of quiet hours, as in PlannedMessage


@dataclass(slots=True)
class DispatchPlan:
    """The rows that one transaction writes."""

    opened: list[Incident] = field(default_factory=list)
    changed: list[Incident] = field(default_factory=list)
    messages: list[PlannedMessage] = field(default_factory=list)
    threads: list[tuple[IncidentId, str, IncidentThread]] = field(
        default_factory=list
    )  # incident, subject, channel
    entries: list[WaitingEntry] = field(default_factory=list)
    channels: list[ChannelState] = field(default_factory=list)


@dataclass(slots=True)
class DispatchState:
    """The state of a workspace that a batch of notices meets."""

    site: Site
    now: datetime
    rules: RuleSet
    channels: dict[ChannelId, ChannelState]
    incidents: dict[str, Incident] = field(default_factory=dict)  # open ones, by subject
    threads: dict[IncidentId, list[IncidentThread]] = field(default_factory=dict)
    last_messages: Mapping[tuple[str, ChannelId], datetime] = field(default_factory=dict)
    skipped: Mapping[IncidentId, int] = field(default_factory=dict)  # planned times that did not run
    jobs: Mapping[JobId, JobNames] = field(default_factory=dict)
    runs: Mapping[RunId, RunNames] = field(default_factory=dict)
    frozen: frozenset[JobId] = frozenset()


@dataclass(frozen=True, slots=True)
class _PendingMessage:
    """One thing to tell one channel, before messages are grouped and counted."""

    kind: NoticeKind
    occasion: Occasion
    destination: Destination


class Dispatcher:
    """Plan one batch."""

    def __init__(self, state: DispatchState, new_id: Callable[[], UUID]) -> None:
        self._state = state
        self._new_id = new_id
        self._known: dict[str, Incident] = dict(state.incidents)
        self._new: dict[IncidentId, Incident] = {}
        self._changed: dict[IncidentId, Incident] = {}
        self._threads = {incident_id: list(found) for incident_id, found in state.threads.items()}
        self._pending: list[_PendingMessage] = []
        self._plan = DispatchPlan()
        self._last_messages = dict(state.last_messages)
        self._budgets = dict(state.channels)

    def plan(self, notices: Iterable[Notice], reminders: Iterable[Incident] = ()) -> DispatchPlan:
        for notice in notices:
            if notice.event in TROUBLES:
                self._trouble(notice)
            elif notice.event is NoticeEvent.RECOVERED:
                self._recovery(notice)
            elif notice.event is NoticeEvent.JOB_ARCHIVED:
                self._archive(notice)
            else:
                self._inform(notice)
        for incident in reminders:
            self._remind(self._current(incident))
        for pending in self._grouped():
            self._write(pending)
        plan = self._plan
        plan.opened, plan.changed = list(self._new.values()), list(self._changed.values())
        plan.channels = [
            each for channel_id, each in self._budgets.items() if each != self._state.channels[channel_id]
        ]
        return plan

    def _trouble(self, notice: Notice) -> None:
        incident, job = self._known.get(notice.subject), self._job(notice)
        if incident is None:
            if job is not None and job.is_archived:
                return  # nothing would ever close it
            incident = open_incident(IncidentId(self._new_id()), notice)
            self._new[incident.id] = incident
        incident = self._store(add_trouble(incident, notice))
        if not incident.is_silent(self._state.now) and not self._is_frozen(incident):
            self._announce(incident, notice.names, notice)

    def _announce(self, incident: Incident, names: Collection[NoticeEvent], notice: Notice | None) -> None:
        """Tell the channels that have not heard of the incident and whose rules want it now."""
        informed = {each.channel_id for each in self._threads.get(incident.id, ())}
        for each in self._state.rules.destinations(names, self._job_of(notice, incident)):
            if each.channel_id in informed or each.channel_id not in self._budgets:
                continue
            if NoticeEvent.RUN_FAILED in names and incident.failures < each.after_n:
                continue
            until = self._cools_until(incident, each)
            if until is not None:
                incident = self._store(look_again(incident, until))
                continue
            at = self._quiet_until(each) or self._state.now
            incident = self._store(announced(incident, at, is_first=not self._threads.get(incident.id)))
            self._join(incident, each)
            self._tell(NoticeKind.OPENED, notice, incident, each)

    def _recovery(self, notice: Notice) -> None:
        incident = self._known.pop(notice.subject, None)
        if incident is None:
            return
        missed = max(incident.missed, self._state.skipped.get(incident.id, 0))
        closed = close_incident(replace(incident, missed=missed), notice.at, str(notice.run_id or ""))
        incident = self._store(closed, is_open=False)
        job = self._job(notice)
        if incident.is_muted:
            return
        by_channel = {
            each.channel_id: each for each in self._state.rules.destinations({NoticeEvent.RECOVERED}, job)
        }
        for thread in self._threads.get(incident.id, ()):
            terms = by_channel.get(thread.channel_id)
            if terms is not None:
                self._tell(
                    NoticeKind.RECOVERED, notice, incident, replace(terms, recipients=thread.recipients)
                )

    def _archive(self, notice: Notice) -> None:
        """Close the incident of a job that nobody runs any more. Who archives a job needs no message about its failures."""
        incident = self._known.pop(notice.subject, None)
        if incident is not None:
            self._store(close_incident(incident, notice.at, "archived"), is_open=False)

    def _inform(self, notice: Notice) -> None:
        job = self._job(notice)
        if (
            job is not None
            and job.id in self._state.frozen
            and notice.event is not NoticeEvent.JOB_AUTO_PAUSED
        ):
            return
        for each in self._state.rules.destinations(notice.names, job):
            if not self._add_to_opening(notice, each.channel_id):
                self._tell(NoticeKind.INFO, notice, self._thread_of(notice, each.channel_id), each)

    def _thread_of(self, notice: Notice, channel_id: ChannelId) -> Incident | None:
        """Return the open incident of the job, if the channel knows of it: what happens to the job belongs to that thread."""
        incident = self._known.get(notice.subject) if notice.job_id is not None else None
        if incident is None or all(
            each.channel_id != channel_id for each in self._threads.get(incident.id, ())
        ):
            return None
        return incident

    def _add_to_opening(self, notice: Notice, channel_id: ChannelId) -> bool:
        """Add the stop of a job to the message about the failure that led to it, if both are of this batch."""
        if notice.event is not NoticeEvent.JOB_AUTO_PAUSED:
            return False
        for place, each in enumerate(self._pending):
            on = each.occasion
            is_same = on.incident is not None and on.incident.subject == notice.subject
            if is_same and each.kind is NoticeKind.OPENED and each.destination.channel_id == channel_id:
                line = str(notice.facts.get("reason") or "The job was stopped.")
                self._pending[place] = replace(each, occasion=replace(on, extra=(*on.extra, line)))
                return True
        return False

    def _remind(self, incident: Incident) -> None:
        if (
            incident.closed_at is not None
            or incident.remind_at is None
            or incident.remind_at > self._state.now
        ):
            return
        job = self._job_of(None, incident)
        is_stopped = (
            job is not None and job.is_stopped_by_person
        )  # the person who paused it knows of the failure
        if incident.is_silent(self._state.now) or self._is_frozen(incident) or is_stopped:
            self._store(look_again(replace(incident, remind_at=None), self._state.now + REMINDERS[0]))
            return
        incident = self._store(after_reminder(incident, self._state.now))
        names = _names_of(incident)
        known = names | {NoticeEvent.RETRIES_EXHAUSTED} if NoticeEvent.RUN_FAILED in names else names
        by_channel = {each.channel_id: each for each in self._state.rules.destinations(known, job)}
        for thread in self._threads.get(incident.id, ()):
            terms = by_channel.get(thread.channel_id)
            if terms is None:
                continue
            quiet_until = self._quiet_until(terms)
            if quiet_until is None:
                self._tell(NoticeKind.REMINDER, None, incident, replace(terms, recipients=thread.recipients))
            else:
                incident = self._store(look_again(incident, quiet_until))
        self._announce(incident, names, None)

    def _store(self, incident: Incident, *, is_open: bool = True) -> Incident:
        if incident.id in self._new:
            self._new[incident.id] = incident
        else:
            self._changed[incident.id] = incident
        if is_open:
            self._known[incident.subject] = incident
        return incident

    def _job(self, notice: Notice) -> JobNames | None:
        return self._job_of(notice, None)

    def _job_of(self, notice: Notice | None, incident: Incident | None) -> JobNames | None:
        job_id = notice.job_id if notice else incident.job_id if incident else None
        return self._state.jobs.get(job_id) if job_id is not None else None

    def _is_frozen(self, incident: Incident) -> bool:
        return incident.job_id in self._state.frozen

    def _cools_until(self, incident: Incident, terms: Destination) -> datetime | None:
        """Return when the rule's cooldown ends, if the channel heard of this subject within it."""
        last = self._last_messages.get((incident.subject, terms.channel_id))
        if last is None or last + terms.cooldown <= self._state.now:
            return None
        return last + terms.cooldown

    def _quiet_until(self, terms: Destination) -> datetime | None:
        """Return when the quiet hours of the rule end, in the zone of the people whom the channel reaches."""
        channel = self._budgets.get(terms.channel_id)
        zone = channel.timezone if channel else None
        return terms.quiet_hours.end_after(self._state.now, zone) if terms.quiet_hours else None

    def _join(self, incident: Incident, terms: Destination) -> None:
        thread = IncidentThread(terms.channel_id, terms.recipients)
        self._threads.setdefault(incident.id, []).append(thread)
        self._last_messages[incident.subject, terms.channel_id] = self._state.now
        self._plan.threads.append((incident.id, incident.subject, thread))

    def _tell(
        self, kind: NoticeKind, notice: Notice | None, incident: Incident | None, terms: Destination
    ) -> None:
        if terms.channel_id not in self._budgets:
            return  # disabled, or deleted meanwhile
        job = self._job_of(notice, incident)
        run_id = (notice.run_id if notice else None) or (incident.last_run_id if incident else None)
        run = self._state.runs.get(run_id) if run_id is not None else None
        on = Occasion(self._state.site, self._state.now, notice, job, run, incident)
        self._pending.append(_PendingMessage(kind, on, terms))

    def _grouped(self) -> list[list[_PendingMessage]]:
        """Group what one channel would hear about the same error. Single facts stay single."""
        groups: dict[tuple[object, ...], list[_PendingMessage]] = {}
        for place, each in enumerate(self._pending):
            incident = each.occasion.incident
            is_single = incident is None or each.kind in (NoticeKind.REMINDER, NoticeKind.INFO)
            shared = place if is_single or incident is None else incident.fingerprint
            terms = each.destination
            key = (
                each.kind,
                terms.channel_id,
                terms.recipients,
                terms.attachments,
                self._quiet_until(terms),
                shared,
            )
            groups.setdefault(key, []).append(each)
        return list(groups.values())

    def _write(self, pending: Sequence[_PendingMessage]) -> None:
        first, channel_id = pending[0], pending[0].destination.channel_id
        if not self._has_budget(channel_id):
            self._postpone(pending)
            return
        budget = self._budgets[channel_id]
        self._budgets[channel_id] = replace(budget, window_count=budget.window_count + 1)
        incident = first.occasion.incident
        position = 0
        if incident is not None:
            current = self._current(incident)
            position = current.messages + 1
            self._store(replace(current, messages=position), is_open=current.closed_at is None)
        terms = first.destination
        content = replace(_content_of(pending), attachments=terms.attachments)
        quiet_until = self._quiet_until(terms)
        self._plan.messages.append(
            PlannedMessage(
                channel_id,
                content,
                position,
                None if incident is None else incident.id,
                terms.recipients,
                quiet_until,
            )
        )

    def _current(self, incident: Incident) -> Incident:
        return self._new.get(incident.id) or self._changed.get(incident.id) or incident

    def _has_budget(self, channel_id: ChannelId) -> bool:
        """Return whether the channel may get a single message now. A window that is over starts anew."""
        budget, now = self._budgets[channel_id], self._state.now
        if budget.window_at is None or now - budget.window_at >= WINDOW:
            self._budgets[channel_id] = replace(budget, window_at=now, window_count=0)
            return True
        return budget.window_count < SINGLES

    def _postpone(self, pending: Sequence[_PendingMessage]) -> None:
        for each in pending:
            on, channel_id = each.occasion, each.destination.channel_id
            incident = on.incident
            error = incident.error if incident else None
            entry = DigestEntry(
                each.kind,
                on.name,
                incident.fingerprint if incident else str(on.notice.event.value if on.notice else ""),
                error.message[:200] if error else None,
                incident.failures if incident and each.kind is NoticeKind.OPENED else 0,
                self._state.now,
            )
            terms = each.destination
            self._plan.entries.append(
                WaitingEntry(
                    channel_id,
                    incident.id if incident else None,
                    entry,
                    terms.recipients,
                    self._quiet_until(terms),
                )
            )
            budget = self._budgets[channel_id]
            if budget.digest_at is None:
                self._budgets[channel_id] = replace(budget, digest_at=self._state.now + DIGEST_AFTER)


def _names_of(incident: Incident) -> set[NoticeEvent]:
    """Return the events under which rules know an open incident."""
    return {incident.event, *((NoticeEvent.RUN_FAILED,) if incident.failures else ())}


def _content_of(pending: Sequence[_PendingMessage]) -> NoticeContent:
    first, *others = pending
    if others:
        return texts.several(first.occasion, [each.occasion for each in others], first.kind)
    make = {
        NoticeKind.OPENED: texts.opened,
        NoticeKind.REMINDER: texts.reminder,
        NoticeKind.RECOVERED: texts.recovered,
    }.get(first.kind, texts.info)
    return make(first.occasion)
