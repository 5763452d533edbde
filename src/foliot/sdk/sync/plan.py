"""What is wanted against what is there: what to create, what to change and how, what to leave, what to archive. Pure.

Why: docs/decisions/805-jobs-managed-by-code.md
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from foliot.sdk.errors import Invalid
from foliot.sdk.sync.entries import Entry, definition_of
from foliot.wire.jobs import JobOut

Settle = Callable[[Mapping[str, Any]], Mapping[str, Any]]
MINE_ALONE = ("anchor", "timezone")  # what the server fills in where a schedule leaves it out


@dataclass(frozen=True, slots=True)
class Change:
    pointer: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Update:
    entry: Entry
    job: JobOut
    changes: tuple[Change, ...]
    keeps_schedule: bool


@dataclass(frozen=True, slots=True)
class Plan:
    create: tuple[Entry, ...]  # upstreams before those that depend on them
    update: tuple[Update, ...]
    same: tuple[JobOut, ...]
    gone: tuple[JobOut, ...]  # made from this file or app once, and no longer in it
    untouched: tuple[JobOut, ...]

    @property
    def changes_nothing(self) -> bool:
        return not self.create and not self.update


def plan(
    entries: Sequence[Entry],
    jobs: Sequence[JobOut],
    names: Mapping[UUID, str],
    calendars: Mapping[UUID, str],
    *,
    settle: Settle,
    is_mine: Callable[[JobOut], bool],
) -> Plan:
    """`settle` says what a schedule is in full that must be settled; `is_mine` which jobs were made from the same source.

    Raises Invalid for names that mean nothing.
    """
    by_name: defaultdict[str, list[JobOut]] = defaultdict(list)
    for job in jobs:
        by_name[job.name].append(job)
    _check_names(entries, by_name, set(calendars.values()) | {str(each) for each in calendars})
    create: list[Entry] = []
    update: list[Update] = []
    same: list[Update] = []
    for entry in entries:
        found = by_name.get(entry.name)
        if not found:
            create.append(entry)
            continue
        changed = _compared(entry, found[0], names, calendars, settle)
        (update if changed.changes else same).append(changed)
    wanted = {entry.name for entry in entries}
    others = [job for job in jobs if job.name not in wanted]
    return Plan(
        tuple(_upstreams_first(create)),
        tuple(update),
        tuple(each.job for each in same),
        tuple(job for job in others if is_mine(job)),
        tuple(job for job in others if not is_mine(job)),
    )


def must_be_settled(schedule: Mapping[str, Any]) -> bool:
    """Whether only the server knows what it is: words, and cron in the zone of the workspace."""
    return "words" in schedule or (schedule["kind"] == "cron" and "timezone" not in schedule)


def differences(before: Any, after: Any, at: str = "") -> Iterator[Change]:
    """Leaf by leaf; a list is one value."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            yield from differences(before.get(name), after.get(name), f"{at}/{name}")
    elif before != after:
        yield Change(at, before, after)


def _compared(
    entry: Entry, job: JobOut, names: Mapping[UUID, str], calendars: Mapping[UUID, str], settle: Settle
) -> Update:
    is_now = job.schedule.model_dump(mode="json", exclude={"words"})
    wanted = dict(entry.schedule)
    if must_be_settled(wanted):
        settled = dict(settle(wanted))
        settled.pop("words", None)
        if "words" in wanted and settled["kind"] == "once":
            raise Invalid(
                f'"{entry.name}" /schedule: these words mean another time on each day.',
                code="invalid",
                hint='In code a single time is written {"kind": "once", "at": "2027-01-02T18:00:00Z"}.',
            )
        settled.pop("anchor", None)
        if settled["kind"] == "interval":
            settled.pop("timezone", None)
        wanted = settled
    for name in MINE_ALONE:
        if name not in wanted and name in is_now and wanted["kind"] == is_now["kind"]:
            wanted[name] = is_now[name]
    of_schedule = tuple(differences(is_now, wanted, "/schedule"))
    of_others = differences(definition_of(job, names, calendars), dict(entry.wanted))
    return Update(entry, job, (*of_schedule, *of_others), keeps_schedule=not of_schedule)


def _check_names(
    entries: Sequence[Entry], by_name: Mapping[str, Sequence[JobOut]], calendars: set[str]
) -> None:
    known = {entry.name for entry in entries}
    ids = {str(job.id) for several in by_name.values() for job in several}
    problems = []
    for entry in entries:
        if len(by_name.get(entry.name, ())) > 1:
            problems.append(f'"{entry.name}" is the name of several jobs there: rename all but one.')
        problems += [
            f'"{entry.name}" /depends_on: there is no single job called "{each}".'
            for each in entry.upstreams
            if each not in known and each not in ids and len(by_name.get(each, ())) != 1
        ]
        problems += [
            f'"{entry.name}" /calendars: there is no calendar called "{each}".'
            for each in entry.wanted["calendars"]
            if each not in calendars
        ]
    if problems:
        raise Invalid("This does not fit what is there.", code="invalid", hint="\n  ".join(problems))


def _upstreams_first(entries: Iterable[Entry]) -> list[Entry]:
    """An upstream must exist before a job can depend on it; a circle is refused."""
    waiting = {entry.name: entry for entry in entries}
    ordered: list[Entry] = []
    while waiting:
        free = [entry for entry in waiting.values() if not any(each in waiting for each in entry.upstreams)]
        if not free:
            raise Invalid(
                f"These jobs wait for each other: {', '.join(waiting)}.",
                code="invalid",
                hint="Break the circle.",
            )
        for entry in free:
            ordered.append(entry)
            del waiting[entry.name]
    return ordered
