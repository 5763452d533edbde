"""Claim: ready runs -> leases, in batches, with an equal share for every workspace that has work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from foliot.domain.ids import WorkerId
from foliot.services.limits import take_within_limits
from foliot.storage import leases
from foliot.storage.leases import FIRST, Claimed
from foliot.storage.tx import Database, Role

MOST_WORKSPACES = 50  # served by one claim
MOST_ROUNDS = 10  # in a row in which caps held back all that was found


@dataclass(slots=True)
class Turns:
    """Whose turn it is, by queue: the workspace served last. Kept by each claimer; losing it costs nobody anything."""

    last: dict[str, UUID] = field(default_factory=dict)


async def claim(
    database: Database, worker_id: WorkerId, queue: str, types: Sequence[str], permits: int, turns: Turns
) -> list[Claimed]:
    """At most `permits` runs that this worker can do, leased to it."""
    for _ in range(MOST_ROUNDS):
        claimed, held = await _claim(database, worker_id, queue, types, permits, turns)
        if claimed or not held:
            return claimed
    return []


async def _claim(
    database: Database, worker_id: WorkerId, queue: str, types: Sequence[str], permits: int, turns: Turns
) -> tuple[list[Claimed], int]:
    """One transaction; also tells how many runs were found and put in line behind a cap."""
    async with database.tx(Role.ENGINE) as tx:
        most = min(permits, MOST_WORKSPACES)
        after = turns.last.get(queue, FIRST)
        served = await leases.workspaces_with_work(tx, queue, after, most)
        if len(served) < most and after != FIRST:
            around = await leases.workspaces_with_work(tx, queue, FIRST, most - len(served))
            served += [each for each in around if each.workspace_id <= after]
        if not served:
            return [], 0
        turns.last[queue] = served[-1].workspace_id
        share = max(1, permits // len(served))
        claimed: list[Claimed] = []
        held = 0
        if free := [each.workspace_id for each in served if not each.is_limited]:
            claimed = await leases.take(tx, worker_id, queue, types, free, share)
        if limited := [each.workspace_id for each in served if each.is_limited]:
            capped, held = await take_within_limits(tx, worker_id, queue, types, limited, share)
            claimed += capped
        return claimed, held
