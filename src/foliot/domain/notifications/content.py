"""The content of messages, without markup, and what their texts are made of. Channels add their own markup.

Names and errors come from users: control and bidirectional characters are removed here, markup is escaped by each channel.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from foliot.domain.notifications.incidents import Incident
from foliot.domain.notifications.notice import JobNames, Notice, NoticeEvent, RunNames
from foliot.domain.schedule import load_zone
from foliot.domain.schedule.describe.english import pluralize

LONGEST_TITLE = 70
LONGEST_ERROR = 1_000


class NoticeKind(StrEnum):
    OPENED = "opened"
    REMINDER = "reminder"
    RECOVERED = "recovered"
    INFO = "info"
    DIGEST = "digest"
    TEST = "test"
    EVENT = "event"


class Severity(StrEnum):
    BAD = "bad"
    GOOD = "good"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class ConsoleLink:
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class NoticeContent:
    """One message, without markup. `thread` is the same for all messages of an incident."""

    event: NoticeEvent
    kind: NoticeKind
    severity: Severity
    workspace: str
    title: str
    lines: tuple[str, ...]
    at: datetime
    facts: tuple[tuple[str, str], ...] = ()
    error: str | None = None
    links: tuple[ConsoleLink, ...] = ()
    job_id: UUID | None = None
    job_name: str | None = None
    run_id: UUID | None = None
    incident_id: UUID | None = None
    attachments: tuple[str, ...] = ()
    payload: Mapping[str, Any] | None = None  # of an event: what webhooks carry instead of words

    @property
    def text(self) -> str:
        """Return the message as plain text, without its title."""
        parts = ["\n".join(self.lines)]
        if self.error:
            parts.append(self.error)
        if self.facts:
            parts.append("\n".join(f"{label}: {value}" for label, value in self.facts))
        if self.links:
            parts.append("\n".join(f"{each.label}: {each.url}" for each in self.links))
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class Site:
    """The source of messages: the workspace's slug, and the address of the console for links."""

    workspace: str
    base_url: str | None = None

    def link(self, label: str, path: str) -> tuple[ConsoleLink, ...]:
        return (ConsoleLink(label, f"{self.base_url.rstrip('/')}/console/{path}"),) if self.base_url else ()


@dataclass(frozen=True, slots=True)
class Occasion:
    """The facts that a message about an incident or a job may have."""

    site: Site
    now: datetime
    notice: Notice | None = None
    job: JobNames | None = None
    run: RunNames | None = None
    incident: Incident | None = None
    extra: tuple[str, ...] = ()  # further lines, of facts that came with it

    @property
    def zone(self) -> str:
        return self.job.timezone if self.job else "UTC"

    @property
    def name(self) -> str:
        if self.job is not None:
            return inert(self.job.name)
        subject = self.incident.subject if self.incident else self.notice.subject if self.notice else ""
        return inert(subject.partition(":")[2] or subject)


def inert(text: str, longest: int = 200) -> str:
    """Return one line without control, format and separator characters, shortened."""
    shown = "".join(" " if unicodedata.category(c) in _CONTROL else c for c in text)
    shown = " ".join(shown.split())
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


_CONTROL = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def inert_lines(text: str, longest: int = LONGEST_ERROR) -> str:
    """As `inert`, with line breaks and indents kept: errors hold tracebacks."""
    shown = "\n".join(
        " " * min(len(line) - len(line.lstrip(" ")), 12) + inert(line, longest)
        for line in text[: 4 * longest].splitlines()
    )
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def title_of(site: Site, text: str) -> str:
    return inert(f"[{inert(site.workspace, 20)}] {text}", LONGEST_TITLE)


@dataclass(frozen=True, slots=True)
class DigestEntry:
    kind: NoticeKind
    job_name: str | None
    fingerprint: str
    error: str | None
    failures: int
    at: datetime


def local_time(at: datetime, zone: str) -> str:
    """Format an instant for people, with its zone: `Wed 25 Mar 02:36 CET`."""
    return at.astimezone(load_zone(zone)).strftime("%a %d %b %H:%M %Z")


def span(length: timedelta) -> str:
    """Format a length by its largest unit, such as `5 days`."""
    seconds = max(0, int(length.total_seconds()))
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            return pluralize(seconds // size, unit)
    return pluralize(seconds, "second")
