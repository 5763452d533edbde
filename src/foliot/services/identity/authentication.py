"""Authenticate API keys and check permissions.

Why: docs/decisions/700-admission-cache.md
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from foliot.clock import monotonic
from foliot.domain.access import Actor, KeyHolder, Permission, Scope, parse_key
from foliot.domain.errors import Denied, NotFound
from foliot.domain.ids import PrincipalId, WorkspaceId
from foliot.domain.quotas import UNLIMITED, Quotas
from foliot.services.identity.installation import DEFAULT_WORKSPACE
from foliot.storage.identity import keys, workspaces
from foliot.storage.identity.workspaces import Workspace
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)

FRESH = 3.0  # seconds that a cached answer is used; with the lookup this stays below the promised five
MOST = 10_000  # cached answers; above that all are dropped


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of the presented key, in the workspace of this request."""

    holder: KeyHolder
    workspace: Workspace
    at: datetime  # when the request arrived, by the database clock; "in 2 hours" counts from here
    quotas: Quotas = UNLIMITED
    address: str | None = None  # of the connection
    request_id: str | None = None
    claim: UUID | None = None  # of the Idempotency-Key of this request

    @property
    def workspace_id(self) -> WorkspaceId:
        return self.workspace.id

    @property
    def actor(self) -> Actor:
        """The caller as records and the audit name it."""
        name = str(self.holder.principal.id)
        return Actor(name, self.holder.key_id, self.address, self.request_id, self.claim, self.quotas)

    @property
    def scope(self) -> Scope:
        return Scope(self.workspace_id, self.actor, self.visible_owner)

    @property
    def visible_owner(self) -> PrincipalId | None:
        """An agent sees and manages only its own jobs, whatever ids it sends."""
        principal = self.holder.principal
        return principal.id if principal.is_agent else None


@dataclass(frozen=True, slots=True)
class _Admission:
    caller: Caller
    slug: str | None  # the requested workspace; None for a key that has only one
    read_at: float  # monotonic, before the database was read

    def answers(self, slug: str | None) -> bool:
        return self.slug == slug or not self.caller.holder.principal.is_system


