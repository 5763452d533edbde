"""Members of a workspace: people, agents and services, with their roles."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from foliot.domain.access import MemberRole, Principal, PrincipalKind
from foliot.domain.errors import not_found
from foliot.domain.ids import PrincipalId
from foliot.services.cursors import ListPage, cut_page, read_cursor
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.authentication import Caller
from foliot.services.identity.member_steps import (
    ChangedMember,
    MemberChanges,
    audit_fields,
    change_in,
    check_role,
)
from foliot.storage.identity import members
from foliot.storage.identity.members import EVERYBODY, Member, MemberFilter
from foliot.storage.tx import Database, Role

__all__ = ["ChangedMember", "Member", "MemberChanges", "MemberFilter"]


async def create(
    database: Database, caller: Caller, kind: PrincipalKind, name: str, role: MemberRole, email: str | None
) -> Member:
    check_role(kind, role)
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        principal = Principal(PrincipalId(tx.new_id()), caller.workspace_id, kind, name, role)
        await members.insert(tx, principal, email)
        made = Member(principal, email, True, tx.now)
        await append_audit(
            tx, "member.created", ("member", principal.id), caller.actor, after=audit_fields(made)
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
        return await change_in(tx, caller, principal_id, wanted)
