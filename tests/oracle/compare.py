"""Engine against oracle around one clock change: one `Case` for every zone that sees the same offsets there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from foliot.domain.schedule import Cron, DayMatch, Gap, OverlapTime, PlannedTime, Timetable, times_between
from tests.oracle.expect import EPOCH, MARGIN, Clock, expected, watch
from tests.oracle.fields import Matcher, Pattern
from tests.oracle.tzif import Change, Offsets, read_offsets, zones_by_data

REACH = timedelta(hours=36)
GAPS = tuple(Gap)
OVERLAPS = tuple(OverlapTime)
NO_LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class Case:
    """A clock change and the zones whose clocks move exactly so within reach of it: the oracle looks once for all."""

    change: Change
    zones: tuple[str, ...]

    @property
    def at(self) -> datetime:
        return EPOCH + timedelta(seconds=self.change.at)


@dataclass(frozen=True, slots=True)
class Difference:
    zone: str
    cron: Cron
    start: datetime
    end: datetime
    missing: tuple[PlannedTime, ...]  # the oracle has them, the engine has not
    extra: tuple[PlannedTime, ...]  # the other way round

    def __str__(self) -> str:
        cron = self.cron
        command = f"./dev oracle --zones '^{self.zone}$' --years {self.start.year}-{self.end.year} --expr '{cron.expr}'"
        head = (
            f"{cron.expr!r} {self.zone} gap={cron.gap} overlap_time={cron.overlap_time} day_match={cron.day_match}"
            f" every_n_weeks={cron.every_n_weeks} seconds={cron.seconds}, ({self.start} .. {self.end}]"
        )
        lines = [f"  expected {_line(planned)}" for planned in self.missing[:5]]
        lines += [f"  got      {_line(planned)}" for planned in self.extra[:5]]
        return "\n".join((head, *lines, f"  again: {command}"))


def cases(first_year: int, last_year: int, wanted: Iterable[str]) -> list[Case]:
    """Every change of every wanted zone in these years; zones with identical data count once."""
    names = set(wanted)
    begin = int(datetime(first_year, 1, 1, tzinfo=UTC).timestamp())
    end = int(datetime(last_year + 1, 1, 1, tzinfo=UTC).timestamp())
    around = int((REACH + MARGIN).total_seconds())
    groups: dict[tuple[Change, Offsets], list[str]] = defaultdict(list)
    for data, aliases in zones_by_data().items():
        chosen = next((name for name in aliases if name in names), None)
        if chosen is None:
            continue
        offsets = read_offsets(data)
        for change in offsets.changes:
            if begin <= change.at < end:
                groups[change, offsets.within(change.at - around, change.at + around)].append(chosen)
    found = [Case(change, tuple(zones)) for (change, _), zones in groups.items()]
    return sorted(found, key=lambda case: (case.change.at, case.zones))


def compare(case: Case, patterns: Iterable[Pattern]) -> tuple[int, list[Difference]]:
    """How many planned times were compared, and where the two disagree."""
    instants = 0
    differences = []
    clocks: dict[int, Clock] = {}
    for index, pattern in enumerate(patterns):
        reach = timedelta(hours=pattern.reach)
        if pattern.reach not in clocks:
            clocks[pattern.reach] = watch(case.zones[0], case.at - reach, case.at + reach)
        clock = clocks[pattern.reach]
        matcher = Matcher(pattern)
        for gap, overlap in policies(pattern, case.change, index):
            answer = expected(matcher, clock, gap, overlap)
            for zone in case.zones:
                cron = cron_of(pattern, zone, gap, overlap)
                got = times_between(Timetable(cron), clock.start, clock.end, limit=NO_LIMIT)
                instants += len(answer)
                if got != answer:
                    missing = tuple(planned for planned in answer if planned not in got)
                    extra = tuple(planned for planned in got if planned not in answer)
                    differences.append(Difference(zone, cron, clock.start, clock.end, missing, extra))
    return instants, differences


def policies(pattern: Pattern, change: Change, turn: int) -> Iterator[tuple[Gap, OverlapTime]]:
    """The policy a change can bring into play takes each of its values; the other one, which must not matter, takes turns."""
    turn += change.at // 86400
    gap, overlap = GAPS[turn % 3], OVERLAPS[turn // 3 % 3]
    if pattern.is_open or change.after == change.before:
        yield gap, overlap
    elif change.after > change.before:
        yield from ((each, overlap) for each in GAPS)
    else:
        yield from ((gap, each) for each in OVERLAPS)


def cron_of(pattern: Pattern, zone: str, gap: Gap, overlap: OverlapTime) -> Cron:
    return Cron(
        pattern.expr,
        timezone=zone,
        seconds=pattern.seconds,
        day_match=DayMatch.AND if pattern.both_days else DayMatch.OR,
        every_n_weeks=pattern.every_n_weeks,
        anchor=pattern.anchor,
        gap=gap,
        overlap_time=overlap,
    )


def _line(planned: PlannedTime) -> str:
    due = "" if planned.due_at == planned.planned_for else f" due {planned.due_at.isoformat()}"
    return (
        f"{planned.planned_for.isoformat()} local {planned.local.isoformat()} fold {planned.fold}"
        f" skip {planned.skip} dst {planned.dst}{due}"
    )
