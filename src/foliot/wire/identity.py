"""Keys, members and oneself on the wire."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from foliot.wire.instants import Id, Instant
from foliot.wire.shape import ONE_LINE, Shape, described

Role = Literal["viewer", "operator", "editor", "admin"]
MemberKind = Literal["user", "agent", "service"]
Kind = Literal["user", "agent", "service", "system"]
Scope = Literal["viewer", "operator", "editor", "admin", "system", "worker", "agenda"]
KeyScope = Literal["viewer", "operator", "editor", "admin", "system", "worker", "agenda", "invite"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=ONE_LINE)]
Email = Annotated[
    str,
    StringConstraints(
        min_length=3,
        max_length=320,
        pattern=described(r"^[^@\s]+@[^@\s]+$", "This must be an e-mail address, such as ada@example.com."),
    ),
]


class PrincipalOut(Shape):
    id: Id
    kind: Kind
    name: str
    role: Role


class KeyIn(Shape):
    name: Name
    principal: Id | None = Field(default=None, description="Whose key it will be; oneself without it.")
    scopes: list[Scope] | None = Field(
        default=None,
        max_length=6,
        description="What is left of the holder's role; none leaves all of it. For oneself the default is the asking key's own.",
    )
    expires_at: Instant | None = None
    max_jobs: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Of an agent's key: how many jobs the agent may own when it creates one with this key.",
    )
    min_interval: int | None = Field(
        default=None,
        ge=1,
        le=31_536_000,
        description="Of an agent's key: seconds between two planned times of the jobs written with it, at least.",
    )
    session: bool = Field(
        default=False,
        description="A sign-in of a browser. It stands for the asking key: keys that it makes count as made by that one.",
    )


class KeyPatch(Shape):
    """Only narrower: fewer scopes, an earlier end."""

    name: Name | None = None
    scopes: list[Scope] | None = Field(default=None, max_length=6)
    expires_at: Instant | None = None


class KeyOut(Shape):
    id: Id
    name: str
    prefix: str = Field(description="The key reads fol_<prefix>_...; the rest is stored nowhere.")
    principal: PrincipalOut
    role: Role | None = Field(description="What it may here; null for a key that only works.")
    scopes: list[KeyScope]
    expires_at: Instant | None
    last_used_at: Instant | None = Field(description="To the minute.")
    revoked_at: Instant | None
    created_at: Instant
    made_by: Id | None = Field(description="The key that it was made with; null where none was needed.")
    session: bool = Field(description="A sign-in of a browser.")
    max_jobs: int | None = Field(
        default=None, description="How many jobs its agent may own; null: no own bound."
    )
    min_interval: int | None = Field(
        default=None, description="Seconds between two planned times, at least; null: no own bound."
    )


class MadeKeyOut(KeyOut):
    secret: str = Field(description="The key itself. It is shown this once.")


class RevokedKeyOut(KeyOut):
    made_valid: int = Field(
        description="Keys that it made, and that those made, which are still valid: `made_too=true` revokes them too."
    )
    made_revoked: int = Field(description="Such keys that ended with it.")


class MemberIn(Shape):
    kind: MemberKind
    name: Name
    role: Role
    email: Email | None = None


class MemberPatch(Shape):
    name: Name | None = None
    role: Role | None = None
    email: Email | None = None
    active: bool | None = None
    fires_per_day: int | None = Field(
        default=None,
        ge=0,
        le=2_000_000_000,
        description="Runs that the schedules of its jobs may start in a day of UTC; null removes the limit.",
    )


class MemberOut(Shape):
    id: Id
    kind: MemberKind
    name: str
    email: str | None
    role: Role
    active: bool
    created_at: Instant
    fires_per_day: int | None = Field(
        default=None,
        description="Runs that the schedules of its jobs may start in a day of UTC; null: no limit.",
    )


class InviteIn(Shape):
    expires_at: Instant | None = Field(
        default=None, description="Default: in a week, or when the asking key ends."
    )


class InviteOut(Shape):
    """An invite signs a person in once and is then replaced by a key of their own."""

    id: Id = Field(description="Of the key that the invite is: revoke it to take the invite back.")
    member: PrincipalOut
    expires_at: Instant
    secret: str = Field(description="The invite itself. It is shown this once.")
    path: str = Field(description="Of the page on this server where the person accepts it.")


class OwnKeyOut(Shape):
    id: Id
    prefix: str
    scopes: list[KeyScope]
    expires_at: Instant | None


class OwnWorkspaceOut(Shape):
    id: Id
    slug: str
    name: str
    default_timezone: str


class MeOut(Shape):
    principal: PrincipalOut
    role: Role = Field(description="The principal's role, narrowed by the key's scopes.")
    is_system: bool = Field(description="May administer the whole installation.")
    sees_only_own_jobs: bool
    key: OwnKeyOut
    workspace: OwnWorkspaceOut
    limits: QuotasOut
    jobs: int | None = Field(
        description="Jobs of the workspace that are not archived; null if they were not counted."
    )


Slug = Annotated[
    str,
    StringConstraints(
        pattern=described(
            r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            "A slug has only lower-case letters, digits and - between them, at most 63.",
        )
    ),
]
Zone = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Quotas(Shape):
    """Null means the installation's default."""

    jobs: int | None = Field(default=None, ge=0, le=100_000_000, description="Jobs that are not archived.")
    min_interval: int | None = Field(
        default=None, ge=1, le=86_400, description="Seconds between two planned times of a job."
    )
    payload_bytes: int | None = Field(
        default=None, ge=2, le=262_144, description="Of payload, config and input each, as JSON."
    )
    requests_per_second: int | None = Field(default=None, ge=1, le=1_000_000)
    key_requests_per_second: int | None = Field(default=None, ge=1, le=1_000_000)
    artifact_bytes: int | None = Field(default=None, ge=0, le=2**50, description="Total of all its runs.")
    hosts: int | None = Field(default=None, ge=0, le=1_000_000)
    servers: int | None = Field(
        default=None, ge=0, le=1_000_000, description="Server instances, on all its hosts together."
    )
    rooms: int | None = Field(default=None, ge=0, le=100_000_000)
    room_messages: int | None = Field(default=None, ge=0, le=2**50, description="Per room.")
    secrets: int | None = Field(default=None, ge=0, le=1_000_000)
    fires_per_day: int | None = Field(
        default=None,
        ge=0,
        le=2_000_000_000,
        description="Runs that its schedules may start in a day of UTC; later planned times are skipped. Null: no limit.",
    )
    keys: int | None = Field(default=None, ge=1, le=1_000_000, description="Valid ones, sessions included.")
    archived_jobs: int | None = Field(default=None, ge=0, le=100_000_000)


