"""Freezes on the wire: a temporary hold over the whole workspace, or over the jobs, tags and queues it names."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from foliot.wire.instants import Id, Instant
from foliot.wire.jobs import TagText, Word
from foliot.wire.shape import Shape

_LISTS = ("jobs", "tags", "queues")
# The service checks the same rule; the description shows it to the reader. Generators of clients ignore `not`, and would
# make one class of each branch of `oneOf`.
_ALL_OR_SOME: dict[str, Any] = {
    "not": {
        "anyOf": [
            {
                "required": ["everything"],
                "properties": {"everything": {"const": True}},
                "anyOf": [{"required": [name], "properties": {name: {"minItems": 1}}} for name in _LISTS],
            },
            {"properties": {"everything": {"const": False}, **{name: {"maxItems": 0} for name in _LISTS}}},
        ]
    }
}


class FreezeScope(Shape):
    """What it covers: everything, or each job that is named, has one of the tags or stands in one of the queues."""

    model_config = ConfigDict(json_schema_extra=_ALL_OR_SOME)

    everything: bool = False
    jobs: list[Id] = Field(default=[], max_length=1_000)
    tags: list[TagText] = Field(default=[], max_length=100)
    queues: list[Word] = Field(default=[], max_length=100)


class FreezeIn(Shape):
    scope: FreezeScope = FreezeScope(everything=True)
    reason: str = Field(min_length=1, max_length=1_000)
    start_at: Instant | None = Field(default=None, description="Now, when left out.")
    end_at: Instant | None = Field(default=None, description="Until somebody lifts it, when left out.")
    after: Literal["skip", "latest", "all"] = Field(
        default="skip",
        description="Planned times within it: recorded as skipped, or held, and then the newest of each job runs, or all at a rate.",
    )
    per_minute: int = Field(default=60, ge=1, le=60_000, description="The rate, for `after: all`.")
    running: Literal["drain", "stop"] = Field(
        default="drain", description="Runs under way when it begins: they finish, or are cancelled."
    )


class FreezeHead(Shape):
    id: Id
    status: Literal["planned", "in_force", "over"]


class FreezeOut(FreezeIn, FreezeHead):
    start_at: Instant
    created_by: str
    created_at: Instant
    lifted_by: str | None
    lifted_at: Instant | None


class HeldTimeOut(Shape):
    job_id: Id
    job_name: str
    planned_for: Instant


class FreezePreviewOut(Shape):
    """What such a freeze would hold."""

    jobs: int = Field(description="Active jobs it covers.")
    planned_times: int = Field(description="Planned times within it, up to its end or for a day.")
    is_exact: bool = Field(description="False: at least so many planned times.")
    ready: int
    running: int
    until: Instant
    sample: list[HeldTimeOut] = Field(
        default=[], description="The first planned time of each job; the earliest ten of them."
    )
