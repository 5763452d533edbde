"""Claim: ready runs -> leases, in batches, with an equal share for every workspace that has work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from foliot.domain.ids import WorkerId
from foliot.storage import leases
from foliot.storage.leases import FIRST, Claimed
from foliot.storage.tx import Database, Role

MOST_WORKSPACES = 50  # served by one claim


@dataclass(slots=True)
class Turns:
    """Whose turn it is, by queue: the workspace served last. Kept by each claimer; losing it costs nobody anything."""

    last: dict[str, UUID] = field(default_factory=dict)


async def claim(
    database: Database, worker_id: WorkerId, queue: str, types: Sequence[str], permits: int, turns: Turns
) -> list[Claimed]:
    """At most `permits` runs that this worker can do, leased to it."""
    async with database.tx(Role.ENGINE) as tx:
        most = min(permits, MOST_WORKSPACES)
        after = turns.last.get(queue, FIRST)
        served = await leases.workspaces_with_work(tx, queue, after, most)
        if len(served) < most and after != FIRST:
            around = await leases.workspaces_with_work(tx, queue, FIRST, most - len(served))
            served += [workspace for workspace in around if workspace <= after]
        if not served:
            return []
        turns.last[queue] = served[-1]
        return await leases.take(tx, worker_id, queue, types, served, max(1, permits // len(served)))
