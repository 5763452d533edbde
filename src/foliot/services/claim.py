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
from foliot.storage.workers import ANY_QUEUE

MOST_QUEUES = 20  # served by one claim of a worker that serves them all
MOST_WORKSPACES = 50  # served by one claim
MOST_ROUNDS = 10  # in a row in which caps held back all that was found


@dataclass(slots=True)
class Turns:
    """Whose turn it is, by queue: the workspace served last. Kept by each claimer; losing it costs nobody anything."""

    last: dict[str, UUID] = field(default_factory=dict)
    queue: str = ""  # the one served last, of a worker that serves them all


async def claim(
    database: Database, worker_id: WorkerId, queue: str, types: Sequence[str], permits: int, turns: Turns
) -> list[Claimed]:
    """At most `permits` runs that this worker can do, leased to it. One that is no longer registered gets none."""
    if queue == ANY_QUEUE:
        return await _claim_anywhere(database, worker_id, types, permits, turns)
    for _ in range(MOST_ROUNDS):
        claimed, held = await _claim(database, worker_id, queue, types, permits, turns)
        if claimed or not held:
            return claimed
    return []


async def _claim_anywhere(
    database: Database, worker_id: WorkerId, types: Sequence[str], permits: int, turns: Turns
) -> list[Claimed]:
    """Queue by queue, beginning behind the one that was served last."""
    async with database.tx(Role.ENGINE) as tx:
        queues = await leases.queues_with_work(tx, turns.queue, MOST_QUEUES)
        if len(queues) < MOST_QUEUES and turns.queue:
            around = await leases.queues_with_work(tx, "", MOST_QUEUES - len(queues))
            queues += [queue for queue in around if queue <= turns.queue]
    claimed: list[Claimed] = []
    for queue in queues:
        claimed += await claim(database, worker_id, queue, types, permits - len(claimed), turns)
        turns.queue = queue
        if len(claimed) >= permits:
            break
    return claimed


async def _claim(
    database: Database, worker_id: WorkerId, queue: str, types: Sequence[str], permits: int, turns: Turns
) -> tuple[list[Claimed], int]:
    """One transaction; also tells how many runs were found and put in line behind a cap."""
    async with database.tx(Role.ENGINE) as tx:
        most = min(permits, MOST_WORKSPACES)
        after = turns.last.get(queue, FIRST)
        served = await leases.workspaces_with_work(tx, worker_id, queue, after, most)
        if len(served) < most and after != FIRST:
            around = await leases.workspaces_with_work(tx, worker_id, queue, FIRST, most - len(served))
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
