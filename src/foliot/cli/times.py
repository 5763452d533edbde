"""Times for people: distances, local times, and the times that flags accept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from foliot.domain.errors import FoliotError, Invalid, Mark

ZONEINFO = "/zoneinfo/"
_DISTANCE = re.compile(r"([+-]?)\s*((?:\d+(?:\.\d+)?\s*[wdhms]\s*)+)(?:\s+(ago))?", re.ASCII)
_DISTANCE_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([wdhms])", re.ASCII)
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
EXAMPLES = 'Examples: 2027-01-02T18:00:00Z, "2027-01-02 18:00", 18:00, 2h (from now), -2h, "tomorrow at 9am".'


def relative(distance: timedelta) -> str:
    """Use the two largest units: in 4 h 12 m, in 3 d 2 h, in 12 s, 5 m ago."""
    if round(abs(distance).total_seconds()) == 0:
        return "now"
    text = format_duration(abs(distance))
    return f"in {text}" if distance > timedelta(0) else f"{text} ago"


def format_duration(length: timedelta) -> str:
    """Use the two largest units: 4 h 12 m, 12 s."""
    left = round(length.total_seconds())
    units = []
    for name, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        amount, left = divmod(left, size)
        units.append((amount, name))
    first = next((index for index, (amount, _) in enumerate(units) if amount), None)
    if first is None:
        return f"{length / timedelta(milliseconds=1):.0f} ms" if length else "0 s"
    return " ".join(f"{amount} {name}" for amount, name in units[first : first + 2] if amount)


def format_milliseconds(milliseconds: int) -> str:
    """812 ms, 4 s, 4 h 12 m."""
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    return format_duration(timedelta(milliseconds=milliseconds))


def relative_short(instant: datetime, now: datetime) -> str:
    """Use one unit, for lists: 2 m ago, in 3 h."""
    distance = abs(instant - now).total_seconds()
    amount, name = next(
        (
            (int(distance // size), name)
            for name, size in (("d", 86_400), ("h", 3_600), ("m", 60))
            if distance >= size * (2 if name == "d" else 1)
        ),
        (int(distance), "s"),
    )
    if amount == 0:
        return "now"
    return f"in {amount} {name}" if instant > now else f"{amount} {name} ago"


def local_time(instant: datetime, zone: str) -> str:
    """Sat 13 Mar 2027 09:00 EST, with seconds if they are not zero."""
    return local_times([instant], zone)[0]


def local_times(instants: Iterable[datetime], zone: str) -> list[str]:
    """Format the times of one table: all with seconds, or all without."""
    local = [instant.astimezone(load_zone(zone)) for instant in instants]
    pattern = "%a %d %b %Y %H:%M:%S %Z" if any(each.second for each in local) else "%a %d %b %Y %H:%M %Z"
    return [each.strftime(pattern) for each in local]


def local_time_relative(instant: datetime, zone: str, now: datetime) -> str:
    """Sat 13 Mar 2027 09:00 EST (in 4 h)."""
    return f"{local_time(instant, zone)} ({relative(instant - now)})"


def load_zone(name: str) -> ZoneInfo:
    """Return the zone, or UTC if this machine does not know it: the server's zone data may be newer."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")


