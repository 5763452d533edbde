"""The rule of retention in plain Python: the model that the SQL is compared with."""

from __future__ import annotations

from datetime import datetime

from foliot.domain.policy import Retention, RetentionMode


def may_prune(retention: Retention, finished_at: datetime, rank: int, now: datetime) -> bool:
    """Whether a finished run may go; `rank` is 1 for the job's newest."""
    is_old = now - finished_at > retention.keep
    is_beyond = rank > retention.keep_last
    return (is_old and is_beyond) if retention.mode is RetentionMode.ALL else (is_old or is_beyond)
