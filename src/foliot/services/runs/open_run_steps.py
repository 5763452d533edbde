"""Why a run that has not ended is where it is: in line, ready, or under way."""

from __future__ import annotations

from dataclasses import replace

from foliot.domain.dependencies import EdgeMode
from foliot.domain.explain.hosts import Bound, explain_bound
from foliot.domain.explain.records import (
    Explanation,
    Place,
    Recorded,
    Verdict,
    explain_crowded,
    explain_record,
)
from foliot.domain.freeze import freeze_at
from foliot.domain.lifecycle import RunStatus
from foliot.domain.run import WaitsFor
from foliot.domain.target import target_of
from foliot.services.runs.explain_steps import Asked
from foliot.services.workers.unserved import remedy
from foliot.storage.runs import explain_queries
from foliot.storage.runs.explain_queries import MOST_NAMED, AliveWorker, ReadyPosition, WaitingPosition
from foliot.storage.runs.run_history import RunWithRevision
from foliot.storage.tx import Tx
from foliot.storage.workers import hosts


async def explain_open(tx: Tx, asked: Asked, entry: RunWithRevision) -> Explanation:
    record = recorded(entry)
    if entry.run.status is RunStatus.WAITING:
        waiting = await explain_queries.load_waiting_position(tx, entry.run.id)
        if waiting is not None:
            return explain_record(asked.job, record, await _place(tx, asked, waiting))
    if entry.run.status is RunStatus.READY:
        ready = await explain_queries.load_ready_position(tx, entry.run.id)
        if ready is not None:
            return await _explain_ready(tx, asked, record, ready)
    return explain_record(asked.job, record)


def recorded(entry: RunWithRevision) -> Recorded:
    run = entry.run
    return Recorded(
        run_id=run.id,
        number=run.number,
        status=run.status,
        planned_for=run.planned_for,
        planned_until=run.planned_until,
        count=run.count,
        skip_reason=run.skip_reason,
        note=entry.note,
        started_at=run.started_at,
        finished_at=run.finished_at,
        attempt_count=run.attempt_count,
        error=run.error,
    )


async def _place(tx: Tx, asked: Asked, waiting: WaitingPosition) -> Place:
    behind, until = None, waiting.expires_at
    match waiting.waits_for:
        case WaitsFor.TURN:
            live = asked.subject.live_number
            behind = None if live is None else f"run {live}"
        case WaitsFor.UPSTREAM:
            behind = await asked.upstreams(EdgeMode.GATE) or None
        case WaitsFor.FREEZE:
            freeze = freeze_at(await asked.freezes(tx.now), tx.now)
            behind = None if freeze is None else freeze.reason or None
            until = (freeze and freeze.end_at) or until
        case WaitsFor.WINDOW:
            until = waiting.available_at
        case WaitsFor.TYPE:
            behind = await asked.switched_off() or None
        case WaitsFor.LIMIT:
            behind = await _limits(tx, asked, waiting.concurrency_key)
    position = None if waiting.ahead is None else waiting.ahead + 1
    return Place(waiting.waits_for, position, waiting.line, behind, until)


async def _limits(tx: Tx, asked: Asked, concurrency_key: str | None) -> str | None:
    found = await explain_queries.list_limits(tx, asked.subject.workspace_id, concurrency_key)
    named = [
        f"{f'concurrency key {limit.key}' if limit.key else 'the workspace'}: {limit.in_use} of {limit.cap} in use"
        for limit in found
        if limit.in_use >= limit.cap
    ]
    return "; ".join(named) or None


async def _explain_ready(tx: Tx, asked: Asked, record: Recorded, ready: ReadyPosition) -> Explanation:
    if (why := await asked.switched_off()) is not None:  # whoever claims next puts it in line
        held = Place(WaitsFor.TYPE, behind=why or None)
        return explain_record(asked.job, replace(record, status=RunStatus.WAITING), held)
    if ready.available_at > tx.now:
        return explain_record(asked.job, replace(record, retry_at=ready.available_at))
    workers = await explain_queries.list_alive_workers(tx)
    if ready.target is not None:
        return await _explain_bound(tx, asked, record, ready, workers)
    workers = [worker for worker in workers if worker.host_id is None]
    if serving := [worker for worker in workers if worker.serves(ready.queue, ready.type)]:
        place = Place(WaitsFor.TURN, ready.ahead + 1, ready.line)
        if all(worker.running_count >= worker.capacity for worker in serving):
            return explain_crowded(record, place, sum(worker.capacity for worker in serving))
        return explain_record(asked.job, record, place)
    return Explanation(
        Verdict.WAITING,
        f"Run {record.number} is ready, but no worker serves queue {ready.queue} for type {ready.type}.",
        (_alive(workers),),
        remedy(ready.queue, ready.type),
    )


async def _explain_bound(
    tx: Tx, asked: Asked, record: Recorded, ready: ReadyPosition, workers: list[AliveWorker]
) -> Explanation:
    assert ready.target is not None
    target = target_of(ready.target)
    host = await hosts.resolve(tx, asked.subject.workspace_id, target)
    if host is None:
        return explain_bound(asked.job, record, Bound(target))
    found = await hosts.get(tx, host.id)
    assert found is not None, "it was resolved in this transaction"
    leased = await hosts.load_used_capacity(tx, host.id)
    lane = (leased.reads, found.max_reads) if ready.read_only else (leased.mutations, found.max_mutations)
    bound = Bound(
        target,
        host.name,
        host.sighting,
        does_type=ready.type if any(each.does(host.id, ready.type) for each in workers) else None,
        under_way=lane[0],
        most=lane[1],
    )
    place = Place(WaitsFor.TURN, ready.ahead + 1, ready.line)
    return explain_bound(asked.job, record, bound, ready.type, tx.now, place)


def _alive(workers: list[AliveWorker]) -> str:
    if not workers:
        return "No worker is alive."
    named = [
        f"{worker.name} (queues: {', '.join(worker.queues)}; types: {', '.join(worker.types)}"
        f"{'; shutting down' if worker.is_draining else ''})"
        for worker in workers[:MOST_NAMED]
    ]
    more = f", and {len(workers) - MOST_NAMED} more" if len(workers) > MOST_NAMED else ""
    return f"Workers alive: {', '.join(named)}{more}."
