"""The world of a simulation: workspaces and their jobs, all from the seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from random import Random

from foliot.domain.definition import Definition, Spec
from foliot.domain.dependencies import EdgeCondition, EdgeMode
from foliot.domain.policy import (
    Backoff,
    Breaker,
    BreakerAction,
    Limits,
    Misfire,
    MisfireRule,
    OnLost,
    Overlap,
    OverlapRule,
    Retry,
)
from foliot.domain.run import Target, TargetKind
from foliot.domain.schedule import (
    Calendar,
    CalendarKind,
    Cron,
    Gap,
    Interval,
    IntervalMode,
    Manual,
    Once,
    Otherwise,
    OverlapTime,
    Schedule,
    Weekly,
    Window,
)

# In these weeks clocks in the north skip an hour, and clocks in the south repeat one.
SPRING = datetime(2027, 3, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
TYPE = "simulated"
SLICE = 250  # workspaces: an instant costs the same however many there are, so slices are large
SHARED = "database"  # what some jobs of a workspace share
BOX = Target(TargetKind.HOST, "box")  # the host of every fourth workspace
BOX_PLACES = 3  # jobs of such a workspace that run there: two that change something, then one that reads
TOKEN = "token"  # noqa: S105  # the name of the secret that those jobs use
ZONES = (
    "UTC", "America/New_York", "America/Chicago", "America/Los_Angeles", "America/Sao_Paulo", "America/Santiago",
    "America/Havana", "Europe/London", "Europe/Paris", "Europe/Berlin", "Europe/Chisinau", "Africa/Cairo", "Africa/Casablanca",
    "Asia/Jerusalem", "Asia/Beirut", "Asia/Kolkata", "Asia/Tokyo", "Australia/Sydney", "Australia/Lord_Howe",
    "Pacific/Auckland",
)  # fmt: skip


class Cadence(StrEnum):
    DAILY = "daily"
    HOURLY = "hourly"
    QUARTERLY = "quarterly"
    MINUTELY = "minutely"


class Mix(StrEnum):
    """How busy the minutely jobs are: all day long, or for a few hours of it."""

    FULL = "full"
    LIGHT = "light"


SHARES = {Cadence.DAILY: 60, Cadence.HOURLY: 30, Cadence.QUARTERLY: 9, Cadence.MINUTELY: 1}
LENGTHS = {
    Cadence.DAILY: 24 * HOUR,
    Cadence.HOURLY: HOUR,
    Cadence.QUARTERLY: 15 * MINUTE,
    Cadence.MINUTELY: MINUTE,
}


@dataclass(frozen=True, slots=True)
class Size:
    workspaces: int = 50
    jobs: int = 10  # of each workspace
    days: int = 7
    seed: int = 1
    mix: Mix = Mix.LIGHT
    start: datetime = SPRING
    with_faults: bool = True
    with_caps: bool = True
    first: int = 0  # the number of its first workspace: a slice of a larger world

    @property
    def lot(self) -> str:
        """Return the seed of all random numbers: every slice has its own."""
        return f"{self.seed}/{self.first}" if self.first else str(self.seed)

    def slices(self) -> tuple[Size, ...]:
        """Divide the world into worlds of their own. They follow from its size alone, so any number of processes may share them."""
        return tuple(
            replace(self, first=self.first + start, workspaces=min(SLICE, self.workspaces - start))
            for start in range(0, self.workspaces, SLICE)
        )

    @property
    def end(self) -> datetime:
        return self.start + timedelta(days=self.days)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The behaviour of a job's handler: how long it takes, and how often it fails or hangs."""

    typical: timedelta
    failing: float
    hanging: float = 0.01


