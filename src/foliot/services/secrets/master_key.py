"""The master key of an installation: a canary detects wrong keys, and rotation replaces the key while work continues.

Why: docs/decisions/710-secret-encryption.md
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from foliot.domain.access import Actor
from foliot.domain.errors import Conflict, Unavailable
from foliot.domain.ids import FIRST_ID, SecretId
from foliot.services.identity.audit_steps import append_audit
from foliot.services.identity.installation import OPERATOR
from foliot.services.secrets.vault import (
    FixedKeys,
    MasterKey,
    SealedValue,
    UnreadableError,
    Vault,
    no_key,
    purpose,
)
from foliot.storage import installation
from foliot.storage.content import secrets
from foliot.storage.content.secrets import SealedSecret
from foliot.storage.dry_run import DryRunDatabase
from foliot.storage.installation import Installation
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)

CANARY = b"foliot canary"
BATCH = 100  # secrets in one transaction
MOST_BATCHES = 10  # seconds of one call; the caller repeats it
MOST_LOGGED = 100  # names in the log
WRONG = "The master keys of this node do not open this installation's secrets: runs that use them fail, and no new ones are taken."
GIVE_IT = (
    "Start with the FOLIOT_MASTER_KEY, or the master.key in the data directory, that sealed them. Where it is lost: "
    "`foliot secrets rotate --accept-loss`, then set each secret again."
)


@dataclass(frozen=True, slots=True)
class MasterKeyUsage:
    """The numbers of secrets that the keys of this node can and cannot read."""

    present: str | None
    known: tuple[str, ...]
    opens: bool  # the keys belong to this installation
    secrets: int
    under_other_keys: int  # of known older keys: a rotation seals them again
    unreadable: int


@dataclass(frozen=True, slots=True)
class KeyRotation:
    present: str
    rotated: int  # by this call
    left: int  # left for the next call; values that their key cannot open stay
    unreadable: int


async def begin(database: Database, vault: Vault, *, makes: bool) -> MasterKeyUsage:
    """At the start of a node: check that encryption works and that the keys are right. The first key becomes the installation's.

    With `makes`, create a key when there is none. Wrong keys disable only secrets; the log says so.
    """
    vault.check()
    if makes or vault.present is not None:
        await _take_up(database, vault, OPERATOR)
    return await look(database, vault)


async def look(database: Database, vault: Vault) -> MasterKeyUsage:
    """Log the secrets that cannot be read."""
    found = await standing(database, vault)
    if not found.opens:
        log.error("master_key.wrong", extra={"problem": WRONG, "advice": GIVE_IT, "known": found.known})
    if found.unreadable:
        async with database.tx(Role.APP, system=True) as tx:
            named = await secrets.list_unreadable(tx, found.known, MOST_LOGGED)
        names = [f"{slug}/{name}" for slug, name in named]
        log.error("secrets.unreadable", extra={"count": found.unreadable, "names": names})
    return found


async def standing(database: Database, vault: Vault) -> MasterKeyUsage:
    async with database.tx(Role.APP, system=True) as tx:
        state, sealed = await installation.get(tx), await secrets.count_by_master_key(tx)
    opens = opens_canary(vault, state)
    others = {key_id: count for key_id, count in sealed.items() if key_id != vault.present}
    readable = sum(count for key_id, count in others.items() if vault.knows(key_id))
    return MasterKeyUsage(
        vault.present, vault.known, opens, sum(sealed.values()), readable, sum(others.values()) - readable
    )


def opens_canary(vault: Vault, state: Installation) -> bool:
    """Return whether this vault has the installation's key. Before there is one, any key is right."""
    if state.canary is None or state.canary_key_id is None:
        return True
    try:
        return vault.open(_purpose(state), SealedValue(state.canary_key_id, state.canary)) == CANARY
    except UnreadableError:
        return False


async def check_key(database: Database, vault: Vault, by: Actor) -> None:
    """Check the key before sealing: a value sealed by a wrong key is lost when the right key returns.

    The first secret creates the key when the start did not.
    """
    if isinstance(database, DryRunDatabase):
        return  # a dry run has called `may_seal` and creates no key
    if not opens_canary(vault, await _take_up(database, vault, by)):
        raise Unavailable(WRONG, hint=GIVE_IT)
    if vault.present is None:
        raise no_key()