class Authenticator:
    """Find the caller of a key, and cache the answer for a moment instead of reading the database at every request.

    A revoked key is refused at once when the hint arrives, and after `FRESH` seconds when it does not. Code that changes a
    key, a member or a workspace calls `forget` and announces it to the other nodes.
    """

    def __init__(self, database: Database, quotas: Quotas = UNLIMITED) -> None:
        self._database = database
        self._quotas = quotas
        self._admitted: dict[tuple[bytes, str | None], _Admission] = {}
        self._known: set[bytes] = set()
        self._changes = 0
        self._looking: dict[tuple[bytes, str | None, int], asyncio.Task[Caller | None]] = {}
        self._touching: dict[bytes, asyncio.Task[None]] = {}

    async def enter(self, presented: str, slug: str | None) -> Caller | None:
        """Return the caller with this key; None when the key is not valid, for any reason.

        A key of the installation chooses its workspace by `slug`; any other key belongs to one workspace.
        """
        key = parse_key(presented)
        if key is None:
            return None
        key_hash = key.hash
        remembered = self._admitted.get((key_hash, slug)) or self._admitted.get((key_hash, None))
        if remembered is None or not remembered.answers(slug):
            return await self._look_up_once(key_hash, slug)
        age = monotonic() - remembered.read_at
        if age >= FRESH:
            return await self._look_up_once(key_hash, slug)
        caller = remembered.caller
        at, ends = self._database.instant(caller.at, age), caller.holder.expires_at
        if ends is not None and ends <= at:
            return None
        _refuse_elsewhere(caller, slug)
        return replace(caller, at=at)

    def recognize(self, presented: str, slug: str | None) -> Caller | None:
        """Return the caller that this key had a moment ago, without a query. It may have ended since: this admits nobody."""
        key = parse_key(presented)
        if key is None:
            return None
        key_hash = key.hash
        found = self._admitted.get((key_hash, slug)) or self._admitted.get((key_hash, None))
        return None if found is None else found.caller

    def knows(self, presented: str) -> bool:
        """Return whether this key was valid on this node before. It may have ended since."""
        key = parse_key(presented)
        return key is not None and key.hash in self._known

    def forget(self) -> None:
        """Drop the cache: keys, members or workspaces have changed."""
        self._changes += 1
        self._admitted.clear()

    async def close(self) -> None:
        if self._touching:
            await asyncio.wait(self._touching.values())

    async def _look_up_once(self, key_hash: bytes, slug: str | None) -> Caller | None:
        """Look the key up, once for all who ask meanwhile: the parts of a page, and its streams. Not once keys have changed."""
        asked = (key_hash, slug, self._changes)
        if asked not in self._looking:
            task = self._looking[asked] = asyncio.create_task(self._look_up(*asked, monotonic()))
            task.add_done_callback(lambda _: self._looking.pop(asked, None))
        return await asyncio.shield(self._looking[asked])

    async def _look_up(
        self, key_hash: bytes, slug: str | None, changes: int, read_at: float
    ) -> Caller | None:
        async with self._database.tx(Role.APP, key_hash=key_hash) as tx:
            found = await keys.find_presented(tx, key_hash)
            if found is None:
                return None
            own = found.holder.principal.workspace_id
            home = None if own is None else await workspaces.get(tx, own)
        if found.last_used_at is None or tx.now - found.last_used_at >= keys.TOUCH_AFTER:
            self._touch(key_hash)
        asked = slug if home is None else None
        if home is None:
            home = await _chosen(self._database, slug or DEFAULT_WORKSPACE)
        quotas = found.holder.budget.within(self._quotas.overlaid(home.quotas))
        caller = Caller(found.holder, home, tx.now, quotas)
        if changes == self._changes:  # otherwise the answer may predate the change
            self._remember(key_hash, _Admission(caller, asked, read_at))
        _refuse_elsewhere(caller, slug)
        return caller

    def _remember(self, key_hash: bytes, admission: _Admission) -> None:
        if len(self._admitted) >= MOST:
            self._admitted.clear()
        if len(self._known) >= MOST:
            self._known.clear()
        self._admitted[key_hash, admission.slug] = admission
        self._known.add(key_hash)

    def _touch(self, key_hash: bytes) -> None:
        """Record the use of the key in a background task: the request does not wait for it."""
        if key_hash not in self._touching:
            task = self._touching[key_hash] = asyncio.create_task(self._write_use(key_hash))
            task.add_done_callback(lambda _: self._touching.pop(key_hash, None))

    async def _write_use(self, key_hash: bytes) -> None:
        try:
            async with self._database.tx(Role.APP, key_hash=key_hash, relaxed=True) as tx:
                await keys.touch(tx, key_hash)
        except Exception as error:  # noqa: BLE001  # the next use writes it
            log.debug("key.use_not_written", extra={"reason": str(error)})


def require_permission(caller: Caller, permission: Permission, *, agents: bool = True) -> None:
    """Refuse a caller without the permission. `agents` is false for things that a whole workspace shares."""
    if caller.visible_owner is not None and not agents:
        raise Denied(
            "An agent manages its own jobs alone; this concerns the whole workspace.",
            hint="Ask a member of the workspace to do it.",
        )
    if permission is Permission.WORKER and not caller.holder.may(permission):
        raise Denied(
            "This is for keys of the scope worker, which belong to one workspace.",
            hint="Make one with `foliot keys create --scope worker`, as an administrator of the workspace.",
        )
    if permission is Permission.INVITE and not caller.holder.may(permission):
        raise Denied(
            "Only an invite can be used here.", hint="Send the key of the invite that you were given."
        )
    if not caller.holder.may(permission):
        has = caller.holder.role or "no role here"
        raise Denied(
            f"This needs the role {permission}; this key has {has}.",
            hint="Ask an administrator of the workspace for a key with that role.",
        )


def _refuse_elsewhere(caller: Caller, slug: str | None) -> None:
    home = caller.workspace.slug
    if slug not in (None, home) and not caller.holder.principal.is_system:
        raise Denied(
            f'This key belongs to the workspace "{home}".',
            hint="Leave the header Foliot-Workspace out, or use a key of the other workspace.",
        )


async def _chosen(database: Database, slug: str) -> Workspace:
    async with database.tx(Role.APP, system=True) as tx:
        found = await workspaces.find_by_slug(tx, slug)
    if found is None or found.archived_at is not None:
        raise NotFound(
            f"There is no workspace {slug[:64]!a}.", hint="The header Foliot-Workspace takes its slug."
        )
    return found
