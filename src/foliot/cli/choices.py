"""The words that flags take, as the API spells them. Tests hold them against the shapes of the wire."""

from __future__ import annotations

from enum import StrEnum


class JobStatusChoice(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    PAUSED = "paused"
    DISABLED = "disabled"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    ARCHIVED = "archived"


class RunStatusChoice(StrEnum):
    READY = "ready"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
