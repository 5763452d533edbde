"""A run as decisions read it, and how it was created."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from foliot.domain.ids import JobId, RunId, made_at
from foliot.domain.lifecycle import RunStatus


class Trigger(StrEnum):
    """What made a run."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    DEPENDENCY = "dependency"
    RETRY = "retry"
    BACKFILL = "backfill"
    IMPORT = "import"
    WEBHOOK = "webhook"


class WaitsFor(StrEnum):
    """Why a run is in `waiting`."""

    TURN = "turn"  # another run of its job
    UPSTREAM = "upstream"  # a gate: the upstream run that is live
    FREEZE = "freeze"
    WINDOW = "window"
    LIMIT = "limit"  # a cap of the workspace or of its concurrency key
    TYPE = "type"  # its type is switched off in its workspace


# What a freeze holds whenever it was made. The others were asked for in spite of it if they were asked for while it was on.
BY_ITSELF = frozenset({Trigger.SCHEDULE, Trigger.DEPENDENCY, Trigger.BACKFILL})


def asked_at(run_id: RunId, trigger: Trigger) -> datetime | None:
    """Return when a person requested this run; None if that does not let it pass a freeze."""
    return None if trigger in BY_ITSELF else made_at(run_id)


def effective_input(payload: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Return the input of a run: the job's payload with the run's own top-level keys on top."""
    return {**payload, **given} if given is not None and isinstance(given, Mapping) else dict(payload)


@dataclass(frozen=True, slots=True)
class RunError:
    code: str
    message: str
    traceback: str | None = None  # of a Python function that raised

    @property
    def fingerprint(self) -> str:
        """The same text for the same error: ids and numbers in its message do not count. run_search.py computes it in SQL."""
        shape = _VARIABLE.sub("#", self.message[:FINGERPRINTED]).encode().lower().strip()
        return f"{self.code}:{hashlib.sha256(shape).hexdigest()[:16]}"


# Classes are written out: Python and PostgreSQL read this pattern alike. Likewise only ASCII letters are lowered.
VARIABLE_PARTS = (
    "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    "|0[xX][0-9a-fA-F]+|(?<![0-9A-Za-z_])[0-9a-fA-F]{12,}(?![0-9A-Za-z_])|[0-9]+"
)
FINGERPRINTED = 500  # characters of a message
_VARIABLE = re.compile(VARIABLE_PARTS)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The fields of a run that settlement reads. `attempt_count` includes the attempt that reports now."""

    id: RunId
    job_id: JobId
    trigger: Trigger = Trigger.SCHEDULE
    status: RunStatus = RunStatus.RUNNING
    is_live: bool = True  # False while it waits for its turn behind another run of its job
    attempt_count: int = 1
    retries_used: int = 0
    losses: int = 0
    started_at: datetime | None = None
    cancel_requested: bool = False
    last_error: RunError | None = None  # of the attempt before: what a retry that never starts ends with


LONGEST_NOTE = 500  # characters


@dataclass(frozen=True, slots=True)
class Progress:
    done: float
    total: float
    note: str
    at: datetime

    @property
    def share(self) -> float:
        """From 0 to 1; what counts beyond its total is done."""
        return min(1.0, max(0.0, self.done / self.total)) if self.total > 0 else 1.0


class TargetKind(StrEnum):
    HOST = "host"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class Target:
    """A target by name: when an instance moves to another host, waiting runs follow it."""

    kind: TargetKind
    name: str

    @property
    def text(self) -> str:
        """As the engine's tables have it."""
        return f"{self.kind.value}/{self.name}"

    @property
    def words(self) -> str:
        return f'host "{self.name}"' if self.kind is TargetKind.HOST else f'server "{self.name}"'


def target_of(text: str) -> Target:
    kind, _, name = text.partition("/")
    return Target(TargetKind(kind), name)
