"""The lines of a run on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foliot.wire.instants import Instant
from foliot.wire.runs import RunStatus
from foliot.wire.shape import Shape


class LogLineOut(Shape):
    seq: int = Field(description="Its number within the run.")
    attempt: int
    at: Instant
    stream: Literal["log", "stdout", "stderr", "system"]
    text: str


class LogsOut(Shape):
    items: list[LogLineOut]
    next_cursor: str | None = Field(
        description="Send it as `cursor` for the next page; null at the end. To look again later, send the last `seq`."
    )
    truncated: bool = Field(description="The run wrote more than is kept.")


class LogEndOut(Shape):
    """The data of the last event of a stream, `end`."""

    status: RunStatus
    truncated: bool
