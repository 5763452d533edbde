"""Limits on running runs, of a workspace (the empty key) and of concurrency keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from foliot.domain.ids import FIRST_ID, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx

LimitName = tuple[WorkspaceId, str]
WHOLE = ""  # the key of a workspace as a whole
MOST_COUNTED = 10_000  # runs in line; beyond that a number is no news


@dataclass(frozen=True, slots=True)
class Permit:
    """What a running run uses: a permit of its workspace, and one of its key."""

    workspace_id: WorkspaceId
    concurrency_key: str | None
    is_off: bool = False  # the type of the run that asks for it is switched off

    @property
    def names(self) -> tuple[LimitName, ...]:
        whole = (self.workspace_id, WHOLE)
        return (
            (whole,) if self.concurrency_key is None else (whole, (self.workspace_id, self.concurrency_key))
        )


@dataclass(frozen=True, slots=True)
class Limit:
    workspace_id: WorkspaceId
    key: str
    cap: int
    in_use: int
    waiting: int = 0  # runs in line for it; counted where people ask

    @property
    def name(self) -> LimitName:
        return self.workspace_id, self.key


async def lock(tx: Tx, permits: Iterable[Permit]) -> dict[LimitName, Limit]:
    names = {name for permit in permits for name in permit.names}
    params = {
        "workspace_ids": list({workspace_id for workspace_id, _ in names}),
        "keys": list({key for _, key in names}),
    }
    return {limit.name: limit for limit in _limits(await tx.fetch(sql.limits.lock, params))}


async def lock_from(tx: Tx, after: LimitName | None, limit: int) -> list[Limit]:
    """Lock the next limits after `after`, in their order."""
    workspace_id, key = after or (FIRST_ID, WHOLE)
    params = {"workspace_id": workspace_id, "key": key, "limit": limit}
    return _limits(await tx.fetch(sql.limits.lock_from, params))


async def list_limits(tx: Tx, workspace_id: WorkspaceId) -> list[Limit]:
    return await _shown(tx, workspace_id, None)


async def get(tx: Tx, key: str) -> Limit | None:
    return next(iter(await _shown(tx, tx.workspace_id, key)), None)


async def use(tx: Tx, counts: Mapping[LimitName, int]) -> None:
    """Add to the counts of used permits; give back with negative counts. Needs the locks of the rows."""
    if counts:
        await tx.execute(sql.limits.use, {**name_columns(counts), "counts": list(counts.values())})


async def put(tx: Tx, workspace_id: WorkspaceId, key: str, cap: int) -> None:
    await tx.execute(sql.limits.set, {"workspace_id": workspace_id, "key": key, "cap": cap})


async def remove(tx: Tx, workspace_id: WorkspaceId, key: str) -> bool:
    return await tx.execute(sql.limits.remove, {"workspace_id": workspace_id, "key": key}) == 1


async def recount(tx: Tx, names: Sequence[LimitName]) -> int:
    """Set `in_use` to the number of leases; return how many were wrong. Needs the locks of the rows."""
    return await tx.execute(sql.limits.recount, name_columns(names)) if names else 0


async def count_free(tx: Tx, names: Sequence[LimitName]) -> dict[LimitName, int]:
    """Return the free permits of each limit that has some and that runs wait for."""
    rows = await tx.fetch(sql.limits.free_permits, name_columns(names)) if names else []
    return {(row["workspace_id"], row["key"]): row["free"] for row in rows}


async def _shown(tx: Tx, workspace_id: WorkspaceId | None, key: str | None) -> list[Limit]:
    params = {"workspace_id": workspace_id, "key": key, "most": MOST_COUNTED}
    return [Limit(**row) for row in await tx.fetch(sql.limits.shown, params)]


def name_columns(names: Iterable[LimitName]) -> dict[str, list[object]]:
    names = list(names)
    return {
        "workspace_ids": [workspace_id for workspace_id, _ in names],
        "keys": [key for _, key in names],
    }


def _limits(rows: Sequence[Row]) -> list[Limit]:
    return [Limit(row["workspace_id"], row["key"], row["cap"], row["in_use"]) for row in rows]
