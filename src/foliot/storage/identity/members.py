"""Principals: the members of a workspace and the administrators of the installation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.errors import UniqueViolation

from foliot.domain.access import Principal, PrincipalKind
from foliot.domain.errors import Conflict
from foliot.domain.ids import PrincipalId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class Member:
    principal: Principal
    email: str | None
    is_active: bool
    created_at: datetime
    fires_per_day: int | None = None  # runs that the schedules of its jobs may start in a day


@dataclass(frozen=True, slots=True)
class MemberFilter:
    id: PrincipalId | None = None
    kind: PrincipalKind | None = None
    is_active: bool | None = None


EVERYBODY = MemberFilter()


async def page(tx: Tx, filters: MemberFilter, before: PrincipalId | None, limit: int) -> list[Member]:
    """List the members of the transaction's workspace, newest first."""
    params = {
        "id": filters.id,
        "kind": filters.kind and filters.kind.value,
        "is_active": filters.is_active,
        "before": before,
        "limit": limit,
    }
    return await tx.fetch_as(Member, sql.members.page, params)


async def get(tx: Tx, principal_id: PrincipalId) -> Member | None:
    return next(iter(await page(tx, MemberFilter(id=principal_id), None, 1)), None)


async def lock(tx: Tx, principal_id: PrincipalId) -> int:
    """Lock the member and all administrators, and return the number of other administrators."""
    params = {"id": principal_id}
    return sum(found != principal_id for found in await tx.fetch_as(PrincipalId, sql.members.lock, params))


async def lock_shared(tx: Tx, given: str) -> list[Member]:
    """List the members of this name, id or address, and keep them from being changed until the transaction ends."""
    return await tx.fetch_as(Member, sql.members.lock_shared, {"given": given})


async def find(tx: Tx, principal_id: PrincipalId) -> Member | None:
    """Find a principal of the workspace or, in a transaction that sees them, of the installation."""
    return await tx.fetch_one_as(Member, sql.members.find, {"id": principal_id})


async def find_person(tx: Tx, email: str) -> Principal | None:
    """Find the active person of the workspace with this address."""
    return await tx.fetch_one_as(Principal, sql.members.find_person, {"email": email})


async def insert(tx: Tx, principal: Principal, email: str | None) -> None:
    try:
        await insert_principal(tx, principal, email=email)
    except UniqueViolation as error:
        raise _conflict(error) from None


async def insert_principal(tx: Tx, principal: Principal, *, email: str | None = None) -> None:
    params = {
        "id": principal.id,
        "workspace_id": principal.workspace_id,
        "kind": principal.kind.value,
        "name": principal.name,
        "email": email,
        "role": principal.role.value,
    }
    await tx.execute(sql.members.insert, params)


async def system_principal_exists(tx: Tx) -> bool:
    return await tx.fetch_value(bool, sql.members.system_principal_exists)


async def activate_system_principal(tx: Tx, name: str) -> Principal | None:
    """Find the administrator of this name, and activate it again if it was deactivated."""
    found = await tx.fetch_one_as(Principal, sql.members.lock_system_principal, {"name": name})
    if found is not None:
        await tx.execute(sql.members.activate, {"id": found.id})
    return found


async def change(tx: Tx, member: Member) -> None:
    params = {
        "id": member.principal.id,
        "name": member.principal.name,
        "email": member.email,
        "role": member.principal.role.value,
        "active": member.is_active,
    }
    try:
        await tx.execute(sql.members.update, params)
    except UniqueViolation as error:
        raise _conflict(error) from None


async def describe_actor(tx: Tx, actor: str) -> str:
    """Return an actor of the audit for people: name and id of a principal that this transaction sees."""
    name = await name_actor(tx, actor)
    return actor if name in (None, actor) else f"{name} ({actor})"


async def name_actor(tx: Tx, actor: str) -> str | None:
    """Return the name of an actor; None for a principal that is deleted or hidden from this transaction."""
    try:
        found = await find(tx, PrincipalId(UUID(actor)))
    except ValueError:  # the name of a part of Foliot that acted on its own
        return actor
    return None if found is None else found.principal.name


def _conflict(error: UniqueViolation) -> Conflict:
    if error.diag.constraint_name == "principals_email_is_taken":
        return Conflict(
            "A member of this workspace has this address already.", pointer="/email", hint="Change that one."
        )
    return Conflict(
        "There is an agent or service of this name already.",
        pointer="/name",
        hint="Choose another name: the audit names actors by it.",
    )
