"""Claim: ready runs -> leases, in batches, with an equal share for every workspace that has work."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID

from foliot.domain.ids import FIRST_ID, HostId, WorkerId, WorkspaceId
from foliot.services.workers.limits import take_asked, take_within_limits
from foliot.storage.queue import claims, run_queue
from foliot.storage.queue.claims import ServedWorkspace
from foliot.storage.queue.run_queue import Claimed, ClaimOrder, OverlapFoundError
from foliot.storage.tx import Database, Role, Tx
from foliot.storage.workers import hosts

log = logging.getLogger(__name__)

MOST_QUEUES = 20  # served by one claim of a worker that serves them all
TRUSTED = 10  # claims in a row that find all they ask for, and so need not ask which queues there are
MOST_WORKSPACES = 50  # served at once
MOST_LOOKED_AT = (
    5_000  # by one claim, while none of them has anything to do now; the next one goes on behind them
)
MOST_ROUNDS = 10  # in a row in which caps held back all that was found

T = TypeVar("T")


@dataclass(slots=True)
class Turns:
    """Whose turn it is, by queue: the workspace served last. Kept by each claimer; losing it costs nobody anything."""

    last: dict[str, UUID] = field(default_factory=dict)
    queue: str = ""  # the one served last, of a worker that serves them all
    _known: list[str] = field(default_factory=list)  # queues that had work when they were last asked for
    _trusted: int = 0  # claims for which these will do

    def known(self) -> list[str]:
        """The queues as they were found lately, in turn; none where they are to be asked for."""
        if self._trusted <= 0:
            return []
        self._trusted -= 1
        behind = [queue for queue in self._known if queue > self.queue]
        return behind + [queue for queue in self._known if queue <= self.queue]

    def remember(self, queues: Sequence[str]) -> None:
        self._known, self._trusted = list(queues), TRUSTED

    def forget(self) -> None:
        self._trusted = 0


async def claim(
    database: Database, worker_id: WorkerId, queue: str, types: Sequence[str], permits: int, turns: Turns
) -> list[Claimed]:
    """At most `permits` runs that this worker can do, leased to it. One that is no longer registered gets none."""
    return await claim_and(_as_claimed, database, Claimer(worker_id, queue, types, permits, turns)) or []


@dataclass(frozen=True, slots=True)
class Claimer:
    """Who claims, what it can do, and how much of it at once."""

    worker_id: WorkerId
    queue: str
    types: Sequence[str]
    permits: int
    turns: Turns
    workspace_id: WorkspaceId | None = None  # of a worker that serves one alone
    host_id: HostId | None = None  # of a worker that takes what is meant for its host, from whatever queue
    is_careful: bool = False  # passes by runs of jobs that have a lease already, at a price


async def claim_and(
    then: Callable[[Tx, list[Claimed]], Awaitable[T]], database: Database, claimer: Claimer
) -> T | None:
    """Claim, and do something with what was claimed before it is committed. None when there is nothing to claim.

    That a job has one run too many is found by the index that forbids it, and is the fault of our bookkeeping. Asking before each
    lease would cost every claim more than all claims lose by beginning again, one by one, where it happens.
    """
    for _ in range(MOST_ROUNDS):
        turn = claimer.turns.last.get(claimer.queue, FIRST_ID)
        try:
            async with _acting_for(database, claimer.workspace_id) as tx:
                claimed, held = await _claim(tx, claimer)
                if claimed:
                    return await then(tx, claimed)
        except OverlapFoundError:
            log.warning("claim.overlap_found", extra={"queue": claimer.queue})
            # Whose turn it was, it is still: neighbours of such a job would otherwise be passed by for as long as it has one too many.
            claimer.turns.last[claimer.queue] = turn
            claimer = replace(claimer, is_careful=True)
            continue
        if not held:
            return None
    return None


async def queues_in_turn(
    database: Database, turns: Turns, workspace_id: WorkspaceId | None = None
) -> list[str]:
    """For a worker that serves them all: those that have work, beginning behind the one that was served last."""
    async with _acting_for(database, workspace_id) as tx:
        if workspace_id is not None:
            return await claims.queues_of_workspace(tx, workspace_id, MOST_QUEUES)
        queues = await claims.queues_with_work(tx, turns.queue, MOST_QUEUES)
        if len(queues) < MOST_QUEUES and turns.queue:
            around = await claims.queues_with_work(tx, "", MOST_QUEUES - len(queues))
            queues += [queue for queue in around if queue <= turns.queue]
    return queues


def _acting_for(database: Database, workspace_id: WorkspaceId | None) -> AbstractAsyncContextManager[Tx]:
    """Who serves one workspace alone sees nothing of the others, whatever a statement forgets to ask for."""
    return database.tx(Role.ENGINE) if workspace_id is None else database.tx(Role.APP, workspace_id)


async def _claim(tx: Tx, claimer: Claimer) -> tuple[list[Claimed], int]:
    """Also tells how many runs were found and put in line: behind a cap, or since their type is switched off."""
    if claimer.workspace_id is not None:
        return await _claim_bound(tx, claimer, claimer.workspace_id)
    turns, queue = claimer.turns, claimer.queue
    looked_at: set[UUID] = set()
    while len(looked_at) < MOST_LOOKED_AT:
        # Where the first few have only what may start later, more of them are asked at once.
        most = MOST_WORKSPACES if looked_at else min(claimer.permits, MOST_WORKSPACES)
        found, behind = await _next_in_turn(tx, claimer, turns.last.get(queue, FIRST_ID), most)
        found = [each for each in found if each.workspace_id not in looked_at]
        if not found:
            break
        looked_at.update(each.workspace_id for each in found)
        turns.last[queue] = behind
        served = [each for each in found if not each.is_frozen]
        claimed, held = await _take(tx, claimer, served) if served else ([], 0)
        if len(claimed) >= claimer.permits and claimed[-1].workspace_id != found[-1].workspace_id:
            turns.last[queue] = claimed[-1].workspace_id
        if claimed or held:
            return claimed, held
    return [], 0


async def _claim_bound(tx: Tx, claimer: Claimer, workspace_id: WorkspaceId) -> tuple[list[Claimed], int]:
    served = await claims.bound(tx, claimer.worker_id, workspace_id)
    if served is None:
        return [], 0
    if claimer.host_id is None:
        return await _take(tx, claimer, [served])
    room = await hosts.load_free_capacity(tx, claimer.host_id)
    if not room:
        return [], 0
    asked = await hosts.lock_ready_runs(
        tx, claimer.host_id, workspace_id, claimer.types, room, claimer.permits
    )
    return await take_asked(tx, claimer.worker_id, asked, claimer.host_id)


async def _next_in_turn(
    tx: Tx, claimer: Claimer, after: UUID, most: int
) -> tuple[list[ServedWorkspace], UUID]:
    """And behind whom the next turn begins. One more is asked for: where there is none, it begins with the first, and need not look
    in vain behind the last.
    """
    worker_id, queue = claimer.worker_id, claimer.queue
    found = await claims.workspaces_with_work(tx, worker_id, queue, after, most + 1)
    if len(found) > most:
        return found[:most], found[most - 1].workspace_id
    if len(found) == most or after == FIRST_ID:
        return found, FIRST_ID
    around = await claims.workspaces_with_work(tx, worker_id, queue, FIRST_ID, most - len(found))
    found += [each for each in around if each.workspace_id <= after]
    return found, found[-1].workspace_id if found else FIRST_ID


async def _take(tx: Tx, claimer: Claimer, served: Sequence[ServedWorkspace]) -> tuple[list[Claimed], int]:
    """An equal share of each workspace, those without caps and with all types on first."""
    worker_id, queue, types, permits = claimer.worker_id, claimer.queue, claimer.types, claimer.permits
    share = max(1, permits // len(served))
    claimed: list[Claimed] = []
    held = 0
    careful = claimer.is_careful
    if free := [each.workspace_id for each in served if not (careful or each.is_limited)]:
        claimed = await run_queue.claim(tx, ClaimOrder(worker_id, queue, types, share, permits), free)
    left = (permits - len(claimed)) // share
    if limited := [each.workspace_id for each in served if careful or each.is_limited][:left]:
        capped, held = await take_within_limits(tx, worker_id, queue, types, limited, share)
        claimed += capped
    return claimed, held


async def _as_claimed(_: Tx, claimed: list[Claimed]) -> list[Claimed]:
    return claimed
