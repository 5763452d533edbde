"""Explanations on the wire: a verdict for programs, a sentence for people, and where to go on."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foliot.wire.instants import Id, Instant
from foliot.wire.jobs import JobStatus
from foliot.wire.runs import RunOut
from foliot.wire.schedules import PlannedOut
from foliot.wire.shape import Shape

Verdict = Literal[
    "ran",
    "running",
    "waiting",
    "skipped",
    "not_planned",
    "not_created",
    "unrecorded",
    "will_run",
    "will_not_run",
]
WaitsFor = Literal["turn", "upstream", "freeze", "window", "limit", "type", "worker"]


class PlaceOut(Shape):
    """Where a run stands that waits, among those of its own workspace."""

    waits_for: WaitsFor
    position: int | None = Field(description="From 1 on; null where there is no line.", examples=[2])
    of: int | None = Field(description="How many are in that line.", examples=[5])
    behind: str | None = Field(description="What it waits for, by name.", examples=["run 11"])
    until: Instant | None = Field(description="When it may start, or is given up, at the latest.")


class NearestOut(Shape):
    before: PlannedOut | None = Field(description="At the instant, or the last before it.")
    after: PlannedOut | None


class ExplanationOut(Shape):
    verdict: Verdict = Field(description="Stable; programs may rely on it.")
    sentence: str = Field(
        examples=[
            (
                "The planned time of 2027-01-05 06:00:00 America/Bogota (UTC-05:00) was skipped because an earlier run of this job"
                " was still live."
            )
        ]
    )
    facts: list[str] = Field(description="What else is known.")
    what_next: list[str] = Field(description="What to do about it; empty where all is well.")
    job_id: Id
    job_status: JobStatus
    at: Instant | None = Field(description="The instant explained; null for a run.")
    run: RunOut | None = Field(description="The record it is told from.")
    place: PlaceOut | None = Field(description="Of a run that waits.")
    nearest: NearestOut | None = Field(description="The planned times around the instant; null for a run.")
    links: dict[str, str] = Field(
        description="Where to go on, by name: job, next, runs, run, attempts; and what can be done: retry, cancel, resume.",
        examples=[{"job": "/api/v1/jobs/0192f0c1-2b3a-7c4d-8e5f-60718293a4b5"}],
    )
