"""The master key of an installation: told from wrong ones by a canary, and replaced by a new one while all goes on.

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
BATCH = 100  # secrets sealed anew by one transaction
MOST_BATCHES = 10  # of one call; whoever asks, asks again
MOST_TOLD = 100  # names of unreadable secrets in the log
WRONG = "The master keys of this node do not open this installation's secrets: runs that use them fail, and no new ones are taken."
GIVE_IT = (
    "Start with the FOLIOT_MASTER_KEY, or the master.key in the data directory, that sealed them. Where it is lost: "
    "`foliot secrets rotate --accept-loss`, then set each secret anew."
)


@dataclass(frozen=True, slots=True)
class MasterKeyUsage:
    """How the secrets of the whole installation stand with the keys that this node knows."""

    present: str | None
    known: tuple[str, ...]
    opens: bool  # whether these are keys of this installation
    secrets: int
    under_other_keys: int  # that are known: a rotation would seal them anew
    unreadable: int


@dataclass(frozen=True, slots=True)
class KeyRotation:
    present: str
    rotated: int  # by this call
    left: int  # for the next one; those that cannot be opened by the key they name stay
    unreadable: int


async def begin(database: Database, vault: Vault, *, makes: bool) -> MasterKeyUsage:
    """At the start of a node: does encryption work, and are these the right keys? The first that comes becomes the installation's.

    With `makes`, one is made where there is none. Wrong keys stop nothing but secrets: all else goes on, and it is told.
    """
    vault.check()
    if makes or vault.present is not None:
        await _take_up(database, vault, OPERATOR)
    return await look(database, vault)


async def look(database: Database, vault: Vault) -> MasterKeyUsage:
    """And tell in the log what cannot be read."""
    found = await standing(database, vault)
    if not found.opens:
        log.error("master_key.wrong", extra={"problem": WRONG, "advice": GIVE_IT, "known": found.known})
    if found.unreadable:
        async with database.tx(Role.APP, system=True) as tx:
            named = await secrets.list_unreadable(tx, found.known, MOST_TOLD)
        told = [f"{slug}/{name}" for slug, name in named]
        log.error("secrets.list_unreadable", extra={"count": found.unreadable, "names": told})
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
    """Whether this vault has the key of this installation; where there is none yet, any will do."""
    if state.canary is None or state.canary_key_id is None:
        return True
    try:
        return vault.open(_purpose(state), SealedValue(state.canary_key_id, state.canary)) == CANARY
    except UnreadableError:
        return False


async def check_key(database: Database, vault: Vault, by: Actor) -> None:
    """Before anything is sealed: what is sealed by a wrong key is lost with it when the right one is put back.

    The first secret of an installation makes its key, where the start did not.
    """
    if isinstance(database, DryRunDatabase):
        return  # whoever rehearses has asked `may_seal`, and makes no key
    if not opens_canary(vault, await _take_up(database, vault, by)):
        raise Unavailable(WRONG, hint=GIVE_IT)
    if vault.present is None:
        raise no_key()


async def may_seal(database: Database, vault: Vault) -> Vault:
    """The same, and nothing is made: where the first secret would make the first key, one to try with."""
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
    """Seal with the present key what older ones have sealed, some at a time; with `new_key`, make another the present one first.

    It may stop anywhere and be asked for again. `accept_loss`: go on without the key that this installation had, whose secrets
    then stay unreadable until each is set anew.
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
                told = {"key": present, "secrets": len(again)}
                await append_audit(tx, "master_key.rotated", ("master_key", present), by, after=told)
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
    """What it would come to; `rotated` is all that would be sealed anew."""
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
    """Where the installation has no key yet, ours is its own from here on."""
    async with database.tx(Role.APP, system=True) as tx:
        state = await installation.get(tx)
        if state.canary is not None:
            return state
        await installation.lock(
            tx
        )  # of two nodes at once, one makes the key, and the other sees that it has another
        state = await installation.get(tx)
        if state.canary is None:
            if vault.present is None:
                vault.renew()  # kept before the commit: a key that is kept and not used does no harm
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
