"""Workers that use HTTP: on hosts, or elsewhere for the queues of one workspace.

Each belongs to the principal whose key registered it; for others it does not exist, and it sees only runs leased to it. Its
claims and reports pass row-level security like all requests.

Why: docs/decisions/302-lost-answers.md
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from foliot.domain.errors import WorkerGone
from foliot.domain.ids import RunId, WorkerId
from foliot.domain.logs import DEFAULT_LIMITS, LogLimits
from foliot.domain.outcomes import (
    HandedBack,
    Outcome,
)
from foliot.domain.policy import LONGEST_WAIT
from foliot.domain.run import Progress
from foliot.domain.usage import Usage
from foliot.services.identity.audit_steps import append_audit
from foliot.services.runs import artifacts
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.runs.logs import LogChunk
from foliot.services.secrets.vault import Vault
from foliot.services.settlement.report import Report, settle_reports
from foliot.services.workers.claim import Claimer, ClaimResult, ClaimSize, Turns, Work, claim_work
from foliot.services.workers.refusals import status_of
from foliot.services.workers.remote_register import WorkerPrincipal
from foliot.services.workers.workers import LEASE, HeartbeatReply
from foliot.storage.content import logs
from foliot.storage.queue import leases, run_queue
from foliot.storage.runs import run_records
from foliot.storage.tx import Database, Role, Tx
from foliot.storage.workers import hosts, workers
from foliot.storage.workers.workers import HeldLease, RemoteWorker, RunningAttempt

log = logging.getLogger(__name__)

UNHEARD = timedelta(seconds=15)  # seconds after which the answer to a claim has arrived or is lost


class RemoteReport(NamedTuple):
    """The report of one attempt. The lease identifies the job."""

    run_id: RunId
    fence: int
    outcome: Outcome
    output: Any = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class WorkOffer:
    """Claimed runs; when there are none, the time until the next run for this host may start."""

    work: Sequence[Work] = ()
    next_in: timedelta | None = None


async def beat(
    database: Database,
    speaker: WorkerPrincipal,
    worker_id: WorkerId,
    working_on: Collection[tuple[RunId, int]],
    *,
    draining: bool = False,
    lease: timedelta = LEASE,
) -> HeartbeatReply:
    """Record a heartbeat. `working_on` has all runs the worker knows, unreported ones included; its other leases are released."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        found = await _found(tx, speaker, worker_id)
        if found is None or not await workers.record_heartbeat(
            tx, worker_id, tx.now + lease, is_draining=draining, running_count=len(working_on)
        ):
            return HeartbeatReply(is_alive=False)
        await hosts.record_heartbeat(tx, worker_id, tx.now + lease)
        cancels = await workers.list_cancel_requests(tx, worker_id)
        gone = await workers.list_lost_leases(tx, worker_id, working_on)
        unheard_of = await workers.list_unknown_leases(tx, worker_id, working_on, tx.now - UNHEARD)
    if unheard_of:
        log.warning("claim.unheard", extra={"worker": str(worker_id), "runs": len(unheard_of)})
        async with database.tx(Role.APP, speaker.workspace_id) as tx:
            await settle_reports(tx, [_handed_back(each) for each in unheard_of])
    return HeartbeatReply(is_alive=True, cancels=cancels, gone=gone)


