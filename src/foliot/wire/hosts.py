"""Hosts on the wire, and the server instances on them that jobs are bound to."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foliot.wire.instants import Id, Instant
from foliot.wire.jobs import HostName
from foliot.wire.shape import Shape
from foliot.wire.worker import Labels


class InstanceOut(Shape):
    id: Id
    host_id: Id
    name: str
    labels: dict[str, str]
    created_at: Instant
    updated_at: Instant


class BoundJob(Shape):
    id: Id
    name: str


class HostOut(Shape):
    id: Id
    name: str
    status: Literal["online", "stale", "offline"] = Field(
        description="stale: silent for longer than its lease. offline: for minutes more, or it left in good order."
    )
    last_seen_at: Instant
    labels: dict[str, str]
    max_mutations: int = Field(description="Runs that change something, at once.")
    max_reads: int = Field(description="Runs of jobs with read_only, at once, beside those.")
    running: int
    types: list[str] = Field(
        default=[], description="Of jobs that it does, while it is there.", examples=[["command", "http"]]
    )
    instances: list[InstanceOut]
    jobs: list[BoundJob] | None = Field(
        default=None,
        description="Jobs that must run there, or on a server instance that it has; fifty at most, null in lists.",
    )
    version: str
    revision: int
    created_at: Instant
    updated_at: Instant


class HostChange(Shape):
    """Only what is to change. Labels are replaced as a whole."""

    labels: Labels = Field(default={})
    max_mutations: int = Field(default=1, ge=1, le=1_000)
    max_reads: int = Field(default=8, ge=0, le=1_000)


class InstanceIn(Shape):
    name: HostName
    labels: Labels = Field(default={})


class InstanceChange(Shape):
    """Only what is to change. Another `host_id` moves it there, and the runs that wait for it along."""

    host_id: Id | None = None
    labels: Labels | None = None
