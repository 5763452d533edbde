"""Definitions and specs as they are stored, and the memory of specs already read."""

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


_ANCHOR = '"anchor":"'  # inside a text the quotes would be escaped, so this is always the key


def rules_of(text: str) -> Rules:
    """Jobs with the same spec share one value, so a million jobs on a few thousand schedules are read a few thousand times.

    An interval counts from its own creation, so hardly two are the same: they share all but the anchor, and are not remembered.
    """
    apart = split_anchor(text)
    if apart is None:
        return _remembered_rules(text)
    others, anchor = apart
    shared = _remembered_rules(others)
    schedule = shared.spec.schedule
    if not isinstance(schedule, Interval):
        return _remembered_rules(text)
    return shared.on(replace(schedule, anchor=anchor))


def split_anchor(text: str) -> tuple[str, datetime] | None:
    """Of the rules of an interval: the text that it shares with others, and its anchor. None of all other rules."""
    if '"kind":"interval"' not in text or _ANCHOR not in text:
        return None
    head, _, rest = text.partition(_ANCHOR)
    anchor, _, tail = rest.partition('"')
    try:
        return f'{head}{_ANCHOR}{_SOME_DAY}"{tail}', datetime.fromisoformat(anchor)
    except ValueError:
        return None


_SOME_DAY = "2000-01-01T00:00:00+00:00"


@lru_cache(maxsize=50_000)
def _remembered_rules(text: str) -> Rules:
    try:
        return Rules(loads(Spec, text))
    except Exception as error:  # noqa: BLE001  # whatever is wrong with one text, the batch it is met in goes on
        return UnreadableRules(NO_SPEC, str(error))


@dataclass(frozen=True)
class UnreadableRules(Rules):
    """A spec that this version cannot read. It must not stop the batch it is found in: asking for its job fails, and only that."""

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
            hint="Edit the job to write them anew.",
        )


NO_SPEC = Spec(Manual(), "unreadable")


def definition_json(definition: Definition) -> dict[str, Any]:
    encoded: dict[str, Any] = encode(definition)
    return encoded


def definition_of(data: dict[str, Any]) -> Definition:
    found: Definition = decode(Definition, data)
    return found