class QuotasOut(Shape):
    """The limits in force; null is no limit."""

    jobs: int | None
    min_interval: int
    max_timeout: int | None = Field(
        description="Seconds of an attempt; the operator sets it for all workspaces."
    )
    payload_bytes: int
    requests_per_second: int | None
    key_requests_per_second: int | None
    artifact_bytes: int | None
    hosts: int | None
    servers: int | None
    rooms: int | None
    room_messages: int | None
    secrets: int | None
    fires_per_day: int | None
    keys: int | None
    archived_jobs: int | None
    own_jobs: int | None = Field(
        default=None, description="Jobs that the agent may own, by the budget of this key."
    )


class WorkspaceIn(Shape):
    slug: Slug = Field(
        description="Names it in addresses and in the header Foliot-Workspace; it never changes."
    )
    name: Name | None = Field(default=None, description="Default: the slug.")
    default_timezone: Zone | None = Field(
        default=None, description="Default: the installation's.", examples=["Europe/Paris"]
    )
    quotas: Quotas = Quotas()


class WorkspacePatch(Shape):
    name: Name | None = None
    default_timezone: Zone | None = None
    quotas: Quotas | None = Field(
        default=None, description="The quotas to change; null restores the installation's."
    )


class WorkspaceOut(Shape):
    id: Id
    slug: str
    name: str
    default_timezone: str
    quotas: Quotas
    created_at: Instant
    archived_at: Instant | None