def local_zone() -> str:
    """Return the name of this machine's zone, or UTC if it has none."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name:
        try:
            name = str(Path("/etc/localtime").resolve()).partition(ZONEINFO)[2]
        except OSError:
            name = ""
    try:
        return ZoneInfo(name).key if name else "UTC"
    except (KeyError, ValueError, OSError):
        return "UTC"


def parse_time(text: str, now: datetime, zone: str, *, flag: str, past: bool = False) -> datetime:
    """Read an instant: RFC 3339, a local time in `zone`, a distance from now, or words.

    A bare time of day is the next one, or, with `past`, the last one.
    """
    text = text.strip()
    found = _iso(text, zone) or _distance(text, now, past=past) or _time_of_day(text, now, zone, past=past)
    if found is not None:
        return found
    if text == "now":
        return now
    from foliot.domain.schedule.kinds import Once
    from foliot.domain.schedule.parse import ParseOptions, read_schedule

    try:
        schedule = read_schedule(text, now, ParseOptions(zone))
    except FoliotError:
        raise _not_a_time(text, flag) from None
    if not isinstance(schedule, Once):
        raise _not_a_time(text, flag, "It means more than one time.")
    return schedule.at.astimezone(UTC)


def parse_past_stretch(text: str, now: datetime, zone: str) -> tuple[datetime, datetime] | None:
    """Read a stretch of the past in words: today, yesterday, last night, this morning, monday, last week. None for other text."""
    words = " ".join(text.lower().split()).removeprefix("on ").removeprefix("in the ")
    midnight = now.astimezone(load_zone(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    day, hour = timedelta(days=1), timedelta(hours=1)
    monday = midnight - midnight.weekday() * day
    known = {
        "today": (midnight, midnight + day),
        "yesterday": (midnight - day, midnight),
        "tonight": (midnight + 18 * hour, midnight + 30 * hour),
        "last night": (midnight - 6 * hour, midnight + 6 * hour),
        "the night": (midnight - 6 * hour, midnight + 6 * hour),
        "this morning": (midnight, midnight + 12 * hour),
        "this afternoon": (midnight + 12 * hour, midnight + 18 * hour),
        "this evening": (midnight + 18 * hour, midnight + day),
        "yesterday morning": (midnight - day, midnight - 12 * hour),
        "yesterday afternoon": (midnight - 12 * hour, midnight - 6 * hour),
        "yesterday evening": (midnight - 6 * hour, midnight),
        "this week": (monday, monday + 7 * day),
        "last week": (monday - 7 * day, monday),
    }
    if words in known:
        return known[words]
    name = words.removeprefix("last ")
    for place, weekday in enumerate(_WEEKDAYS):
        if name in (weekday, weekday[:3]):
            back = (midnight.weekday() - place) % 7 or 7
            return midnight - back * day, midnight - (back - 1) * day
    return None


def parse_past_time(text: str, now: datetime, zone: str) -> datetime | None:
    """Read a day of the past with a time: `yesterday 14:00`, `last monday at 9:30`. None for other text."""
    words, _, clock = text.lower().strip().rpartition(" ")
    stretch = parse_past_stretch(words.removesuffix(" at"), now, zone)
    found = _TIME_OF_DAY.fullmatch(clock)
    if stretch is None or found is None:
        return None
    at = stretch[0].replace(hour=int(found[1]), minute=int(found[2]), second=int(found[3] or 0))
    if words.removesuffix(" at") == "last night" and at.hour < 12:
        at += timedelta(days=1)
    return at.astimezone(UTC)


def _iso(text: str, zone: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=load_zone(zone))).astimezone(UTC)


def _distance(text: str, now: datetime, *, past: bool) -> datetime | None:
    found = _DISTANCE.fullmatch(text)
    if found is None:
        return None
    now = now.replace(microsecond=0)
    seconds = sum(float(amount) * _SECONDS[unit] for amount, unit in _DISTANCE_PART.findall(found[2]))
    back = found[1] == "-" or found[3] is not None or (past and not found[1])
    try:
        return now - timedelta(seconds=seconds) if back else now + timedelta(seconds=seconds)
    except OverflowError:
        return None


def _time_of_day(text: str, now: datetime, zone: str, *, past: bool) -> datetime | None:
    found = _TIME_OF_DAY.fullmatch(text)
    if found is None:
        return None
    local = now.astimezone(load_zone(zone))
    at = local.replace(hour=int(found[1]), minute=int(found[2]), second=int(found[3] or 0), microsecond=0)
    if past and at > local:
        at -= timedelta(days=1)
    if not past and at <= local:
        at += timedelta(days=1)
    return at.astimezone(UTC)


def _not_a_time(text: str, flag: str, why: str | None = None) -> Invalid:
    return Invalid(
        f"{flag} is not a time." + (f" {why}" if why else ""), hint=EXAMPLES, mark=Mark(text, 0, len(text))
    )
