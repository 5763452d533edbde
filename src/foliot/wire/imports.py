"""Jobs of other schedulers, on the wire."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from foliot.wire.instants import Id, Instant
from foliot.wire.shape import Shape

LARGEST_IMPORT = 4 << 20  # bytes
MOST_RECORDS = 2_000
MOST_RUNS = 10_000


class ImportSource(StrEnum):
    OPENCLAW = "openclaw"
    OPENCLAW_RUNS = "openclaw-runs"
    CRONTAB = "crontab"
    SYSTEM_CRONTAB = "system-crontab"
    SYSTEMD = "systemd"
    KUBERNETES = "kubernetes"
    CELERY_BEAT = "celery-beat"
    APSCHEDULER = "apscheduler"
    AIRFLOW = "airflow"
    ROWS = "rows"


class ImportResult(StrEnum):
    IMPORTED = "imported"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    REJECTED = "rejected"


class ImportIn(Shape):
    source: ImportSource = Field(strict=False, description="Where the text comes from.")
    text: str = Field(max_length=LARGEST_IMPORT, description="The file of the other scheduler, whole.")
    file_name: str = Field(default="", max_length=300, description="Its name, for files that do not say it.")
    time_zone: str | None = Field(
        default=None, max_length=64, description="Zone of schedules that name none."
    )
    update: bool = Field(default=False, description="Also overwrite imported jobs that were edited here.")
    shadow: bool = Field(
        default=False,
        description="New jobs are active in shadow mode instead of disabled: they record their times and do not run.",
    )
    agents: dict[str, str] = Field(default={}, description="For openclaw and rows: their agents -> ours.")
    rooms: dict[str, str] = Field(
        default={}, description="For openclaw and rows: their sessions or rooms -> our rooms."
    )
    channels: dict[str, str] = Field(
        default={},
        description="For openclaw: where it delivered, as slack:channel:C0GREEN or slack -> our channels. They get notification rules.",
    )
    agent: str | None = Field(
        default=None,
        max_length=320,
        description="For openclaw and rows: the agent that owns jobs which name none.",
    )


class ImportLine(Shape):
    """What became of one record."""

    index: int = Field(description="Its place in the text, from 1 on.")
    key: str | None
    name: str
    result: ImportResult
    job_id: Id | None = None
    schedule: dict[str, Any] | None = Field(default=None, description="The schedule that was read.")
    words: str | None = Field(default=None, description="The schedule as a sentence.")
    next_times: list[Instant] = Field(
        default=[], description="In a dry run, the next three planned times once the job is enabled."
    )
    notes: list[str] = Field(default=[], description="What a person should know, or why it was rejected.")
    raw: Any = Field(default=None, description="The original of a rejected record.")


class ImportOut(Shape):
    source: str
    planned: bool = Field(description="True for a dry run: nothing was written.")
    counts: dict[ImportResult, int] = Field(description="They add up to the records of the text.")
    records: list[ImportLine]
