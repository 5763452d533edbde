"""Members of a workspace: people, agents and services, with their roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from foliot.domain.access import MemberRole, Permission, Principal, PrincipalKind
from foliot.domain.errors import Conflict, Invalid, not_found
from foliot.domain.ids import PrincipalId
from foliot.services.cursors import ListPage, cut_page, read_cursor
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.authentication import Caller
from foliot.storage.identity import keys, members
from foliot.storage.identity.members import EVERYBODY, Member, MemberFilter
from foliot.storage.tx import Database, Role

__all__ = [
    "ChangedMember",
    "Member",
    "MemberChanges",
    "MemberFilter",
    "change",
    "create",
    "get",
    "listed",
    "remove",
]


@dataclass(frozen=True, slots=True)
class MemberChanges:
    """The fields to change. `mails` says whether `email` was given."""

    name: str | None = None
    role: MemberRole | None = None
    is_active: bool | None = None
    email: str | None = None
    mails: bool = False


@dataclass(frozen=True, slots=True)
class ChangedMember:
    member: Member
    revoked_keys: int = 0


async def create(
    database: Database, caller: Caller, kind: PrincipalKind, name: str, role: MemberRole, email: str | None
) -> Member:
    _check_role(kind, role)
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        principal = Principal(PrincipalId(tx.new_id()), caller.workspace_id, kind, name, role)
        await members.insert(tx, principal, email)
        made = Member(principal, email, True, tx.now)
        await append_audit(
            tx, "member.created", ("member", principal.id), caller.actor, after=_audit_fields(made)
        )
        return made


async def listed(
    database: Database,
    caller: Caller,
    wanted: MemberFilter = EVERYBODY,
    *,
    cursor: str | None = None,
    limit: int = 50,
) -> ListPage[Member]:
    """List members, newest first. An agent sees only itself."""
    before = read_cursor(cursor, UUID)
    if caller.visible_owner is not None:
        wanted = replace(wanted, id=caller.visible_owner)
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        last = None if before is None else PrincipalId(*before)
        found = await members.page(tx, wanted, last, limit + 1)
    return cut_page(found, limit, lambda last: [last.principal.id])


async def get(database: Database, caller: Caller, principal_id: PrincipalId) -> Member:
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        found = await members.get(tx, principal_id)
    if found is None or caller.visible_owner not in (None, principal_id):
        raise not_found("member")
    return found


async def change(
    database: Database, caller: Caller, principal_id: PrincipalId, wanted: MemberChanges
) -> ChangedMember:
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        other_admins = await members.lock(tx, principal_id)
        before = await members.get(tx, principal_id)
        if before is None:
            raise not_found("member")
        principal = replace(
            before.principal,
            name=before.principal.name if wanted.name is None else wanted.name,
            role=before.principal.role if wanted.role is None else wanted.role,
        )
        after = Member(
            principal,
            wanted.email if wanted.mails else before.email,
            before.is_active if wanted.is_active is None else wanted.is_active,
            before.created_at,
        )
        if after == before:
            return ChangedMember(before)
        if wanted.role is not None:
            _check_role(principal.kind, principal.role)
        if _is_admin(before) and not _is_admin(after) and other_admins == 0:
            raise Conflict("This is the last administrator of the workspace.", hint="Make another one first.")
        await members.change(tx, after)
        revoked = 0 if after.is_active else await keys.revoke_of_principal(tx, principal_id)
        audited = {**_audit_fields(after), "revoked_keys": revoked} if revoked else _audit_fields(after)
        await append_audit(
            tx,
            "member.changed",
            ("member", principal_id),
            caller.actor,
            before=_audit_fields(before),
            after=audited,
        )
        return ChangedMember(after, revoked)


async def remove(database: Database, caller: Caller, principal_id: PrincipalId) -> ChangedMember:
    """Deactivate the member and revoke its keys. The name stays: the audit and its jobs refer to it."""
    return await change(database, caller, principal_id, MemberChanges(is_active=False))


def _is_admin(member: Member) -> bool:
    return member.is_active and member.principal.role is MemberRole.ADMIN and not member.principal.is_agent


def _check_role(kind: PrincipalKind, role: MemberRole) -> None:
    if kind is PrincipalKind.AGENT and role.value == Permission.ADMIN.value:
        raise Invalid(
            "An agent is at most an editor.",
            pointer="/role",
            hint="It manages its own jobs alone; for more, make a service.",
        )


def _audit_fields(member: Member) -> Mapping[str, Any]:
    principal = member.principal
    return {
        "kind": principal.kind.value,
        "name": principal.name,
        "email": member.email,
        "role": principal.role.value,
        "active": member.is_active,
    }
