"""What runs leave behind, on the wire."""

from __future__ import annotations

from pydantic import Field

from foliot.wire.instants import Instant
from foliot.wire.shape import Shape


class ArtifactOut(Shape):
    name: str = Field(examples=["report.pdf"])
    media_type: str = Field(examples=["application/pdf"])
    size: int = Field(description="In bytes.")
    sha256: str = Field(description="Of its content, in hexadecimal; also its ETag.")
    attempt: int = Field(description="The attempt that kept it.")
    created_at: Instant


class ArtifactsOut(Shape):
    items: list[ArtifactOut] = Field(description="In the order they were kept.")
