"""The result of reading an import: jobs that are ready to be created, and records that cannot be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import yaml

from foliot.domain.past_run import PastRun, PastState

LONGEST_NAME = 200
LONGEST_TEXT = 2_000
DEEPEST = 100  # levels of YAML
MOST_VALUES = 300_000  # of a text of YAML, its references written out
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
    state: PastState | None = None
    rules: tuple[RuleDraft, ...] = ()

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


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A notification rule for one imported job. It reaches a channel of this workspace, or an address that becomes one."""

    title: str
    events: tuple[str, ...]
    channel: str | None = None  # name or id
    url: str | None = None
    after_n: int = 1
    cooldown: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A run of another scheduler; `key` is the id of its job there."""

    index: int
    key: str
    run: PastRun


@dataclass(frozen=True, slots=True)
class ImportedHistory:
    source: str
    lines: tuple[HistoryLine, ...]
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
    state: PastState | None = None
    rules: list[RuleDraft] = field(default_factory=list)

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


# What the reader of a record raises where a value has another type or size than it expects.
_SHAPE_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def collect(
    source: str, raw_records: Iterable[tuple[str | None, Any]], read: Callable[[Any], Draft]
) -> ImportedRecords:
    """Read every record; one that is wrong stops no other."""
    jobs: list[ImportedJob] = []
    rejected: list[RejectedRecord] = []
    seen: set[str] = set()
    for index, (given, raw) in enumerate(raw_records, start=1):
        try:
            kept = _plain(asdict(raw) if is_dataclass(raw) and not isinstance(raw, type) else raw)
            job = _imported(source, index, given, read(raw), kept)
            if job.key in seen:
                raise BadRecordError(f"Another record has the id {job.key!r} as well.")  # noqa: TRY301
        except (BadRecordError, *_SHAPE_ERRORS) as error:
            is_named = isinstance(error, BadRecordError)
            reason = str(error) if is_named else "A value of it has a type or a size that is not expected."
            key = None if given is None else clean_text(given, LONGEST_NAME)
            rejected.append(RejectedRecord(index, key, clean_text(reason), _shown(raw)))
            continue
        seen.add(job.key)
        jobs.append(job)
    return ImportedRecords(source, tuple(jobs), tuple(rejected))


def _imported(source: str, index: int, given: str | None, draft: Draft, kept: Any) -> ImportedJob:
    key = given or stable_key(draft)
    body = _plain(_body(source, key, draft, kept))
    return ImportedJob(index, key, body, tuple(draft.warnings), draft.state, tuple(draft.rules))


def _plain(value: Any) -> Any:
    """Return the value as JSON holds it. YAML knows dates, endless numbers and values that contain themselves."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    text.encode()  # half a surrogate pair is no text
    return json.loads(text)


def _shown(raw: Any) -> Any:
    """Return the original of a rejected record, or the begin of it as text."""
    try:
        return _plain(asdict(raw) if is_dataclass(raw) and not isinstance(raw, type) else raw)
    except _SHAPE_ERRORS:
        return clean_text(repr(raw))


def read_json(text: str, what: str = "The text") -> Any:
    """Read JSON as it is defined: without NaN, and not deeper than can be read."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise BadRecordError(f"{what} is nested too deeply.") from None
    except ValueError as error:
        raise BadRecordError(f"{what} is not JSON: {error}.") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text[:20]} is too large")
    return value


def read_yaml(text: str) -> list[Any]:
    """Read the documents of YAML or JSON. References are followed, as long as what they stand for can be written out."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is ten times faster
    try:
        _check_yaml(yaml.parse(text, Loader=loader))
        return list(yaml.load_all(text, Loader=loader))
    except (yaml.YAMLError, ValueError) as error:
        raise BadRecordError(f"The text is neither JSON nor YAML: {clean_text(str(error))}.") from None


def _check_yaml(events: Iterable[Any]) -> None:
    """Refuse nesting that a reader cannot follow, and references that stand for more values than it can hold."""
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []  # the anchor of each, and how many values stood before it
    total = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise BadRecordError("A reference of it stands for itself or for nothing.")
            total += sizes[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, total))
            total += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor is not None:
                sizes[anchor] = total - before
        if len(open_nodes) > DEEPEST:
            raise BadRecordError("The text is nested too deeply.")
        if total > MOST_VALUES:
            raise BadRecordError("The text holds too many values.")


def instant_of_ms(value: Any, name: str) -> datetime:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadRecordError(f"{name} is not a number of milliseconds.")
    try:
        return datetime.fromtimestamp(value / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        raise BadRecordError(f"{name} is no instant.") from None


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
    read = [body, [asdict(each) for each in draft.rules]] if draft.rules else body
    kept = {"source": source, "id": key, "digest": _digest(read), **draft.notes, "raw": raw}
    return body | {"external_ref": kept}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def clean_text(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Text of another scheduler as a record can hold it: without characters that no column takes, and cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = text.replace("\x00", "").encode("utf-8", "replace").decode()
    return text if len(text) <= longest else text[: longest - 1] + "…"


def clean_name(text: str) -> str:
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    if not line:
        return "unnamed"
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    yield from enumerate(text.splitlines(), start=1)


def seconds(amount: float) -> str:
    """Return a duration on the wire."""
    return f"{int(amount)}s" if float(amount).is_integer() else f"{round(amount * 1000)}ms"
