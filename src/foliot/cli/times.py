"""Time for people: how far away, what the wall clock shows there, and instants as people write them in flags."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from foliot.domain.errors import FoliotError, Invalid, Mark

ZONES = "/zoneinfo/"
_AHEAD = re.compile(r"([+-]?)\s*((?:\d+(?:\.\d+)?\s*[wdhms]\s*)+)(?:\s+(ago))?", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([wdhms])", re.ASCII)
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
LIKE_THIS = (
    'Write it like 2027-01-02T18:00:00Z, "2027-01-02 18:00", 18:00, 2h (from now), -2h, or "tomorrow at 9am".'
)


def relative(distance: timedelta) -> str:
    """The two largest units: in 4 h 12 m, in 3 d 2 h, in 12 s, 5 m ago."""
    if round(abs(distance).total_seconds()) == 0:
        return "now"
    said = format_duration(abs(distance))
    return f"in {said}" if distance > timedelta(0) else f"{said} ago"


def format_duration(length: timedelta) -> str:
    """The two largest units of a duration: 4 h 12 m, 12 s."""
    left = round(length.total_seconds())
    units = []
    for name, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        amount, left = divmod(left, size)
        units.append((amount, name))
    first = next((place for place, (amount, _) in enumerate(units) if amount), None)
    if first is None:
        return f"{length / timedelta(milliseconds=1):.0f} ms" if length else "0 s"
    return " ".join(f"{amount} {name}" for amount, name in units[first : first + 2] if amount)


def relative_short(instant: datetime, now: datetime) -> str:
    """One unit, as a list has it: 2 m ago, in 3 h."""
    away = abs(instant - now).total_seconds()
    amount, name = next(
        (
            (int(away // size), name)
            for name, size in (("d", 86_400), ("h", 3_600), ("m", 60))
            if away >= size * (2 if name == "d" else 1)
        ),
        (int(away), "s"),
    )
    if amount == 0:
        return "now"
    return f"in {amount} {name}" if instant > now else f"{amount} {name} ago"


def local_time(instant: datetime, zone: str) -> str:
    """Sat 13 Mar 2027 09:00 EST; seconds only where there are some."""
    return local_times([instant], zone)[0]


def local_times(instants: Iterable[datetime], zone: str) -> list[str]:
    """Of one table: seconds everywhere, or nowhere."""
    local = [instant.astimezone(load_zone(zone)) for instant in instants]
    form = "%a %d %b %Y %H:%M:%S %Z" if any(each.second for each in local) else "%a %d %b %Y %H:%M %Z"
    return [each.strftime(form) for each in local]


def local_time_relative(instant: datetime, zone: str, now: datetime) -> str:
    """Sat 13 Mar 2027 09:00 EST (in 4 h)."""
    return f"{local_time(instant, zone)} ({relative(instant - now)})"


def load_zone(name: str) -> ZoneInfo:
    """UTC for a zone that this machine has not heard of: the server's data may be newer."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")


def local_zone() -> str:
    """The name of this machine's zone; UTC where it has none."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if not named:
        try:
            named = str(Path("/etc/localtime").resolve()).partition(ZONES)[2]
        except OSError:
            named = ""
    try:
        return ZoneInfo(named).key if named else "UTC"
    except (KeyError, ValueError, OSError):
        return "UTC"


def parse_time(text: str, now: datetime, zone: str, *, flag: str, past: bool = False) -> datetime:
    """An instant as a flag has it: RFC 3339, wall-clock time in `zone`, a distance from now, or words.

    A bare time of day is the next one, or, where the flag looks back (`past`), the last.
    """
    text = text.strip()
    found = _iso(text, zone) or _distance(text, now, past=past) or _time_of_day(text, now, zone, past=past)
    if found is not None:
        return found
    if text == "now":
        return now
    from foliot.domain.schedule.kinds import Once
    from foliot.domain.schedule.parse import Reading, read_schedule

    try:
        said = read_schedule(text, now, Reading(zone))
    except FoliotError as error:
        raise _unread(text, flag, error.hint) from None
    if not isinstance(said, Once):
        raise _unread(text, flag, "These words mean more than one time.")
    return said.at.astimezone(UTC)


def _iso(text: str, zone: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=load_zone(zone))).astimezone(UTC)


def _distance(text: str, now: datetime, *, past: bool) -> datetime | None:
    found = _AHEAD.fullmatch(text)
    if found is None:
        return None
    now = now.replace(microsecond=0)
    seconds = sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(found[2]))
    back = found[1] == "-" or found[3] is not None or (past and not found[1])
    try:
        return now - timedelta(seconds=seconds) if back else now + timedelta(seconds=seconds)
    except OverflowError:
        return None


def _time_of_day(text: str, now: datetime, zone: str, *, past: bool) -> datetime | None:
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    local = now.astimezone(load_zone(zone))
    there = local.replace(hour=int(found[1]), minute=int(found[2]), second=int(found[3] or 0), microsecond=0)
    if past and there > local:
        there -= timedelta(days=1)
    if not past and there <= local:
        there += timedelta(days=1)
    return there.astimezone(UTC)


def _unread(text: str, flag: str, why: str | None) -> Invalid:
    return Invalid(
        f"{flag} does not name a time." + (f" {why}" if why else ""),
        hint=LIKE_THIS,
        mark=Mark(text, 0, len(text)),
    )
