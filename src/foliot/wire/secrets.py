"""Secrets on the wire. No answer has a value."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from foliot.wire.instants import Id, Instant
from foliot.wire.shape import SECRET_NAME, Shape

MOST_AGENTS = 100
SecretName = Annotated[str, StringConstraints(pattern=SECRET_NAME)]
SecretValue = Annotated[str, StringConstraints(min_length=1, max_length=65_536)]
GIVEN = "Agents that may name it in their jobs."


class SecretIn(Shape):
    name: SecretName = Field(examples=["crm-token"])
    value: SecretValue = Field(
        repr=False, examples=["Bearer 3q2-7wEAAAA"], json_schema_extra={"writeOnly": True}
    )
    agents: list[Id] = Field(default=[], max_length=MOST_AGENTS, description=GIVEN)


class SecretValueIn(Shape):
    value: SecretValue = Field(repr=False, json_schema_extra={"writeOnly": True})


class SecretChange(Shape):
    agents: list[Id] = Field(max_length=MOST_AGENTS, description=GIVEN)


class SecretOut(Shape):
    id: Id
    name: str
    version: int = Field(description="Rises with each new value.")
    agents: list[Id]
    job_count: int = Field(description="How many jobs name it.")
    used_by: list[str] = Field(
        default=[],
        description="The channels, incoming webhooks and rooms that name it; not shown to agents.",
        examples=[['channel "ops"']],
    )
    readable: bool = Field(description="Whether this node knows the master key that sealed it.")
    created_at: Instant
    updated_at: Instant


class SecretUser(Shape):
    id: Id
    name: str


class MasterKeyOut(Shape):
    """Ids of master keys, never the keys."""

    present: str | None = Field(description="The key that seals on this node.")
    known: list[str] = Field(description="The keys that this node opens with, the present one first.")
    is_right: bool = Field(description="Whether they are keys of this installation.")
    secrets: int = Field(description="Of all workspaces.")
    under_other_keys: int = Field(description="Sealed by known keys other than the present one.")
    unreadable: int = Field(description="Sealed by keys that this node does not know.")


class RotateIn(Shape):
    new_key: bool = Field(default=False, description="Make a new key first, in the key file of this node.")
    accept_loss: bool = Field(
        default=False,
        description="Continue without the installation's key; secrets that only it opens stay unreadable.",
    )


class RotatedOut(Shape):
    present: str
    rotated: int = Field(description="Sealed again by this request.")
    left: int = Field(
        description="For the next request. Where it had none to rotate, those left are damaged."
    )
    unreadable: int
