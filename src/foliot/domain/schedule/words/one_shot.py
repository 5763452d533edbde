"""One-shots: map a wall time in its zone to one instant that exists and lies ahead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from foliot.domain.schedule.kinds import Once
from foliot.domain.schedule.words.clauses import ParsedClauses

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LocalNow:
    """The time and zone in which the phrase was written."""

    now: datetime
    timezone: str
    tz: tzinfo

    @property
    def today(self) -> date:
        return self.now.astimezone(self.tz).date()

    def instant(self, wall: datetime) -> datetime:
        """Return the instant of a wall time: of two the first; one that is jumped over comes out after the jump."""
        return wall.replace(tzinfo=self.tz, fold=0).astimezone(UTC)

    def is_jumped_over(self, wall: datetime) -> bool:
        return self.instant(wall).astimezone(self.tz).replace(tzinfo=None) != wall

    def after_jump(self, wall: datetime) -> datetime:
        """Return the first wall time after the jump that swallows `wall`."""
        low, high = wall.replace(tzinfo=self.tz, fold=1).astimezone(UTC), self.instant(wall)
        before = low.astimezone(self.tz).utcoffset()
        while high - low > MINUTE:
            middle = low + (high - low) // 2
            low, high = (middle, high) if middle.astimezone(self.tz).utcoffset() == before else (low, middle)
        return high.replace(second=0, microsecond=0).astimezone(self.tz)


def at_stamp(said: ParsedClauses, stamp: datetime, place: LocalNow) -> Once:
    if stamp.tzinfo is None:
        return _at_wall(said, "stamp", stamp, place)
    return _ahead(said, "stamp", stamp.astimezone(UTC), place)


def after_delay(said: ParsedClauses, place: LocalNow) -> Once:
    if not said.times:  # to the whole second, which people can read
        at = place.now.astimezone(UTC) + timedelta(seconds=said.delay, microseconds=999_999)
        return _ahead(said, "delay", at.replace(microsecond=0), place)
    if not said.in_days:
        said.refuse(
            "times",
            "A delay in hours or minutes already says the time.",
            "Write 'in 2 hours' or 'tomorrow at 9am'.",
        )
    return on_date(said, "delay", place.today + timedelta(seconds=said.delay), place)


def on_date(said: ParsedClauses, name: str, day: date, place: LocalNow) -> Once:
    is_tonight = said.words(name).lower().endswith("tonight")
    if len(said.times) != 1:
        many = (
            "This names several times; a one-shot has one."
            if said.times
            else "This does not say at what time."
        )
        hour = "9pm" if is_tonight else "9am"
        said.refuse("times" if said.times else name, many, f"Write '{said.words(name)} at {hour}'.")
    at = said.times[0]
    if said.is_midnight:
        is_today = day == place.today
        said.refuse(
            "times",
            "Midnight can be the start or the end of the day.",
            "Write 'today at 23:59' or 'tomorrow at 00:00'."
            if is_today
            else said.rewritten("times", "at 00:00", "at 23:59"),
        )
    if is_tonight and at < time(17):
        evening = f"'tonight at {at.hour + 12}:{at:%M}' or " if 5 <= at.hour < 12 else ""
        said.refuse("times", f"{at:%H:%M} is not tonight.", f"Write {evening}'tomorrow at {at:%H:%M}'.")
    return _at_wall(said, name, datetime.combine(day, at), place)


def _at_wall(said: ParsedClauses, name: str, wall: datetime, place: LocalNow) -> Once:
    if place.is_jumped_over(wall):
        next_valid = place.after_jump(wall)
        said.refuse(
            name,
            f"{wall:%H:%M} does not exist on {wall.date()} in {place.timezone}: the clocks jump over it.",
            f"The next time that exists is {next_valid:%H:%M}.",
        )
    return _ahead(said, name, place.instant(wall), place)


def _ahead(said: ParsedClauses, name: str, at: datetime, place: LocalNow) -> Once:
    if at <= place.now:
        local, now = at.astimezone(place.tz), place.now.astimezone(place.tz)
        is_today = local.date() == now.date()
        hint = f"Write 'tomorrow at {local:%H:%M}'." if is_today else "Choose a time in the future."
        said.refuse(
            name, f"{local:%Y-%m-%d %H:%M} is past: in {place.timezone} it is {now:%Y-%m-%d %H:%M}.", hint
        )
    return Once(at, place.timezone)
