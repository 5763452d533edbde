"""The agenda as a calendar file (RFC 5545)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from foliot.domain.lifecycle import RunStatus
from foliot.services.jobs.agenda import AgendaItem, AgendaPage, Fate
from foliot.services.runs.history import RunRecord

LONGEST_LINE = 75  # octets
SHORTEST = timedelta(minutes=1)  # programs hide events without an extent
GAP = timedelta(hours=1)  # records of one job that follow each other sooner are one event
FAILED = frozenset((RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.INTERRUPTED))
STATUSES = {Fate.RUNS: "CONFIRMED", Fate.HELD: "TENTATIVE", Fate.SKIPPED: "CANCELLED"}


@dataclass(frozen=True, slots=True)
class _Event:
    uid: str
    start: datetime
    end: datetime
    summary: str
    status: str


def calendar_file(plans: AgendaPage, ran: Iterable[RunRecord], name: str, now: datetime) -> str:
    """One event for each line of the agenda, and for what ran before; several times of one job that follow each other are one event."""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Foliot//Agenda//EN",
        "CALSCALE:GREGORIAN",
        f"X-WR-CALNAME:{_escape(name)}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
    ]
    for event in (*_recorded(ran, now), *map(_planned, plans.items)):
        lines += [
            "BEGIN:VEVENT",
            f"UID:{event.uid}@foliot",
            f"DTSTAMP:{_stamp(now)}",
            f"DTSTART:{_stamp(event.start)}",
            f"DTEND:{_stamp(event.end)}",
            f"SUMMARY:{_escape(event.summary)}",
            f"STATUS:{event.status}",
            "TRANSP:TRANSPARENT",
            "END:VEVENT",
        ]
    lines.append("END:VCALENDAR")
    return "".join(f"{_fold(line)}\r\n" for line in lines)


def _planned(item: AgendaItem) -> _Event:
    line = item.line
    start = line.first.due_at
    end = max((line.last.due_at if line.last else start) + (item.expected or SHORTEST), start + SHORTEST)
    many = "" if line.last is None else f" ({line.count} times)" if line.count else " (many times)"
    why = f" [{line.reason.value if line.reason else line.fate.value}]" if line.fate is not Fate.RUNS else ""
    return _Event(
        _uid(item.job_id, line.first.planned_for), start, end, item.name + many + why, STATUSES[line.fate]
    )


def _recorded(ran: Iterable[RunRecord], now: datetime) -> Iterator[_Event]:
    by_job: dict[object, list[RunRecord]] = {}
    for run in sorted(ran, key=_began):
        group = by_job.setdefault(run.job_id, [])
        if group and _began(run) - _ended(group[-1], now) >= GAP:
            yield _event_of(group, now)
            group.clear()
        group.append(run)
    for group in by_job.values():
        yield _event_of(group, now)


def _event_of(runs: Sequence[RunRecord], now: datetime) -> _Event:
    """What became of the runs: one by its status, several by their numbers."""
    first = runs[0]
    failed = sum(run.status in FAILED for run in runs)
    if len(runs) == 1:
        what = f" [{first.skip_reason.value if first.skip_reason else first.status.value}]"
    else:
        what = f" ({len(runs)} recorded{f', {failed} failed' if failed else ''})"
    start = _began(first)
    end = max(start + SHORTEST, *(_ended(run, now) for run in runs))
    is_skipped = all(run.status is RunStatus.SKIPPED for run in runs)
    name = (first.job_name or str(first.job_id)) + what
    return _Event(
        _uid(first.job_id, first.planned_for), start, end, name, "CANCELLED" if is_skipped else "CONFIRMED"
    )


def _began(run: RunRecord) -> datetime:
    return run.started_at or run.planned_for


def _ended(run: RunRecord, now: datetime) -> datetime:
    if run.finished_at is not None and run.started_at is not None:
        return run.finished_at
    return now if run.status is RunStatus.RUNNING else run.planned_until or _began(run)


def _uid(job_id: object, planned_for: datetime) -> str:
    """Return the same for a planned time and for its record, so that programs replace the one by the other."""
    return f"{job_id}-{_stamp(planned_for)}"


def _stamp(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _escape(text: str) -> str:
    """Text as a value: what would end the line or part the value is escaped, control characters are dropped."""
    text = text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\\n")
    return "".join(each for each in text if each.isprintable())


def _fold(line: str) -> str:
    """Lines have at most 75 octets; a longer one goes on after a line break and a blank. No character is cut."""
    parts, size = [""], 0
    for each in line:
        octets = len(each.encode("utf-8", "replace"))
        if size + octets > LONGEST_LINE:
            parts.append(" ")
            size = 1
        parts[-1] += each
        size += octets
    return "\r\n".join(parts)
