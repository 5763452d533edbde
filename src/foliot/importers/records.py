"""What an import reads: jobs that are ready to be created, and records that cannot be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

LONGEST_NAME = 200
IMPORTED = "imported"  # the tag of every imported job
COMMAND_NOTE = "It runs a command: an operator must allow commands before it can be enabled."


class BadRecordError(Exception):
    """The record cannot become a job; the message says why."""


@dataclass(frozen=True, slots=True)
class ImportedJob:
    """`body` is the JSON of a new job. `key` names the record in its source, at every import."""

    index: int
    key: str
    body: Mapping[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def digest(self) -> str:
        return str(self.body["external_ref"]["digest"])


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    index: int
    key: str | None
    reason: str
    raw: Any = None


@dataclass(frozen=True, slots=True)
class ImportedRecords:
    source: str
    jobs: tuple[ImportedJob, ...]
    rejected: tuple[RejectedRecord, ...]


@dataclass(slots=True)
class Draft:
    """A job while it is read, with what a person should know about it."""

    name: str
    type: str
    schedule: Mapping[str, Any]
    config: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)  # kept in external_ref

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def collect(
    source: str, raw_records: Iterable[tuple[str | None, Any]], read: Callable[[Any], Draft]
) -> ImportedRecords:
    """Read every record; one that is wrong stops no other."""
    jobs: list[ImportedJob] = []
    rejected: list[RejectedRecord] = []
    seen: set[str] = set()
    for index, (given, raw) in enumerate(raw_records, start=1):
        try:
            draft = read(raw)
            key = given or stable_key(draft)
            if key in seen:
                raise BadRecordError(f"Another record has the id {key!r} as well.")  # noqa: TRY301
        except BadRecordError as error:
            rejected.append(RejectedRecord(index, given, str(error), _kept(raw)))
            continue
        seen.add(key)
        jobs.append(ImportedJob(index, key, _body(source, key, draft, _kept(raw)), tuple(draft.warnings)))
    return ImportedRecords(source, tuple(jobs), tuple(rejected))


def stable_key(draft: Draft) -> str:
    """A record without an id is known by its content."""
    return "sha256:" + _digest([draft.name, draft.type, draft.schedule, draft.config])[:32]


def _body(source: str, key: str, draft: Draft, raw: Any) -> dict[str, Any]:
    body = {
        "name": clean_name(draft.name),
        "type": draft.type,
        "schedule": dict(draft.schedule),
        "config": draft.config,
        "tags": [IMPORTED, source],
        "enabled": False,  # a person reviews it first
        **draft.fields,
    }
    kept = {"source": source, "id": key, "digest": _digest(body), **draft.notes, "raw": raw}
    return body | {"external_ref": kept}


def _kept(raw: Any) -> Any:
    """The original, as JSON can hold it."""
    return asdict(raw) if is_dataclass(raw) and not isinstance(raw, type) else raw


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def clean_name(text: str) -> str:
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    if not line:
        return "unnamed"
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    yield from enumerate(text.splitlines(), start=1)


def seconds(amount: float) -> str:
    """A duration on the wire."""
    return f"{int(amount)}s" if float(amount).is_integer() else f"{round(amount * 1000)}ms"
