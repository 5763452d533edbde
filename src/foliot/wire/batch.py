"""Several writes in one request, on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from foliot.wire.instants import Id
from foliot.wire.shape import Shape, described

MOST_WRITES = 2_000
NOUNS = ("jobs", "calendars", "limits", "rooms")
Ref = Annotated[
    str,
    StringConstraints(
        pattern=described(
            r"^@[A-Za-z0-9_.-]{1,64}$", "A ref is @ and up to 64 letters, digits and _ . -, such as @extract."
        )
    ),
]


class BatchWrite(Shape):
    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    path: str = Field(
        max_length=2_000,
        pattern=described(
            rf"^/({'|'.join(NOUNS)})([/?].*)?$", f"A batch writes {', '.join(NOUNS[:-1])} and {NOUNS[-1]}."
        ),
        description="Path and query below /api/v1.",
        examples=["/jobs"],
    )
    body: Any = None
    if_match: str | None = Field(default=None, max_length=1_000, description="The header If-Match.")
    ref: Ref | None = Field(
        default=None,
        description="Stands for the id of what it creates: in paths and bodies of later writes this text is replaced by it.",
    )


class BatchIn(Shape):
    writes: list[BatchWrite] = Field(min_length=1, max_length=MOST_WRITES)


class BatchResult(Shape):
    status: int
    id: Id | None = Field(description="Of what it created or changed.")
    body: Any


class BatchOut(Shape):
    applied: bool = Field(description="False for a dry run.")
    items: list[BatchResult] = Field(description="In the order of the writes.")
