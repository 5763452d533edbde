"""Runs of another scheduler, from before the import of a job. They are recorded and never executed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foliot.domain.ids import JobId, RunId, uuid7
from foliot.domain.lifecycle import RunStatus
from foliot.domain.run import RunError


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that ended in the other scheduler. `note` is its summary, or why it was skipped."""

    started_at: datetime
    finished_at: datetime
    status: RunStatus
    error: RunError | None = None
    output: Mapping[str, Any] | None = None
    note: str | None = None

    def id_for(self, job_id: JobId) -> RunId:
        """Return the same id for the same run at every import. It begins with the start, so that lists by id stay in order of time."""
        identity = (
            f"{job_id} {self.started_at.isoformat()} {self.finished_at.isoformat()} {self.status.value}"
        )
        return RunId(uuid7(self.started_at, hashlib.sha256(identity.encode()).digest()[:10]))


@dataclass(frozen=True, slots=True)
class PastState:
    """The state of a job in the other scheduler at the moment of its export."""

    last_run_at: datetime | None = None
    last_run_status: RunStatus | None = None
    last_error: str | None = None
    failures_in_a_row: int = 0
    schedule_errors: int = 0
