"""Defaults of a workspace on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foliot.wire.durations import Duration
from foliot.wire.identity import Zone
from foliot.wire.jobs import Retention, Retry
from foliot.wire.shape import Shape


class DefaultsOut(Shape):
    """The values that jobs of the workspace get for fields that they leave out."""

    dry_run: bool = Field(default=False, description="Whether this is a dry run.")
    retry: Retry
    timeout: Duration
    retention: Retention
    timezone: str = Field(description="Zone of schedules that name none, when they are written.")
    origins: dict[str, Literal["workspace", "installation"]] = Field(
        description="Who sets retry, timeout and retention. The installation's are settings: FOLIOT_DEFAULT_TIMEOUT and others."
    )


class DefaultsPatch(Shape):
    """Each value is taken whole. Null gives a field back to the installation."""

    retry: Retry | None = None
    timeout: Duration | None = None
    retention: Retention | None = None
    timezone: Zone | None = Field(default=None, description="For schedules written from now on.")
