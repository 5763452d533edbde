"""Caps on runs under way at once, on the wire."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from foliot.wire.shape import Shape

LONGEST_KEY = 200
ConcurrencyKey = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_KEY)]


class LimitIn(Shape):
    key: ConcurrencyKey | None = Field(
        default=None, description="The `concurrency_key` of the jobs it is for; null for the whole workspace."
    )
    cap: int = Field(ge=1, le=1_000_000, description="The most runs under way at once.")


class LimitOut(LimitIn):
    in_use: int = Field(description="Runs under way.")
    waiting: int = Field(description="Runs in line for it; counted up to 10,000.")
    dry_run: bool = Field(default=False, description="Whether this is only what would be.")


class LimitsOut(Shape):
    items: list[LimitOut]
