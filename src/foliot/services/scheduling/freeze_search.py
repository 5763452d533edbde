"""Looking at freezes: those in force, those to come and those that are over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from foliot.domain.access import Scope
from foliot.domain.errors import not_found
from foliot.domain.ids import LAST_ID, FreezeId
from foliot.services.cursors import read_cursor, write_cursor
from foliot.storage.jobs import freezes
from foliot.storage.jobs.freezes import FreezeRow
from foliot.storage.tx import Database, Role, Tx

__all__ = ["FreezeRow"]


@dataclass(frozen=True, slots=True)
class FreezePage:
    items: tuple[FreezeRow, ...]
    next_cursor: str | None
    at: datetime  # when we looked


async def one(database: Database, scope: Scope, freeze_id: FreezeId) -> FreezePage:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await freezes.get(tx, freeze_id)
        visible = await _visible(tx, [] if found is None else [found], scope)
    if not visible:
        raise not_found("freeze")
    return FreezePage(visible, None, tx.now)


async def listed(
    database: Database, scope: Scope, *, ended: bool = False, cursor: str | None = None, limit: int = 50
) -> FreezePage:
    """List freezes, newest first: those in force and those to come; with `ended`, also those that are over."""
    [before] = read_cursor(cursor, UUID) or [LAST_ID]
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await freezes.page(tx, before, limit + 1, ended=ended)
        visible = await _visible(tx, found[:limit], scope)
    last = found[limit - 1].scoped.freeze.id if len(found) > limit else None
    return FreezePage(visible, None if last is None else write_cursor(last), tx.now)


async def _visible(tx: Tx, found: Sequence[FreezeRow], scope: Scope) -> tuple[FreezeRow, ...]:
    """To an agent, jobs of others do not exist: neither do freezes that cover nothing else."""
    if scope.visible_owner is None:
        return tuple(found)
    own = await freezes.list_owned(tx, {job for row in found for job in row.scoped.jobs}, scope.visible_owner)
    seen = [replace(row, scoped=replace(row.scoped, jobs=row.scoped.jobs & own)) for row in found]
    return tuple(
        shown
        for row, shown in zip(found, seen, strict=True)
        if not row.scoped.jobs or shown.scoped.jobs or row.scoped.tags or row.scoped.queues
    )
