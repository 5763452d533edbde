"""Claim ready runs for a worker, in batches, with an equal share for every workspace that has work; load what there is to do in them.

Why: docs/decisions/402-claims.md
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from foliot.domain.ids import FIRST_ID, HostId, WorkerId, WorkspaceId
from foliot.domain.outcomes import Failed
from foliot.domain.policy import LONGEST_WAIT
from foliot.domain.run import RunError, effective_input
from foliot.domain.secret_references import may_refer, names
from foliot.services.secrets.resolution import resolve_secrets
from foliot.services.secrets.vault import Vault
from foliot.services.settlement.report import Report, report
from foliot.services.workers.limit_steps import claim_permitted
from foliot.storage.queue import run_queue
from foliot.storage.queue.run_queue import Claimed, ClaimOrder, LoadedRun, OverlapFoundError, ServedWorkspace
from foliot.storage.tx import Database, Role, Tx
from foliot.storage.workers import hosts
from foliot.storage.workers.workers import ANY_QUEUE

__all__ = ["Claimed"]

log = logging.getLogger(__name__)

MAX_QUEUES = 20  # served by one claim of a worker that serves all queues
TRUSTED_CLAIMS = 10  # full claims in a row that reuse the known queues
MAX_WORKSPACES = 50  # served at once
MAX_SCANNED = (
    5_000  # workspaces that one claim passes without finding a startable run; the next continues behind them
)
MAX_ROUNDS = 10  # in a row in which limits held all runs that were found

T = TypeVar("T")


@dataclass(slots=True)
class Turns:
    """The workspace served last, by queue. Each claimer keeps its own; losing it costs nothing."""

    last: dict[str, UUID] = field(default_factory=dict)
    queue: str = ""  # the queue served last, of a worker that serves all
    _known: list[str] = field(default_factory=list)  # queues that had work when they were last read
    _trusted: int = 0  # claims that may still use them

    def known(self) -> list[str]:
        """Return the queues read last, in turn; none where they must be read again."""
        if self._trusted <= 0:
            return []
        self._trusted -= 1
        behind = [queue for queue in self._known if queue > self.queue]
        return behind + [queue for queue in self._known if queue <= self.queue]

    def remember(self, queues: Sequence[str]) -> None:
        self._known, self._trusted = list(queues), TRUSTED_CLAIMS

    def forget(self) -> None:
        self._trusted = 0


class ClaimSize(NamedTuple):
    """The number of runs that a claim may take: in all, of each workspace, and none of some workspaces and for some receivers."""

    permits: int
    share: int | None = None  # None divides the permits
    without: frozenset[WorkspaceId] = frozenset()
    elsewhere: frozenset[str] = frozenset()  # receivers of http jobs: host and port


@dataclass(frozen=True, slots=True)
class Claimer:
    """A worker that claims: the types it can execute, and how many runs."""

    worker_id: WorkerId
    queue: str
    types: Sequence[str]
    size: ClaimSize
    turns: Turns
    workspace_id: WorkspaceId | None = None  # of a worker that serves one alone
    host_id: HostId | None = None  # of a worker that takes runs targeted at its host, from all queues
    longest: timedelta = LONGEST_WAIT  # the operator's maximum of timeouts
    is_careful: bool = False  # leaves out runs of jobs that have a lease already, at a price


class Work(NamedTuple):
    """A claimed run and what to execute. `left` is the time until its deadline by the database's clock, at the moment of loading.

    `config` holds the values of secrets where the job names them; `masks` are these values, to be removed from everything shown.
    """

    claimed: Claimed
    job: str
    config: dict[str, Any]
    input: dict[str, Any]
    left: timedelta
    masks: tuple[str, ...] = ()
    workspace: str = ""  # its slug
    number: int = 0
    triggered_by: str | None = None
    upstream: dict[str, Any] | None = None  # the run whose end triggered it: job_id, run_id, status, output

    def __repr__(self) -> str:
        return f"Work({self.claimed!r})"  # a log line must not show secrets


class ClaimResult(NamedTuple):
    """The work, and the claimed runs whose job was removed in the meantime."""

    work: list[Work]
    orphans: list[Claimed]


async def claim(
    database: Database, worker_id: WorkerId, queue: str, types: Sequence[str], permits: int, turns: Turns
) -> list[Claimed]:
    """Lease at most `permits` runs that this worker can execute to it. A worker that is no longer registered gets none."""
    claimer = Claimer(worker_id, queue, types, ClaimSize(permits), turns)
    return await _claim_queue(database, claimer, _return_claimed)


async def claim_work(database: Database, claimer: Claimer, vault: Vault | None = None) -> ClaimResult:
    """Claim runs and load what to execute. Runs whose secrets cannot be read end here as failed attempts."""
    turns, loaded = claimer.turns, list[LoadedRun]()
    serves_all = claimer.queue == ANY_QUEUE
    queues, is_fresh = (turns.known(), False) if serves_all else ([claimer.queue], True)
    while True:
        for queue in queues:
            if (left := claimer.size.permits - len(loaded)) > 0:
                one_queue = replace(claimer, queue=queue, size=claimer.size._replace(permits=left))
                loaded += await _claim_queue(database, one_queue, run_queue.load_claimed)
                turns.queue = queue
        if loaded or is_fresh:
            break
        turns.remember(await _queues_in_turn(database, turns, claimer.workspace_id))
        queues, is_fresh = turns.known(), True
    if serves_all and len(loaded) < claimer.size.permits:
        turns.forget()
    found = ClaimResult([], [])
    for claimed, job, run, time_left in loaded:
        if job is None:
            found.orphans.append(claimed)
            continue
        payload = job.payload or {}
        number, given, by, upstream = run or (0, None, None, None)
        run_input = dict(payload) if given is None else effective_input(payload, given)
        config, facts = job.config or {}, (job.workspace, number, by, upstream)
        found.work.append(Work(claimed, job.name, config, run_input, time_left, (), *facts))
    if any(may_refer(each.config) for each in found.work):
        return ClaimResult(await _with_secrets(database, claimer, vault, found.work), found.orphans)
    return found


async def _queues_in_turn(database: Database, turns: Turns, workspace_id: WorkspaceId | None) -> list[str]:
    """Return the queues that have work, beginning behind the one served last."""
    if workspace_id is not None:
        async with database.tx(Role.APP, workspace_id) as tx:
            return await run_queue.queues_of_workspace(tx, workspace_id, MAX_QUEUES)
    async with database.tx(Role.ENGINE) as tx:
        queues = await run_queue.queues_with_work(tx, turns.queue, MAX_QUEUES)
        if len(queues) < MAX_QUEUES and turns.queue:
            before = await run_queue.queues_with_work(tx, "", MAX_QUEUES - len(queues))
            queues += [queue for queue in before if queue <= turns.queue]
    return queues


async def _claim_queue(
    database: Database, claimer: Claimer, then: Callable[[Tx, list[Claimed]], Awaitable[list[T]]]
) -> list[T]:
    """Claim from one queue, and return the answer of `then`, called before the commit.

    The index on leases detects a second run of an exclusive job, which is an error of our own counts. Checking before each lease would
    cost every claim more than all claims lose by starting again, carefully, where it happens.
    """
    # A worker that serves one workspace sees nothing of the others, whatever a statement forgets to filter.
    role = Role.ENGINE if claimer.workspace_id is None else Role.APP
    for _ in range(MAX_ROUNDS):
        turn = claimer.turns.last.get(claimer.queue, FIRST_ID)
        try:
            async with database.tx(role, claimer.workspace_id, prepared=True) as tx:
                claimed, held = await _claim(tx, claimer)
                answer = await then(tx, claimed) if claimed else []
        except OverlapFoundError:
            log.warning("claim.overlap_found", extra={"queue": claimer.queue})
            # The turn stays where it was: otherwise the neighbours of such a job would be passed over as long as it has one run too many.
            claimer.turns.last[claimer.queue] = turn
            claimer = replace(claimer, is_careful=True)
            continue
        if claimed or not held:
            return answer
    return []


async def _claim(tx: Tx, claimer: Claimer) -> tuple[list[Claimed], int]:
    """Return the claimed runs, and how many were found but held: behind a limit, or because their type is disabled."""
    if claimer.workspace_id is not None:
        return await _claim_bound(tx, claimer, claimer.workspace_id)
    worker_id, turns, queue = claimer.worker_id, claimer.turns, claimer.queue
    scanned: set[UUID] = set()
    while len(scanned) < MAX_SCANNED:
        # Where the first few have nothing that may start now, more are read at once.
        most = MAX_WORKSPACES if scanned else min(claimer.size.permits, MAX_WORKSPACES)
        after = turns.last.get(queue, FIRST_ID)
        # One more than needed: where there is none, the next turn begins with the first and does not look behind the last in vain.
        found = await run_queue.workspaces_with_work(tx, worker_id, queue, after, most + 1)
        if len(found) < most and after != FIRST_ID:
            limit = most + 1 - len(found)
            first = await run_queue.workspaces_with_work(tx, worker_id, queue, FIRST_ID, limit)
            found += [each for each in first if each.workspace_id <= after]
        behind = FIRST_ID
        if len(found) > most:
            found = found[:most]
            behind = found[-1].workspace_id
        found = [each for each in found if each.workspace_id not in scanned]
        if not found:
            break
        scanned.update(each.workspace_id for each in found)
        turns.last[queue] = behind
        without = claimer.size.without
        served = [each for each in found if not each.is_frozen and each.workspace_id not in without]
        claimed, held = await _claim_from(tx, claimer, served) if served else ([], 0)
        if len(claimed) >= claimer.size.permits and claimed[-1].workspace_id != found[-1].workspace_id:
            turns.last[queue] = claimed[-1].workspace_id
        if claimed or held:
            return claimed, held
    return [], 0


async def _claim_bound(tx: Tx, claimer: Claimer, workspace_id: WorkspaceId) -> tuple[list[Claimed], int]:
    served = await run_queue.bound(tx, claimer.worker_id, workspace_id)
    if served is None:
        return [], 0
    if claimer.host_id is None:
        return await _claim_from(tx, claimer, [served])
    capacity = await hosts.load_free_capacity(tx, claimer.host_id)
    if not capacity:
        return [], 0
    asked = await hosts.lock_ready_runs(
        tx, claimer.host_id, workspace_id, claimer.types, capacity, claimer.size.permits
    )
    return await claim_permitted(tx, claimer.worker_id, asked, claimer.host_id, claimer.longest)


async def _claim_from(
    tx: Tx, claimer: Claimer, served: Sequence[ServedWorkspace]
) -> tuple[list[Claimed], int]:
    """Claim an equal share of each workspace, first of those without limits and disabled types."""
    size = claimer.size
    share = size.share or max(1, size.permits // len(served))
    order = ClaimOrder(
        claimer.worker_id, claimer.queue, claimer.types, share, size.permits, longest=claimer.longest
    )
    careful, held = claimer.is_careful or bool(size.elsewhere), 0
    claimed: list[Claimed] = []
    if free := [each.workspace_id for each in served if not (careful or each.is_limited)]:
        claimed = await run_queue.claim(tx, order, free)
    limited = [each.workspace_id for each in served if careful or each.is_limited]
    if limited and (left := size.permits - len(claimed)) > 0:
        asked = await run_queue.lock_ready(tx, order._replace(most=left), limited, size.elsewhere)
        more, held = await claim_permitted(tx, order.worker_id, asked, longest=order.longest)
        claimed += more
    return claimed, held


async def _return_claimed(_: Tx, claimed: list[Claimed]) -> list[Claimed]:
    return claimed


async def _with_secrets(
    database: Database, claimer: Claimer, vault: Vault | None, found: list[Work]
) -> list[Work]:
    """Resolve secrets after the claim, which serves all workspaces and may not read them: one transaction per workspace."""
    naming: dict[WorkspaceId, list[int]] = {}
    for index, each in enumerate(found):
        if names(each.config):
            naming.setdefault(each.claimed.workspace_id, []).append(index)
    refused: dict[int, RunError] = {}
    for workspace_id, indexes in naming.items():
        answers = await resolve_secrets(
            database, vault, workspace_id, [found[index].config for index in indexes]
        )
        for index, answer in zip(indexes, answers, strict=True):
            if isinstance(answer, RunError):
                refused[index] = answer
            else:
                found[index] = found[index]._replace(config=answer.config, masks=answer.masks)
    if refused:
        await report(database, [_failed(claimer, found[index], why) for index, why in refused.items()])
    return [each for index, each in enumerate(found) if index not in refused]


def _failed(claimer: Claimer, each: Work, why: RunError) -> Report:
    claimed = each.claimed
    return Report(claimed.run_id, claimed.job_id, claimed.fence, claimer.worker_id, Failed(why))
