"""Who comes in with a key, into which workspace, and what they may do there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.domain.access import Actor, KeyHolder, Permission, parse_key
from foliot.domain.errors import Denied, NotFound
from foliot.domain.ids import PrincipalId, WorkspaceId
from foliot.services.setup import DEFAULT_WORKSPACE
from foliot.storage import keys, workspaces
from foliot.storage.tx import Database, Role
from foliot.storage.workspaces import Workspace


@dataclass(frozen=True, slots=True)
class Caller:
    """A key's holder in the workspace that this request works in."""

    holder: KeyHolder
    workspace: Workspace
    at: datetime  # when it came in, by the database's clock: words such as "in 2 hours" count from here
    address: str | None = None  # the peer's
    request_id: str | None = None

    @property
    def workspace_id(self) -> WorkspaceId:
        return self.workspace.id

    @property
    def actor(self) -> Actor:
        """How records and audit speak of it."""
        return Actor(str(self.holder.principal.id), self.holder.key_id, self.address, self.request_id)

    @property
    def only_owner(self) -> PrincipalId | None:
        """An agent sees and manages its own jobs alone, whatever ids it sends."""
        principal = self.holder.principal
        return principal.id if principal.is_agent else None


async def enter(database: Database, presented: str, slug: str | None) -> Caller | None:
    """The caller with this key; None for anything that is not a valid key, whatever the reason.

    A key of the installation itself chooses its workspace by `slug`; any other key belongs to one.
    """
    key = parse_key(presented)
    if key is None:
        return None
    async with database.tx(Role.APP, key_hash=key.hash) as tx:
        holder = await keys.find_presented(tx, key)
        if holder is None:
            return None
        own = holder.principal.workspace_id
        home = None if own is None else await workspaces.by_id(tx, own)
    if home is None:
        return Caller(holder, await _chosen(database, slug or DEFAULT_WORKSPACE), tx.now)
    if slug is not None and slug != home.slug:
        raise Denied(
            f'This key belongs to the workspace "{home.slug}".',
            hint="Leave the header Foliot-Workspace out, or use a key of the other workspace.",
        )
    return Caller(holder, home, tx.now)


def admit(caller: Caller, permission: Permission) -> None:
    """Refuses whoever may not."""
    if not caller.holder.may(permission):
        has = caller.holder.role or "no role here"
        raise Denied(
            f"This needs the role {permission}; this key has {has}.",
            hint="Ask an administrator of the workspace for a key with that role.",
        )


async def _chosen(database: Database, slug: str) -> Workspace:
    async with database.tx(Role.APP, system=True) as tx:
        found = await workspaces.by_slug(tx, slug)
    if found is None or found.archived_at is not None:
        raise NotFound(
            f"There is no workspace {slug[:64]!a}.", hint="The header Foliot-Workspace takes its slug."
        )
    return found


def refuse_agent(caller: Caller, noun: str) -> None:
    """What all jobs of a workspace share is not for an agent to change, whatever its role."""
    if caller.only_owner is not None:
        raise Denied(
            f"An agent may look at {noun}, but not change them: they concern the jobs of others.",
            hint="Ask a member of the workspace.",
        )
