"""Workspaces on the wire."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from foliot.wire.instants import Id, Instant
from foliot.wire.shape import Shape

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")]
Zone = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Quotas(Shape):
    """Null stands for what the installation gives everybody."""

    jobs: int | None = Field(default=None, ge=0, le=100_000_000, description="Jobs that are not archived.")
    min_interval: int | None = Field(
        default=None, ge=1, le=86_400, description="Seconds between two planned times of a job."
    )
    payload_bytes: int | None = Field(
        default=None, ge=2, le=262_144, description="Of payload, config and input each, as JSON."
    )
    requests_per_second: int | None = Field(default=None, ge=1, le=1_000_000)
    key_requests_per_second: int | None = Field(default=None, ge=1, le=1_000_000)
    artifact_bytes: int | None = Field(
        default=None, ge=0, le=2**50, description="That its runs may keep in all."
    )
    hosts: int | None = Field(default=None, ge=0, le=1_000_000)
    servers: int | None = Field(
        default=None, ge=0, le=1_000_000, description="Server instances, on all its hosts together."
    )
    rooms: int | None = Field(default=None, ge=0, le=100_000_000)
    room_messages: int | None = Field(default=None, ge=0, le=2**50, description="That one room may hold.")
    secrets: int | None = Field(default=None, ge=0, le=1_000_000)


class QuotasOut(Shape):
    """What holds; null is no limit."""

    jobs: int | None
    min_interval: int
    payload_bytes: int
    requests_per_second: int | None
    key_requests_per_second: int | None
    artifact_bytes: int | None
    hosts: int | None
    servers: int | None
    rooms: int | None
    room_messages: int | None
    secrets: int | None


class WorkspaceIn(Shape):
    slug: Slug = Field(
        description="Names it in addresses and in the header Foliot-Workspace; it never changes."
    )
    name: Name | None = Field(default=None, description="The slug without it.")
    default_timezone: Zone = Field(default="UTC", examples=["Europe/Paris"])
    quotas: Quotas = Quotas()


class WorkspacePatch(Shape):
    name: Name | None = None
    default_timezone: Zone | None = None
    quotas: Quotas | None = Field(
        default=None, description="Those given; null goes back to the installation's."
    )


class WorkspaceOut(Shape):
    id: Id
    slug: str
    name: str
    default_timezone: str
    quotas: Quotas
    created_at: Instant
    archived_at: Instant | None
