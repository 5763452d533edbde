"""Notification rules: which events of which jobs go to which channels. The closest rules to a job decide.

Why: docs/decisions/911-notification-rules.md
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from uuid import UUID

from foliot.domain.errors import Invalid
from foliot.domain.ids import ChannelId, JobId, RuleId
from foliot.domain.notifications.channel import ChannelKind, of_kind
from foliot.domain.notifications.notice import JobNames, NoticeEvent
from foliot.domain.policy import NotifyPolicy
from foliot.domain.schedule import load_zone


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A daily span in which messages wait for its end. Past midnight it ends on the next day."""

    start: time
    end: time
    timezone: str = "UTC"

    def end_after(self, now: datetime, timezone: str | None = None) -> datetime | None:
        """Return when the span that holds `now` ends, or None outside of it. `timezone` is the reader's, if it is known."""
        zone = load_zone(timezone or self.timezone)
        local = now.astimezone(zone)
        clock = local.time().replace(tzinfo=None)
        if self.start <= self.end:
            is_quiet, days = self.start <= clock < self.end, 0
        else:
            is_quiet, days = clock >= self.start or clock < self.end, 1 if clock >= self.start else 0
        if not is_quiet:
            return None
        end = datetime.combine(local.date() + timedelta(days=days), self.end, tzinfo=zone)
        return end if end > now else end.replace(fold=1)  # an hour that comes twice ends with its second time


@dataclass(frozen=True, slots=True)
class RuleScope:
    """The jobs of a rule: named ones, those with a tag, of a queue or that a filter finds; without any, all of the workspace."""

    jobs: tuple[JobId, ...] = ()
    tags: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    q: str = ""  # a filter of jobs, such as `type:http -tag:test`

    def closeness(self, job: JobNames | None, *, is_found: bool = False) -> int | None:
        """Return 3 for a rule that names the job, 2 for its tag, queue or filter, 1 for the whole workspace, None if it does not apply.

        `is_found` says whether the filter finds the job.
        """
        if not (self.jobs or self.tags or self.queues or self.q):
            return 1
        if job is None:
            return None
        if job.id in self.jobs:
            return 3
        if is_found or job.queue in self.queues or not set(self.tags).isdisjoint(job.tags):
            return 2
        return None


@dataclass(frozen=True, slots=True)
class RuleDefinition:
    """A rule as a person writes it. Without channels the rule mutes its events."""

    events: tuple[NoticeEvent, ...]
    channels: tuple[ChannelId, ...] = ()
    scope: RuleScope = RuleScope()
    recipients: tuple[str, ...] = ()  # instead of those of the channel
    after_n: int = 1
    cooldown: timedelta = timedelta(0)
    quiet_hours: QuietHours | None = None
    attachments: tuple[str, ...] = ()  # patterns of artifact names

    def __post_init__(self) -> None:
        if not self.events:
            raise Invalid("A rule names at least one event.", pointer="/events")
        if not 1 <= self.after_n <= 1000:
            raise Invalid("Between 1 and 1,000 failures.", pointer="/after_n")
        if self.quiet_hours is not None:
            load_zone(self.quiet_hours.timezone)


@dataclass(frozen=True, slots=True)
class NotificationRule:
    id: RuleId
    name: str
    definition: RuleDefinition
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Destination:
    """A channel that a fact goes to, by which terms."""

    channel_id: ChannelId
    recipients: tuple[str, ...] = ()
    after_n: int = 1
    cooldown: timedelta = timedelta(0)
    quiet_hours: QuietHours | None = None
    attachments: tuple[str, ...] = ()


DEFAULT_EVENTS = (
    NoticeEvent.RUN_FAILED,
    NoticeEvent.RECOVERED,
    NoticeEvent.MISSED,
    NoticeEvent.NO_WORKER,
    NoticeEvent.JOB_AUTO_PAUSED,
    NoticeEvent.JOB_PAUSED,
    NoticeEvent.JOB_RESUMED,
    NoticeEvent.CHANNEL_DISABLED,
    NoticeEvent.STUCK,
    NoticeEvent.EXPIRING,
    NoticeEvent.ZONE_DATA_CHANGED,
    NoticeEvent.BUDGET_WARNING,
    NoticeEvent.BUDGET_EXCEEDED,
)
_DEFAULT_ID = RuleId(UUID(int=0))


def default_rule(channels: Iterable[ChannelId]) -> NotificationRule:
    """Return the rule of a workspace that names no other for these events."""
    return NotificationRule(_DEFAULT_ID, "default", RuleDefinition(DEFAULT_EVENTS, tuple(channels)))


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of a workspace. `default` applies to the events that no workspace-wide rule names.

    `channels` are those that may send, by kind: a job's own preference names kinds. `found` holds the jobs that the filters of rules find.
    """

    rules: Sequence[NotificationRule] = ()
    default: NotificationRule | None = None
    channels: Mapping[ChannelKind, Sequence[ChannelId]] = field(default_factory=dict)
    found: Mapping[RuleId, Collection[JobId]] = field(default_factory=dict)

    def destinations(self, names: Iterable[NoticeEvent], job: JobNames | None) -> list[Destination]:
        """Return where a fact goes. For each of its events the closest rules decide; each channel is named once."""
        found: dict[ChannelId, Destination] = {}
        for event in sorted(names):
            if job is not None and job.notify is not None and event in DEFAULT_EVENTS:
                for chosen in self._chosen(job.notify):
                    found.setdefault(chosen.channel_id, chosen)
                continue
            for rule in self._closest(event, job):
                terms = rule.definition
                for channel_id in terms.channels:
                    found.setdefault(
                        channel_id,
                        Destination(
                            channel_id,
                            terms.recipients,
                            terms.after_n,
                            terms.cooldown,
                            terms.quiet_hours,
                            terms.attachments,
                        ),
                    )
        return list(found.values())

    def _chosen(self, notify: NotifyPolicy) -> Iterator[Destination]:
        """Yield the channels of the kinds that a job asks for itself: its own word is closer than any rule."""
        for kind, is_wanted in (
            (ChannelKind.EMAIL, notify.email),
            (ChannelKind.SLACK, notify.slack),
            (ChannelKind.WHATSAPP, notify.whatsapp),
        ):
            for channel_id in self.channels.get(kind, ()) if is_wanted else ():
                yield Destination(channel_id, of_kind(kind, notify.recipients))

    def _closest(self, event: NoticeEvent, job: JobNames | None) -> list[NotificationRule]:
        levels: dict[int, list[NotificationRule]] = {}
        for rule in self.rules:
            if rule.enabled and event in rule.definition.events:
                is_found = job is not None and job.id in self.found.get(rule.id, ())
                level = rule.definition.scope.closeness(job, is_found=is_found)
                if level is not None:
                    levels.setdefault(level, []).append(rule)
        if levels:
            return levels[max(levels)]
        if self.default is not None and event in self.default.definition.events:
            return [self.default]
        return []
