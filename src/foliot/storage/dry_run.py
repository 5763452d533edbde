"""Doing things without keeping them: every transaction of a rehearsal is a part of one that is rolled back at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from foliot.domain.ids import WorkspaceId
from foliot.storage.tx import Database, Role, Tx


class DryRunDatabase(Database):
    """What a verb is given in place of the database."""

    def __init__(self, tx: Tx, *, system: bool) -> None:
        self._tx, self._system = tx, system

    @asynccontextmanager
    async def tx(
        self,
        role: Role,
        workspace_id: WorkspaceId | None = None,
        *,
        system: bool = False,
        key_hash: bytes | None = None,
        relaxed: bool = False,
    ) -> AsyncIterator[Tx]:
        is_same = (role, workspace_id, system) == (self._tx.role, self._tx.workspace_id, self._system)
        if not is_same or key_hash or relaxed:
            raise RuntimeError("a rehearsal stays in the role and the workspace it began in")
        async with self._tx.part():
            yield self._tx


@asynccontextmanager
async def open_dry_run(
    database: Database, role: Role, workspace_id: WorkspaceId | None, *, system: bool = False
) -> AsyncIterator[DryRunDatabase]:
    with suppress(_OverError):
        async with database.tx(role, workspace_id, system=system) as tx:
            yield DryRunDatabase(tx, system=system)
            raise _OverError


class _OverError(Exception):
    """The rehearsal is over: roll back."""