@dataclass(frozen=True, slots=True)
class Upstream:
    """The job so many places earlier in the same workspace."""

    places: int
    on: EdgeCondition
    mode: EdgeMode


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to create."""

    workspace: int
    definition: Definition
    behaviour: Behaviour
    calendar: Calendar | None = None
    upstream: Upstream | None = None

    @property
    def name(self) -> str:
        return self.definition.name


def world(size: Size) -> Iterator[NewJob]:
    chance = Random(f"{size.lot}/world")
    cadences = [cadence for cadence, share in SHARES.items() for _ in range(share)]
    for workspace in range(size.workspaces):
        for place in range(size.jobs):
            number = workspace * size.jobs + place
            if number % len(cadences) == 0:
                chance.shuffle(cadences)
            made = _job(size, chance, cadences[number % len(cadences)], workspace, place)
            yield _on_host(made, place) if has_host(size, workspace) and place < BOX_PLACES else made


def has_host(size: Size, workspace: int) -> bool:
    return (size.first + workspace) % 4 == 1


def _on_host(made: NewJob, place: int) -> NewJob:
    definition = made.definition
    spec = replace(definition.spec, target=BOX, read_only=place == BOX_PLACES - 1)
    config = {"token": {"secret": TOKEN}}
    return replace(made, definition=replace(definition, spec=spec, config=config))


def caps(size: Size) -> Iterator[tuple[int, str, int]]:
    """The workspaces that may not do all at once: how many runs of theirs, or of those that share something."""
    chance = Random(f"{size.lot}/caps")
    for workspace in range(size.workspaces if size.with_caps else 0):
        if chance.random() < 0.15:
            yield workspace, "", chance.randint(3, 6)
        if chance.random() < 0.15:
            yield workspace, SHARED, chance.randint(1, 2)


def other_schedule(chance: Random, size: Size, schedule: Schedule) -> Schedule:
    """What an edit may turn a schedule into: another of about the same pace."""
    match schedule:
        case Interval():
            every = schedule.every * chance.choice((0.5, 1, 2))
            return Interval(max(every, MINUTE), mode=schedule.mode)
        case Cron() if schedule.expr.split()[0] in {"*", "*/15"}:
            return Cron(schedule.expr, chance.choice(ZONES))
        case Cron():
            return _cron(chance, Cadence.DAILY, size.mix)
        case _:
            return schedule


def _job(size: Size, chance: Random, cadence: Cadence, workspace: int, place: int) -> NewJob:
    schedule, upstream = _schedule(chance, cadence, size, place)
    calendar = _calendar(chance) if chance.random() < 0.06 else None
    spec = Spec(
        schedule=schedule,
        type=TYPE,
        priority=chance.choice((0, 0, 0, -5, 5)),
        start_at=size.start + _some(chance, HOUR, 48 * HOUR) if chance.random() < 0.04 else None,
        end_at=size.start + _some(chance, 24 * HOUR, (size.end - size.start))
        if chance.random() < 0.04
        else None,
        max_runs=chance.randint(1, 60) if chance.random() < 0.04 else None,
        window=_window(chance) if chance.random() < 0.06 else None,
        retry=_retry(chance),
        overlap=Overlap(chance.choice(list(OverlapRule)), max_queued=chance.randint(1, 4)),
        misfire=Misfire(chance.choice(list(MisfireRule)), max_catch_up=chance.randint(1, 6)),
        breaker=Breaker(chance.randint(3, 8), chance.choice((BreakerAction.NONE, *BreakerAction))),
        limits=_limits(chance),
        concurrency_key=SHARED if chance.random() < 0.1 else None,
    )
    behaviour = Behaviour(
        typical=min(LENGTHS[cadence] * chance.choice((0.1, 0.3, 0.3, 1.2)), 2 * HOUR),
        failing=chance.choice((0, 0.02, 0.1, 0.1, 0.5)) if chance.random() < 0.95 else 0.95,
    )
    return NewJob(
        workspace, Definition(f"w{size.first + workspace}-j{place}", spec), behaviour, calendar, upstream
    )


def _schedule(chance: Random, cadence: Cadence, size: Size, place: int) -> tuple[Schedule, Upstream | None]:
    roll = chance.random()
    if cadence is Cadence.DAILY and roll < 0.05:
        return Once(size.start + _some(chance, HOUR, size.end - size.start), chance.choice(ZONES)), None
    if cadence is Cadence.DAILY and roll < 0.10 and place:
        return Manual(), Upstream(
            chance.randint(1, place), chance.choice(list(EdgeCondition)), EdgeMode.TRIGGER
        )
    if cadence is Cadence.HOURLY and roll < 0.20:
        mode = IntervalMode.FIXED_DELAY if roll < 0.08 else IntervalMode.FIXED_RATE
        return Interval(HOUR * chance.choice((0.5, 1, 2)), mode=mode), None
    gate = (
        Upstream(chance.randint(1, place), EdgeCondition.SUCCESS, EdgeMode.GATE)
        if place and roll > 0.96
        else None
    )
    return _cron(chance, cadence, size.mix), gate


def _cron(chance: Random, cadence: Cadence, mix: Mix) -> Cron:
    minute, hour = chance.randrange(0, 60, 10), chance.choice((*range(5), *range(24)))
    match cadence:
        case Cadence.DAILY:
            expr = f"{minute} {hour} * * {chance.choice(('*', '*', '*', '1-5'))}"
        case Cadence.HOURLY:
            expr = f"{minute} {chance.choice(('*', '*', '0-23'))} * * *"
        case Cadence.QUARTERLY:
            expr = "*/15 * * * *"
        case Cadence.MINUTELY:
            expr = "* * * * *" if mix is Mix.FULL else f"* {chance.choice((1, 2))} * * *"
    spread = 5 * MINUTE if cadence is Cadence.DAILY and chance.random() < 0.05 else timedelta(0)
    return Cron(
        expr,
        chance.choice(ZONES[:2] if cadence is Cadence.MINUTELY and mix is Mix.LIGHT else ZONES),
        gap=chance.choice(list(Gap)),
        overlap_time=chance.choice(list(OverlapTime)),
        spread=spread,
    )


def _retry(chance: Random) -> Retry:
    return chance.choice((
        Retry(0, Backoff.NONE),
        Retry(2, Backoff.FIXED, base=2 * MINUTE),
        Retry(3, Backoff.LIST, delays=(MINUTE, 5 * MINUTE), jitter=0.5),
        Retry(3, Backoff.EXPONENTIAL, base=5 * MINUTE, cap=10 * MINUTE, past_next=True),
        Retry(1, Backoff.INTERVAL_EXPONENTIAL, base=MINUTE),
    ))  # fmt: skip


def _limits(chance: Random) -> Limits:
    return Limits(
        timeout=chance.choice((5, 20, 60, 150)) * MINUTE,
        start_deadline=chance.choice((10, 30)) * MINUTE if chance.random() < 0.1 else None,
        on_lost=OnLost.FAIL if chance.random() < 0.15 else OnLost.REPEAT,
    )


def _window(chance: Random) -> Window:
    start = chance.randrange(24)
    end = (start + chance.randint(6, 16)) % 24
    return Window(time(start), time(end), otherwise=chance.choice(list(Otherwise)))


def _calendar(chance: Random) -> Calendar:
    start, kind = chance.randrange(24), chance.choice(list(CalendarKind))
    length = chance.randint(2, 8) if kind is CalendarKind.BLACKOUT else chance.randint(12, 20)
    stretch = Weekly(time(start), time((start + length) % 24))
    return Calendar("hours", kind, (stretch,), chance.choice(ZONES), chance.choice(list(Otherwise)))


def _some(chance: Random, least: timedelta, most: timedelta) -> timedelta:
    """On the whole minute, so that instants coincide as they do in life."""
    return MINUTE * chance.randint(least // MINUTE, max(most, least) // MINUTE)
