"""Errors on the wire: RFC 9457 problem+json. The codes are listed in docs/reference/errors.md."""

from __future__ import annotations

from pydantic import Field

from foliot.wire.shape import Shape

MEDIA_TYPE = "application/problem+json"


class FieldProblem(Shape):
    pointer: str = Field(
        description="JSON pointer into the body; for a parameter, its name.",
        examples=["/schedule/expr"],
    )
    message: str
    hint: str | None = Field(description="What to do next.")


class QuotaProblem(Shape):
    name: str = Field(examples=["jobs"])
    limit: int
    used: int


class Problem(Shape):
    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; programs may rely on it.")
    errors: list[FieldProblem]
    request_id: str | None
    quota: QuotaProblem | None = Field(
        default=None,
        description="With the code quota_exceeded: which one, how much it allows, how much is used.",
    )
