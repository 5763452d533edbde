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


class OverlapChoice(StrEnum):
    SKIP = "skip"
    QUEUE = "queue"
    QUEUE_ONE = "queue_one"
    CANCEL_RUNNING = "cancel_running"
    CONCURRENT = "concurrent"


class MisfireChoice(StrEnum):
    LATEST = "latest"
    ALL = "all"
    SKIP = "skip"


class OnLostChoice(StrEnum):
    REPEAT = "repeat"
    FAIL = "fail"