async def may_seal(database: Database, vault: Vault) -> Vault:
    """Check the key for a dry run, and create none: use a temporary key before the first secret."""
    async with database.tx(Role.APP, system=True) as tx:
        state = await installation.get(tx)
    if not opens_canary(vault, state):
        raise Unavailable(WRONG, hint=GIVE_IT)
    if vault.present is not None:
        return vault
    vault.may_renew()
    return Vault(FixedKeys([MasterKey.new()]))


async def rotate(
    database: Database, vault: Vault, by: Actor, *, new_key: bool = False, accept_loss: bool = False
) -> KeyRotation:
    """Seal with the present key what older keys have sealed, in batches; `new_key` creates a new present key first.

    This may stop anywhere and be repeated. `accept_loss`: go on without the installation's old key; its secrets stay unreadable
    until each gets a new value.
    """
    async with database.tx(Role.APP, system=True) as tx:
        if not opens_canary(vault, await installation.get(tx)) and not accept_loss:
            raise Conflict(WRONG, hint=GIVE_IT)
    if new_key:
        made = vault.renew()
        log.info("master_key.made", extra={"id": made})
    present = vault.present
    if present is None:
        raise no_key()
    rotated, after = 0, FIRST_ID
    for _ in range(MOST_BATCHES):
        async with database.tx(Role.APP, system=True) as tx:
            boxes = await secrets.lock_sealed_by_others(tx, present, vault.known, after, BATCH)
            again = _sealed_anew(vault, boxes)
            if again:
                await secrets.reseal_all(tx, present, again)
                summary = {"key": present, "secrets": len(again)}
                await append_audit(tx, "master_key.rotated", ("master_key", present), by, after=summary)
        rotated += len(again)
        if len(boxes) < BATCH:
            await _move_canary(database, vault, by)
            break
        after = boxes[-1].id
    found = await standing(database, vault)
    return KeyRotation(present, rotated, found.under_other_keys, found.unreadable)


async def try_rotation(
    database: Database, vault: Vault, *, new_key: bool = False, accept_loss: bool = False
) -> KeyRotation:
    """Return what a rotation would do; `rotated` counts the secrets it would seal again."""
    found = await standing(database, vault)
    if not found.opens and not accept_loss:
        raise Conflict(WRONG, hint=GIVE_IT)
    if new_key:
        vault.may_renew()
    elif found.present is None:
        raise no_key()
    rotated = found.secrets - found.unreadable if new_key else found.under_other_keys
    return KeyRotation(found.present or "", rotated, 0, found.unreadable)


def _sealed_anew(vault: Vault, boxes: list[SealedSecret]) -> dict[SecretId, bytes]:
    again = {}
    for each in boxes:
        bound = purpose(each.workspace_id, each.id, each.version)
        try:
            again[each.id] = vault.seal(
                bound, vault.open(bound, SealedValue(each.key_id, each.sealed_value))
            ).box
        except UnreadableError:
            log.error("secret.damaged", extra={"workspace": str(each.workspace_id), "id": str(each.id)})  # noqa: TRY400
    return again


async def _take_up(database: Database, vault: Vault, by: Actor) -> Installation:
    """Make this key the installation's when there is none."""
    async with database.tx(Role.APP, system=True) as tx:
        state = await installation.get(tx)
        if state.canary is not None:
            return state
        await installation.lock(tx)  # of two nodes, one creates the key and the other finds it
        state = await installation.get(tx)
        if state.canary is None:
            if vault.present is None:
                vault.renew()  # stored before the commit: an unused key does no harm
            await _adopt(tx, vault, state, by)
        return await installation.get(tx)


async def _move_canary(database: Database, vault: Vault, by: Actor) -> None:
    async with database.tx(Role.APP, system=True) as tx:
        await installation.lock(tx)
        state = await installation.get(tx)
        if state.canary_key_id != vault.present:
            await _adopt(tx, vault, state, by)


async def _adopt(tx: Tx, vault: Vault, state: Installation, by: Actor) -> None:
    key_id, box = vault.seal(_purpose(state), CANARY)
    await installation.set_canary(tx, key_id, box)
    before = None if state.canary_key_id is None else {"key": state.canary_key_id}
    await append_audit(
        tx, "master_key.adopted", ("master_key", key_id), by, before=before, after={"key": key_id}
    )


def _purpose(state: Installation) -> bytes:
    return b"foliot canary\0" + state.id.bytes
