"""Keys, members, workspaces, secrets and the audit on the wire."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

from foliot.domain.access import Permission, Principal
from foliot.domain.ids import PrincipalId
from foliot.services.identity.audit import AuditRecord
from foliot.services.identity.authentication import Caller
from foliot.services.identity.keys import CreatedKey, RevokedKeys, StoredKey
from foliot.services.identity.member_removal import RemovedMember
from foliot.services.identity.members import ChangedMember, Member
from foliot.services.identity.workspaces import Archiving, Workspace
from foliot.services.secrets.master_key import KeyRotation, MasterKeyUsage
from foliot.services.secrets.secrets import SecretRow
from foliot.services.secrets.vault import Vault
from foliot.wire import identity as wire
from foliot.wire.audit import ActorOut, AuditOut, ObjectOut
from foliot.wire.dry_run import KeyDryRunOut, MemberDryRunOut, WorkspaceDryRunOut
from foliot.wire.identity import Quotas, QuotasOut, WorkspaceOut
from foliot.wire.secrets import MasterKeyOut, RotatedOut, SecretOut


def key_out(key: StoredKey) -> wire.KeyOut:
    return wire.KeyOut(**_key(key))


def made_key_out(made: CreatedKey) -> wire.MadeKeyOut:
    return wire.MadeKeyOut(**_key(made.key), secret=made.secret)


def revoked_key_out(revoked: RevokedKeys) -> wire.RevokedKeyOut:
    return wire.RevokedKeyOut(
        **_key(revoked.key), made_valid=revoked.made_valid, made_revoked=len(revoked.made_too)
    )


def invite_out(made: CreatedKey) -> wire.InviteOut:
    key = made.key
    assert key.expires_at is not None, "every invite ends"
    return wire.InviteOut(
        id=key.id,
        member=_principal(key.holder),
        expires_at=key.expires_at,
        secret=made.secret,
        path=f"/console/join?invite={made.secret}",
    )


def member_out(member: Member) -> wire.MemberOut:
    principal = member.principal
    return wire.MemberOut(
        id=principal.id,
        kind=cast("wire.MemberKind", principal.kind.value),
        name=principal.name,
        email=member.email,
        role=principal.role.value,
        active=member.is_active,
        created_at=member.created_at,
        fires_per_day=member.fires_per_day,
    )


def me_out(caller: Caller, jobs: int | None) -> wire.MeOut:
    holder, home = caller.holder, caller.workspace
    assert holder.role is not None, "who has no role is not let in"
    return wire.MeOut(
        principal=_principal(holder.principal),
        role=holder.role.value,
        is_system=holder.may(Permission.SYSTEM),
        sees_only_own_jobs=caller.visible_owner is not None,
        key=wire.OwnKeyOut(
            id=holder.key_id,
            prefix=holder.prefix,
            scopes=_scopes(holder.scopes),
            expires_at=holder.expires_at,
        ),
        workspace=wire.OwnWorkspaceOut.from_value(home),
        limits=QuotasOut(**asdict(caller.quotas)),
        jobs=jobs,
    )


def workspace_out(workspace: Workspace) -> WorkspaceOut:
    return WorkspaceOut.from_value(workspace, quotas=Quotas(**workspace.quotas))


def entry_out(entry: AuditRecord) -> AuditOut:
    return AuditOut.from_value(
        entry,
        actor=ActorOut(id=entry.actor, name=entry.actor_name, kind=entry.actor_kind),
        key=entry.key_id,
        object=ObjectOut(kind=entry.object_kind, id=entry.object_id),
        before=None if entry.before is None else dict(entry.before),
        after=None if entry.after is None else dict(entry.after),
    )


def _key(key: StoredKey) -> dict[str, Any]:
    role = key.as_presented.role
    return {
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "principal": _principal(key.holder),
        "role": role and role.value,
        "scopes": _scopes(key.scopes),
        "expires_at": key.expires_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
        "created_at": key.created_at,
        "made_by": key.made_by,
        "session": key.is_session,
        "max_jobs": key.budget.max_jobs,
        "min_interval": key.budget.min_interval,
    }


def _principal(principal: Principal) -> wire.PrincipalOut:
    return wire.PrincipalOut(
        id=principal.id, kind=principal.kind.value, name=principal.name, role=principal.role.value
    )


def _scopes(scopes: frozenset[str]) -> list[wire.KeyScope]:
    return cast("list[wire.KeyScope]", sorted(scopes))


def revocation_preview(revoked: RevokedKeys) -> KeyDryRunOut:
    return KeyDryRunOut(
        key=key_out(revoked.key), made_valid=revoked.made_valid, made_revoked=len(revoked.made_too)
    )


def member_preview(changed: ChangedMember) -> MemberDryRunOut:
    return MemberDryRunOut(member=member_out(changed.member), revoked_keys=changed.revoked_keys)


def removal_preview(removed: RemovedMember) -> MemberDryRunOut:
    return member_preview(removed.changed).model_copy(update={"jobs": removed.jobs})


def workspace_preview(workspace: Workspace) -> WorkspaceDryRunOut:
    return WorkspaceDryRunOut(workspace=workspace_out(workspace))


def archival_preview(archiving: Archiving) -> WorkspaceDryRunOut:
    return WorkspaceDryRunOut(
        workspace=workspace_out(archiving.workspace),
        jobs=archiving.jobs,
        keys=archiving.keys,
        runs=archiving.runs,
    )


def secret_out(row: SecretRow, vault: Vault, agent: PrincipalId | None = None) -> SecretOut:
    """An agent does not see the other agents."""
    return SecretOut.from_value(
        row,
        agents=[each for each in row.agents if agent in (None, each)],
        job_count=row.users,
        used_by=list(row.others),
        readable=vault.knows(row.key_id),
    )


def master_key_out(standing: MasterKeyUsage) -> MasterKeyOut:
    return MasterKeyOut.from_value(standing, known=list(standing.known), is_right=standing.opens)


def rotated_out(rotated: KeyRotation) -> RotatedOut:
    return RotatedOut.from_value(rotated)
