"""Limits: caps of a workspace (the empty key) and of concurrency keys, and the runs that wait at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foliot.domain.ids import FIRST_ID, RunId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

LimitName = tuple[WorkspaceId, str]
WHOLE = ""  # the key of a workspace as a whole
MOST_COUNTED = 10_000  # waiting runs


@dataclass(frozen=True, slots=True)
class Permit:
    """The limits that a run counts against: its workspace's and its concurrency key's."""

    workspace_id: WorkspaceId
    concurrency_key: str | None
    is_off: bool = False  # the run's type is disabled

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
    waiting: int = 0  # runs that wait at it; counted in lists only

    @property
    def name(self) -> LimitName:
        return self.workspace_id, self.key


async def lock(tx: Tx, permits: Iterable[Permit]) -> dict[LimitName, Limit]:
    names = {name for permit in permits for name in permit.names}
    params = {
        "workspace_ids": list({workspace_id for workspace_id, _ in names}),
        "keys": list({key for _, key in names}),
    }
    return {limit.name: limit for limit in await tx.fetch_as(Limit, sql.limits.lock, params)}


async def lock_from(tx: Tx, after: LimitName | None, limit: int) -> list[Limit]:
    """Lock the next limits behind `after`, in their order."""
    workspace_id, key = after or (FIRST_ID, WHOLE)
    params = {"workspace_id": workspace_id, "key": key, "limit": limit}
    return await tx.fetch_as(Limit, sql.limits.lock_from, params)


async def list_limits(tx: Tx, workspace_id: WorkspaceId) -> list[Limit]:
    return await _list(tx, workspace_id, None)


async def get(tx: Tx, key: str) -> Limit | None:
    return next(iter(await _list(tx, tx.workspace_id, key)), None)


async def use(tx: Tx, counts: Mapping[LimitName, int]) -> None:
    """Add to `in_use`. The caller has the rows' locks."""
    if counts:
        await tx.execute(sql.limits.use, {**name_columns(counts), "counts": list(counts.values())})


async def put(tx: Tx, workspace_id: WorkspaceId, key: str, cap: int) -> None:
    await tx.execute(sql.limits.set, {"workspace_id": workspace_id, "key": key, "cap": cap})


async def remove(tx: Tx, workspace_id: WorkspaceId, key: str) -> bool:
    return await tx.execute(sql.limits.remove, {"workspace_id": workspace_id, "key": key}) == 1


async def recount(tx: Tx, names: Sequence[LimitName]) -> int:
    """Set `in_use` to the number of leases, and return how many limits were wrong. The caller has the rows' locks."""
    return await tx.execute(sql.limits.recount, name_columns(names)) if names else 0


async def count_free(tx: Tx, names: Sequence[LimitName]) -> dict[LimitName, int]:
    """Return how many more runs may start under each limit that has waiting runs and free capacity."""
    rows = await tx.fetch_as(_FreeCapacity, sql.limits.count_free, name_columns(names)) if names else []
    return {(row.workspace_id, row.key): row.free for row in rows}


async def _list(tx: Tx, workspace_id: WorkspaceId | None, key: str | None) -> list[Limit]:
    params = {"workspace_id": workspace_id, "key": key, "most": MOST_COUNTED}
    return await tx.fetch_as(Limit, sql.limits.list_limits, params)


def name_columns(names: Iterable[LimitName]) -> dict[str, list[object]]:
    names = list(names)
    return {
        "workspace_ids": [workspace_id for workspace_id, _ in names],
        "keys": [key for _, key in names],
    }


class ReadyRun(NamedTuple):
    run_id: RunId
    permit: Permit


class _FreeCapacity(NamedTuple):
    workspace_id: WorkspaceId
    key: str
    free: int
