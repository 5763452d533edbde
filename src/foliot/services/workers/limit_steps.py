"""Claim runs under limits, and give their permits back.

A claim takes permits and the end of a lease gives them back, both under the locks of the limit rows. A run over a limit stands in
`waiting` until a permit is free. A workspace without limits costs one index probe. Runs of disabled types are held here as well,
whatever made them ready.

Why: docs/decisions/209-limits-and-disabled-types.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from foliot.domain.ids import HostId, RunId, WorkerId
from foliot.domain.policy import LONGEST_WAIT
from foliot.domain.run import WaitsFor
from foliot.storage.queue import limits, run_queue
from foliot.storage.queue.limits import Limit, LimitName, Permit
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Tx


async def claim_permitted(
    tx: Tx,
    worker_id: WorkerId,
    asked: Mapping[RunId, Permit],
    host_id: HostId | None = None,
    longest: timedelta = LONGEST_WAIT,
) -> tuple[list[Claimed], int]:
    """Lease the locked runs that limits permit, for a host where one is named; hold the others. Return the leases and how many are held."""
    if not asked:
        return [], 0
    off = [run_id for run_id, permit in asked.items() if permit.is_off]
    await run_queue.hold_ready(tx, off, WaitsFor.TYPE)
    asked = {run_id: permit for run_id, permit in asked.items() if not permit.is_off} if off else asked
    locked = await limits.lock(tx, asked.values())
    permitted, held = _split_by_permits(asked, locked)
    claimed = await run_queue.claim_locked(tx, worker_id, permitted, host_id, longest)
    used = Counter(name for run in claimed for name in asked[run.run_id].names if name in locked)
    await limits.use(tx, used)
    await run_queue.hold_ready(tx, held, WaitsFor.LIMIT)
    return claimed, len(held) + len(off)


async def give_back_permits(tx: Tx, permits: Sequence[Permit]) -> None:
    """Count the permits of ended leases down, and promote as many waiting runs."""
    if not permits:
        return
    locked = await limits.lock(tx, permits)
    freed = Counter(name for permit in permits for name in permit.names if name in locked)
    await limits.use(tx, {name: -count for name, count in freed.items()})
    await run_queue.promote_freed(tx, freed)


def _split_by_permits(
    asked: Mapping[RunId, Permit], locked: Mapping[LimitName, Limit]
) -> tuple[list[RunId], list[RunId]]:
    """Return the permitted runs and the others. In the order asked, a run takes a permit of every limit above it, or none."""
    free = {name: limit.cap - limit.in_use for name, limit in locked.items()}
    permitted: list[RunId] = []
    held: list[RunId] = []
    for run_id, permit in asked.items():
        needed = [name for name in permit.names if name in free]
        if all(free[name] > 0 for name in needed):
            permitted.append(run_id)
            for name in needed:
                free[name] -= 1
        else:
            held.append(run_id)
    return permitted, held
