"""Change a member within a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from foliot.domain.access import MemberRole, Permission, PrincipalKind
from foliot.domain.errors import Conflict, Invalid, require_found
from foliot.domain.ids import PrincipalId
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.authentication import Caller
from foliot.storage.identity import keys, members
from foliot.storage.identity.members import Member
from foliot.storage.timers import fire_quotas
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class MemberChanges:
    """The fields to change. `mails` and `budgets` say whether `email` and `fires_per_day` were given."""

    name: str | None = None
    role: MemberRole | None = None
    is_active: bool | None = None
    email: str | None = None
    mails: bool = False
    fires_per_day: int | None = None
    budgets: bool = False


@dataclass(frozen=True, slots=True)
class ChangedMember:
    member: Member
    revoked_keys: int = 0


async def change_in(
    tx: Tx, caller: Caller, principal_id: PrincipalId, wanted: MemberChanges
) -> ChangedMember:
    other_admins = await members.lock(tx, principal_id)
    before = require_found(await members.get(tx, principal_id), "member")
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
        wanted.fires_per_day if wanted.budgets else before.fires_per_day,
    )
    if after == before:
        return ChangedMember(before)
    if wanted.role is not None:
        check_role(principal.kind, principal.role)
    if _is_admin(before) and not _is_admin(after) and other_admins == 0:
        raise Conflict("This is the last administrator of the workspace.", hint="Make another one first.")
    await members.change(tx, after)
    if after.fires_per_day != before.fires_per_day:
        await fire_quotas.put(tx, caller.workspace_id, principal_id, after.fires_per_day)
    revoked = 0 if after.is_active else await keys.revoke_of_principal(tx, principal_id)
    audited = {**audit_fields(after), "revoked_keys": revoked} if revoked else audit_fields(after)
    await append_audit(
        tx,
        "member.changed",
        ("member", principal_id),
        caller.actor,
        before=audit_fields(before),
        after=audited,
    )
    return ChangedMember(after, revoked)


def _is_admin(member: Member) -> bool:
    return member.is_active and member.principal.role is MemberRole.ADMIN and not member.principal.is_agent


def check_role(kind: PrincipalKind, role: MemberRole) -> None:
    if kind is PrincipalKind.AGENT and role.value == Permission.ADMIN.value:
        raise Invalid(
            "An agent is at most an editor.",
            pointer="/role",
            hint="It manages its own jobs alone; for more, make a service.",
        )


def audit_fields(member: Member) -> Mapping[str, Any]:
    principal = member.principal
    return {
        "kind": principal.kind.value,
        "name": principal.name,
        "email": member.email,
        "role": principal.role.value,
        "active": member.is_active,
        "fires_per_day": member.fires_per_day,
    }
