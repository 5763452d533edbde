"""Members: the principals of a workspace as rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.errors import UniqueViolation

from foliot.domain.access import MemberRole, Principal, PrincipalKind
from foliot.domain.errors import Conflict
from foliot.domain.ids import PrincipalId
from foliot.storage.identity import keys
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class Member:
    principal: Principal
    email: str | None
    is_active: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class MemberFilter:
    id: PrincipalId | None = None
    kind: PrincipalKind | None = None
    is_active: bool | None = None


EVERYBODY = MemberFilter()


async def page(tx: Tx, wanted: MemberFilter, before: PrincipalId | None, limit: int) -> list[Member]:
    """Newest first."""
    params = {
        "workspace_id": tx.workspace_id,
        "id": wanted.id,
        "kind": wanted.kind and wanted.kind.value,
        "is_active": wanted.is_active,
        "before": before,
        "limit": limit,
    }
    return [_member(row) for row in await tx.fetch(sql.members.page, params)]


async def get(tx: Tx, principal_id: PrincipalId) -> Member | None:
    return next(iter(await page(tx, MemberFilter(id=principal_id), None, 1)), None)


async def lock(tx: Tx, principal_id: PrincipalId) -> int:
    """Locks the member and all administrators; answers with how many of these are others than the member."""
    rows = await tx.fetch(sql.members.lock, {"workspace_id": tx.workspace_id, "id": principal_id})
    return sum(row["id"] != principal_id for row in rows)


async def find(tx: Tx, principal_id: PrincipalId) -> tuple[Principal, bool] | None:
    """Of the workspace or, in a transaction that sees them, of the installation; and whether it is active."""
    row = await tx.fetch_one(sql.members.find, {"id": principal_id})
    return None if row is None else (_principal(row), bool(row["active"]))


async def insert(tx: Tx, principal: Principal, email: str | None) -> None:
    try:
        await keys.insert_principal(tx, principal, email=email)
    except UniqueViolation as error:
        raise _taken(error) from None


async def change(tx: Tx, member: Member) -> None:
    params = {
        "id": member.principal.id,
        "name": member.principal.name,
        "email": member.email,
        "role": member.principal.role.value,
        "active": member.is_active,
    }
    try:
        await tx.execute(sql.members.change, params)
    except UniqueViolation as error:
        raise _taken(error) from None


def _member(row: Row) -> Member:
    return Member(_principal(row), row["email"], row["active"], row["created_at"])


def _principal(row: Row) -> Principal:
    return Principal(
        row["id"], row["workspace_id"], PrincipalKind(row["kind"]), row["name"], MemberRole(row["role"])
    )


def _taken(error: UniqueViolation) -> Conflict:
    if error.diag.constraint_name == "principals_email_is_taken":
        return Conflict(
            "A member of this workspace has this address already.", pointer="/email", hint="Change that one."
        )
    return Conflict(
        "There is an agent or service of this name already.",
        pointer="/name",
        hint="Choose another name: the audit speaks of it.",
    )


async def describe_actor(tx: Tx, actor: str) -> str:
    """An actor of the audit for people to read: by name where it is a principal that this transaction may see, with its id."""
    name = await name_actor(tx, actor)
    return actor if name in (None, actor) else f"{name} ({actor})"


async def name_actor(tx: Tx, actor: str) -> str | None:
    """What an actor is called; None for a principal that this transaction may not see, or that is gone."""
    try:
        found = await find(tx, PrincipalId(UUID(actor)))
    except ValueError:  # a word for Foliot's own doing
        return actor
    return None if found is None else found[0].name
