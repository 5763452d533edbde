"""Stored form of definitions and specs, and the cache of parsed specs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from foliot.domain.definition import Definition, Rules, Spec
from foliot.domain.errors import ScheduleInvalid
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.job import Job
from foliot.domain.schedule import Calendar, Interval, Manual
from foliot.storage.codec import decode, dumps, encode, loads


def spec_text(spec: Spec) -> str:
    return dumps(spec)


_ANCHOR = '"anchor":"'  # quotes in a value are escaped, so this is always the key


def rules_of(text: str) -> Rules:
    """Parse a spec. Jobs with equal specs share one value, so a million jobs with a few thousand schedules parse a few thousand specs.

    Intervals differ in their anchor, the creation time: they share the rest, and the whole is not cached.
    """
    parts = split_anchor(text)
    if parts is None:
        return _cached_rules(text)
    others, anchor = parts
    shared = _cached_rules(others)
    schedule = shared.spec.schedule
    if not isinstance(schedule, Interval):
        return _cached_rules(text)
    return shared.on(replace(schedule, anchor=anchor))


def split_anchor(text: str) -> tuple[str, datetime] | None:
    """Split an interval's spec into the part shared with others and its anchor; None for other schedules."""
    if '"kind":"interval"' not in text or _ANCHOR not in text:
        return None
    head, _, rest = text.partition(_ANCHOR)
    anchor, _, tail = rest.partition('"')
    try:
        return f'{head}{_ANCHOR}{_ANY_DAY}"{tail}', datetime.fromisoformat(anchor)
    except ValueError:
        return None


_ANY_DAY = "2000-01-01T00:00:00+00:00"


@lru_cache(maxsize=50_000)
def _cached_rules(text: str) -> Rules:
    try:
        return Rules(loads(Spec, text))
    except Exception as error:  # noqa: BLE001  # one bad spec must not fail the batch that reads it
        return UnreadableRules(NO_SPEC, str(error))


@dataclass(frozen=True)
class UnreadableRules(Rules):
    """A spec that this version cannot read. Its batch goes on; only a call of `job` fails."""

    why: str = ""

    def job(
        self,
        job_id: JobId,
        workspace_id: WorkspaceId,
        schedule_rev: int,
        calendars: tuple[Calendar, ...] = (),
    ) -> Job:
        raise ScheduleInvalid(
            f"The stored rules of this job cannot be read: {self.why}",
            hint="Edit the job to store them again.",
        )


NO_SPEC = Spec(Manual(), "unreadable")


def definition_json(definition: Definition) -> dict[str, Any]:
    encoded: dict[str, Any] = encode(definition)
    return encoded


def definition_of(data: dict[str, Any]) -> Definition:
    found: Definition = decode(Definition, data)
    return found
