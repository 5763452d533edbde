"""Dry runs and batches: a database whose transactions are savepoints of one transaction.

Why: docs/decisions/606-dry-runs.md
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from foliot.domain.ids import WorkspaceId
from foliot.storage.tx import Database, Role, Tx


class StagedDatabase(Database):
    """The database of a dry run or a batch, passed to verbs in place of the real one."""

    def __init__(self, tx: Tx, *, system: bool, savepoints: bool = True) -> None:
        self._tx, self._system, self._savepoints = tx, system, savepoints
        self.has_failed = False  # without savepoints: a part failed, and the whole transaction with it

    @asynccontextmanager
    async def tx(
        self,
        role: Role,
        workspace_id: WorkspaceId | None = None,
        *,
        system: bool = False,
        key_hash: bytes | None = None,
        relaxed: bool = False,
        prepared: bool = False,  # only a hint
    ) -> AsyncIterator[Tx]:
        is_same = (role, workspace_id, system) == (self._tx.role, self._tx.workspace_id, self._system)
        if not is_same or key_hash or relaxed:
            raise RuntimeError("a staged verb stays in the role and the workspace of its transaction")
        if self._savepoints:
            async with self._tx.part():
                yield self._tx
            return
        if self.has_failed:
            raise PartFailedError
        try:
            yield self._tx
        except Exception:
            self.has_failed = True
            raise


class DryRunDatabase(StagedDatabase):
    """Nothing that is written to it is kept."""


class PartFailedError(Exception):
    """An earlier part failed in a transaction that has no savepoints."""


@asynccontextmanager
async def open_dry_run(
    database: Database,
    role: Role,
    workspace_id: WorkspaceId | None,
    *,
    system: bool = False,
    savepoints: bool = True,
) -> AsyncIterator[DryRunDatabase]:
    """Roll the transaction back at the end of the block."""
    with suppress(_RollBackError):
        async with database.tx(role, workspace_id, system=system) as tx:
            yield DryRunDatabase(tx, system=system, savepoints=savepoints)
            raise _RollBackError


@asynccontextmanager
async def open_batch(
    database: Database, role: Role, workspace_id: WorkspaceId | None, *, savepoints: bool = True
) -> AsyncIterator[StagedDatabase]:
    """Commit the transaction at the end of the block, unless it raises."""
    async with database.tx(role, workspace_id) as tx:
        yield StagedDatabase(tx, system=False, savepoints=savepoints)


class _RollBackError(Exception):
    """Roll the dry run back."""
