"""The agenda as a calendar file (RFC 5545)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from foliot.services.jobs.agenda import AgendaItem, AgendaPage, Fate

LONGEST_LINE = 75  # octets
SHORTEST = timedelta(minutes=1)  # programs hide events without an extent
STATUSES = {Fate.RUNS: "CONFIRMED", Fate.HELD: "TENTATIVE", Fate.SKIPPED: "CANCELLED"}


def calendar_file(plans: AgendaPage, name: str, now: datetime) -> str:
    """One event for each line of the agenda; several times of one job that follow each other are one event."""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Foliot//Agenda//EN",
        "CALSCALE:GREGORIAN",
        f"X-WR-CALNAME:{_escape(name)}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
    ]
    for item in plans.items:
        lines += _event(item, now)
    lines.append("END:VCALENDAR")
    return "".join(f"{_fold(line)}\r\n" for line in lines)


def _event(item: AgendaItem, now: datetime) -> list[str]:
    line = item.line
    start = line.first.due_at
    end = max((line.last.due_at if line.last else start) + (item.expected or SHORTEST), start + SHORTEST)
    many = "" if line.last is None else f" ({line.count} times)" if line.count else " (many times)"
    why = f" [{line.reason.value if line.reason else line.fate.value}]" if line.fate is not Fate.RUNS else ""
    return [
        "BEGIN:VEVENT",
        f"UID:{item.job_id}-{_stamp(line.first.planned_for)}@foliot",
        f"DTSTAMP:{_stamp(now)}",
        f"DTSTART:{_stamp(start)}",
        f"DTEND:{_stamp(end)}",
        f"SUMMARY:{_escape(item.name + many + why)}",
        f"STATUS:{STATUSES[line.fate]}",
        "TRANSP:TRANSPARENT",
        "END:VEVENT",
    ]


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
