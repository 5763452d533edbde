"""The first start of an installation, a lost admin key, and the hold after a restored backup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_bytes
from uuid import UUID

from foliot.domain.access import (
    KEY_ENTROPY,
    Actor,
    ApiKey,
    MemberRole,
    Principal,
    PrincipalKind,
)
from foliot.domain.errors import Conflict
from foliot.domain.ids import KeyId, PrincipalId, WorkspaceId, uuid7
from foliot.storage import installation
from foliot.storage.identity import audit, keys, members, workspaces
from foliot.storage.identity.audit import AuditEntry
from foliot.storage.installation import Installation, MissedChoice
from foliot.storage.tx import Database, Role, Tx

DEFAULT_WORKSPACE = "default"
FIRST_ADMIN = "admin"
OPERATOR = Actor("operator")  # on the machine, without a key


@dataclass(frozen=True, slots=True)
class AdminKey:
    """A new admin key. The secret is stored nowhere."""

    key_id: KeyId
    principal_id: PrincipalId
    prefix: str
    secret: str = field(repr=False)


async def first_start(
    db: Database, *, tzdata_version: str, keep: Callable[[str], None] | None = None, timezone: str = "UTC"
) -> AdminKey | None:
    """Create the workspace `default` and the first administrator. Return None when they exist.

    `keep` gets the secret just before the commit. A process that is killed in between leaves a file with a key that does not
    work, which the next start replaces, but never a working key without its secret in a file.
    """
    async with db.tx(Role.APP, system=True) as tx:
        await installation.lock(
            tx
        )  # two nodes may start at once: the second waits here and finds the work of the first
        if await members.system_principal_exists(tx):
            return None
        await installation.set_tzdata_version(tx, tzdata_version)
        await workspaces.insert_missing(
            tx, WorkspaceId(_new_id(tx.now)), DEFAULT_WORKSPACE, "Default", timezone
        )
        new = await _new_admin_key(tx, FIRST_ADMIN)
        if keep is not None:
            keep(new.secret)
    return new


async def create_admin_key(db: Database, name: str = FIRST_ADMIN) -> AdminKey:
    """Create a key for an operator who has the database but lost the key. Other keys keep working."""
    async with db.tx(Role.APP, system=True) as tx:
        await installation.lock(tx)
        return await _new_admin_key(tx, name)


async def state(db: Database) -> Installation:
    async with db.tx(Role.APP) as tx:
        return await installation.get(tx)


async def hold_after_restore(db: Database, reason: str) -> None:
    """Hold all firing until an operator decides about the times between backup and restore."""
    async with db.tx(Role.APP, system=True) as tx:
        await installation.hold(tx, reason)
        await _note(tx, "installation.held", {"reason": reason})


async def require_hold(db: Database) -> None:
    if not (await state(db)).is_held:
        raise Conflict("Nothing is held.", hint="Only a restored installation waits for this choice.")


async def release_hold(db: Database, choice: MissedChoice) -> None:
    async with db.tx(Role.APP, system=True) as tx:
        if not await installation.release(tx, choice):
            raise Conflict("Nothing is held.", hint="Only a restored installation waits for this choice.")
        await _note(tx, "installation.released", {"missed": choice.value})


async def _new_admin_key(tx: Tx, name: str) -> AdminKey:
    holder = await members.activate_system_principal(tx, name)
    if holder is None:
        holder = Principal(PrincipalId(_new_id(tx.now)), None, PrincipalKind.SYSTEM, name, MemberRole.ADMIN)
        await members.insert_principal(tx, holder)
    key, key_id = ApiKey.make(token_bytes(KEY_ENTROPY)), KeyId(_new_id(tx.now))
    await keys.insert_key(tx, key_id, key, holder, name=name)
    entry = AuditEntry(
        "key.created", "key", str(key_id), OPERATOR, after={"principal": name, "prefix": key.prefix}
    )
    await audit.append(tx, _new_id(tx.now), entry)
    return AdminKey(key_id, holder.id, key.prefix, key.secret)


async def _note(tx: Tx, action: str, after: dict[str, str]) -> None:
    row = await installation.get(tx)
    await audit.append(
        tx, _new_id(tx.now), AuditEntry(action, "installation", str(row.id), OPERATOR, after=after)
    )


def _new_id(at: datetime) -> UUID:
    return uuid7(at, token_bytes(10))
