"""Bulk actions on the wire."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from foliot.wire.instants import Id, Instant
from foliot.wire.jobs import TagText
from foliot.wire.shape import Shape, refusal

MOST_IDS = 10_000
MOST_RUNS = 500
LONGEST_Q = 2_000
BulkAction = Literal[
    "pause", "resume", "disable", "enable", "archive", "restore", "run", "tag", "untag", "hand_over"
]


# The rules of the validator below and of the service, for readers of the description. Generators of clients ignore `if`,
# and would make one class of each branch of `oneOf`.
_ONE_WAY: dict[str, Any] = {
    "if": {"required": ["ids"], "properties": {"ids": {"type": "array", "items": {}}}},
    "then": {"properties": {"q": {"const": None}}},
    "else": {
        "required": ["q"],
        "properties": {"q": {"type": "string"}},
        "anyOf": [
            {"required": ["expected_count"], "properties": {"expected_count": {"type": "integer"}}},
            {"required": ["dry_run"], "properties": {"dry_run": {"const": True}}},
        ],
    },
}


class Targeted(Shape):
    """Which jobs: by `ids`, or by `q` with the number of jobs it is expected to find."""

    model_config = ConfigDict(json_schema_extra=_ONE_WAY)

    ids: list[Id] | None = Field(default=None, min_length=1, max_length=MOST_IDS)
    q: str | None = Field(
        default=None, max_length=LONGEST_Q, description="A filter, as of `GET /jobs`; empty means all."
    )
    expected_count: int | None = Field(
        default=None, ge=0, le=MOST_IDS, description="With `q`: refused (409) if it finds another number."
    )
    after: Id | None = Field(
        default=None,
        description="Only jobs after this one: `next_after` of an incomplete answer. With `q`, `expected_count` counts only them.",
    )
    dry_run: bool = Field(default=False, description="Only report what would change.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.ids is None) == (self.q is None):
            raise refusal(
                "one_of", "Name the jobs by ids or by q, not by both.", "q finds what GET /jobs?q= finds."
            )
        return self


class BulkArgs(Shape):
    reason: str | None = Field(default=None, min_length=1, max_length=1_000, description="pause, disable")
    until: Instant | None = Field(default=None, description="pause")
    catch_up: bool = Field(default=False, description="resume, enable")
    override: bool = Field(default=False, description="run: even while a freeze holds the job")
    tags: list[TagText] = Field(default=[], max_length=50, description="tag, untag")
    owner: str | None = Field(
        default=None,
        min_length=1,
        max_length=320,
        description="hand_over: name, id or address of the new owner",
    )
    detach: bool = Field(default=False, description="archive: remove it from the jobs that depend on it")


class BulkIn(Targeted):
    action: BulkAction
    args: BulkArgs = BulkArgs()


class BatchDeleteIn(Targeted):
    purge: bool = Field(
        default=False, description="Remove them with their history; otherwise they are archived."
    )
    detach: bool = Field(default=False, description="Remove them from the jobs that depend on them.")
    force: bool = Field(
        default=False, description="Purge also jobs with live runs, whose results are then refused."
    )


class BulkResult(Shape):
    """One job or run that was not changed."""

    id: Id
    outcome: Literal["done", "already", "failed", "not_found"]
    code: str | None = None
    message: str | None = None
    hint: str | None = None


class BulkOut(Shape):
    action: str
    dry_run: bool
    found: int
    done: int = Field(description="How many jobs were changed, or would be.")
    already: int = Field(description="How many needed no change.")
    failed: int
    remaining: int = Field(
        description="How many were left because the call took too long. Repeat it with `after`."
    )
    next_after: Id | None = Field(description="If some remain: the value of `after` to send.")
    results: list[BulkResult] = Field(description="Jobs that were not changed, and why.")


class RunBulkIn(Shape):
    """Which runs: by `ids`, or by `q` with the number of runs it is expected to find."""

    model_config = ConfigDict(json_schema_extra=_ONE_WAY)

    action: Literal["retry", "cancel"]
    ids: list[Id] | None = Field(default=None, min_length=1, max_length=MOST_RUNS)
    q: str | None = Field(default=None, max_length=LONGEST_Q, description="A filter, as of `GET /runs`.")
    expected_count: int | None = Field(
        default=None, ge=0, le=MOST_RUNS, description="With `q`: refused (409) if it finds another number."
    )
    reason: str | None = Field(default=None, min_length=1, max_length=1_000, description="cancel")
    override: bool = Field(default=False, description="retry: even while a freeze holds the job")
    dry_run: bool = Field(default=False, description="Only report what would happen.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.ids is None) == (self.q is None):
            raise refusal(
                "one_of", "Name the runs by ids or by q, not by both.", "q finds what GET /runs?q= finds."
            )
        return self


class RunBulkOut(Shape):
    action: str
    dry_run: bool
    found: int
    done: int = Field(description="How many runs were retried or cancelled, or would be.")
    failed: int
    remaining: int = Field(description="How many were left because the call took too long. Send it again.")
    more: bool = Field(
        description="The filter may find more: one call takes the newest 500, among the newest 5,000 records."
    )
    results: list[BulkResult] = Field(description="Runs that were refused, and why.")