async def stops(
    database: Database,
    speaker: WorkerPrincipal,
    worker_id: WorkerId,
    working_on: Collection[tuple[RunId, int]],
    stopping: Collection[tuple[RunId, int]],
) -> HeartbeatReply:
    """List the runs that the worker must stop and is not stopping yet, without renewing the lease."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        if await _found(tx, speaker, worker_id) is None:
            raise gone()
        known = frozenset(stopping)
        cancels = [each for each in await workers.list_cancel_requests(tx, worker_id) if each not in known]
        lost = [
            each for each in await workers.list_lost_leases(tx, worker_id, working_on) if each not in known
        ]
    return HeartbeatReply(is_alive=True, cancels=cancels, gone=lost)


async def claim(
    database: Database,
    speaker: WorkerPrincipal,
    worker_id: WorkerId,
    types: Sequence[str],
    permits: int,
    vault: Vault | None = None,
    *,
    longest: timedelta = LONGEST_WAIT,
) -> WorkOffer:
    """Claim runs, with the values of their secrets: the worker has no key for them."""
    async with database.tx(Role.ENGINE) as tx:
        found = await _found(tx, speaker, worker_id)
    if found is None:
        raise gone()
    size, workspace_id = ClaimSize(permits), speaker.workspace_id
    claimer = Claimer(worker_id, "", types, size, Turns(), workspace_id, found.host_id, longest)
    taken = await _claimed(database, claimer, found, vault)
    for each in taken.orphans:  # the sweeper ends the lease at its deadline
        log.error("run.orphaned", extra={"run": str(each.run_id), "job": str(each.job_id)})
    if taken.work or found.host_id is None:
        return WorkOffer(taken.work)
    async with database.tx(Role.APP, speaker.workspace_id) as tx:
        next_at = await hosts.next_at(tx, found.host_id, speaker.workspace_id)
        return WorkOffer(next_in=None if next_at is None else next_at - tx.now)


async def report(
    database: Database, speaker: WorkerPrincipal, worker_id: WorkerId, received: Sequence[RemoteReport]
) -> frozenset[RunId]:
    """Settle reports of leases that are this worker's.

    Refused reports go to the audit. A repeated report is accepted and changes nothing.
    """
    async with database.tx(Role.APP, speaker.workspace_id) as tx:
        found = await _found(tx, speaker, worker_id)
        mine = {each.run_id: each for each in await workers.list_leases(tx, worker_id)} if found else {}
        reports = [
            Report(each.run_id, held.job_id, each.fence, worker_id, each.outcome, each.output, each.usage)
            for each in received
            if (held := mine.get(each.run_id)) is not None and held.fence == each.fence
        ]
        accepted = await settle_reports(tx, reports) if reports else frozenset()
        late = [each for each in received if each.run_id not in accepted]
        repeated = await leases.reported_before(
            tx,
            worker_id,
            [(each.run_id, each.fence, word) for each in late if (word := status_of(each.outcome))],
        )
        refused = {each.run_id: each for each in late if each.run_id not in repeated}
        # Unknown runs are not recorded: made-up ids must not fill the audit.
        for run_id in await run_records.list_known(tx, refused) if refused else ():
            await _note_refusal(tx, speaker, worker_id, refused[run_id])
    return accepted | repeated


async def write(
    database: Database,
    speaker: WorkerPrincipal,
    worker_id: WorkerId,
    chunks: Sequence[LogChunk],
    how_far: Mapping[tuple[RunId, int], Progress] | None = None,
    *,
    limits: LogLimits = DEFAULT_LIMITS,
) -> int:
    """Store log lines and progress of this worker's runs. Return how many chunks were accepted."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        if await _found(tx, speaker, worker_id) is None:
            return 0
        mine = {
            (each.run_id, each.fence): each for each in await workers.list_running_attempts(tx, worker_id)
        }
        own = [
            _truthful(chunk, held, tx.now)
            for chunk in chunks
            if (held := mine.get((chunk.run_id, chunk.fence))) is not None
        ]
        if own:
            await logs.append(tx, own, limits)
        if own_progress := {
            key: replace(value, at=min(max(value.at, mine[key].leased_at), tx.now))
            for key, value in (how_far or {}).items()
            if key in mine
        }:
            await run_queue.set_progress(tx, own_progress)
    return len(own)


async def keep(
    database: Database,
    speaker: WorkerPrincipal,
    given: NewArtifact,
    *,
    most_bytes: int,
    default_quota: int | None = None,
) -> None:
    """Store an artifact of a run of this worker."""
    async with database.tx(Role.ENGINE) as tx:
        if await _found(tx, speaker, given.worker_id) is None:
            raise gone()
    await artifacts.keep(database, given, most_bytes=most_bytes, default_quota=default_quota)


def gone() -> WorkerGone:
    return WorkerGone(
        "This worker is not registered, or was silent for too long, and its runs went to others.",
        hint="Register again and continue with the new id.",
    )


async def leave(database: Database, speaker: WorkerPrincipal, worker_id: WorkerId) -> None:
    """Unregister: release its runs to other workers without using up an attempt."""
    async with database.tx(Role.APP, speaker.workspace_id) as tx:
        found = await _found(tx, speaker, worker_id)
        if found is None:
            return
        held = await workers.list_leases(tx, worker_id)
        if held:
            await settle_reports(tx, [_handed_back(each) for each in held])
    async with database.tx(Role.ENGINE) as tx:
        await workers.leave(tx, worker_id)
        if found.host_id is not None:
            await hosts.record_sign_off(tx, found.host_id)


def _truthful(chunk: LogChunk, held: RunningAttempt, now: datetime) -> LogChunk:
    """Return the lines under the attempt that the lease counts, none dated before it began or after now: a worker may say anything."""
    lines = [replace(line, at=min(max(line.at, held.leased_at), now)) for line in chunk.lines]
    return replace(chunk, attempt=held.attempt, lines=lines)


def _handed_back(lease: HeldLease) -> Report:
    return Report(lease.run_id, lease.job_id, lease.fence, lease.worker_id, HandedBack())


async def _found(tx: Tx, speaker: WorkerPrincipal, worker_id: WorkerId) -> RemoteWorker | None:
    return await workers.load_remote(tx, worker_id, speaker.workspace_id, speaker.principal_id)


async def _claimed(
    database: Database, claimer: Claimer, found: RemoteWorker, vault: Vault | None
) -> ClaimResult:
    if found.host_id is not None:
        return await claim_work(database, claimer, vault)
    taken = ClaimResult([], [])
    for queue in found.queues:
        left = claimer.size.permits - len(taken.work) - len(taken.orphans)
        if left > 0:
            more = await claim_work(database, replace(claimer, queue=queue, size=ClaimSize(left)), vault)
            taken = ClaimResult(taken.work + more.work, taken.orphans + more.orphans)
    return taken


async def _note_refusal(tx: Tx, speaker: WorkerPrincipal, worker_id: WorkerId, refused: RemoteReport) -> None:
    log.warning("report.refused", extra={"run": str(refused.run_id), "fence": refused.fence})
    after = {"worker": str(worker_id), "fence": refused.fence, "outcome": status_of(refused.outcome)}
    await append_audit(tx, "report.refused", ("run", refused.run_id), speaker.by, after=after)
