"""Dependencies: the edges between jobs, the latest ends of upstream runs, and the ends already consumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from foliot.domain.dependencies import (
    ConsumedRun,
    Dependencies,
    Edge,
    EdgeFacts,
    JoinRule,
)
from foliot.domain.ids import JobId
from foliot.domain.lifecycle import JobStatus
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


async def load_facts(tx: Tx, whens: Mapping[JobId, JoinRule]) -> dict[JobId, Dependencies]:
    """Load each job's dependencies; `whens` has its rule: all edges must be satisfied, or any."""
    if not whens:
        return {}
    edges: dict[JobId, list[EdgeFacts]] = {}
    for row in await tx.fetch_as(_JobEdge, sql.dependencies.load_facts, {"job_ids": list(whens)}):
        edges.setdefault(row.job_id, []).append(row.facts)
    return {job_id: Dependencies(tuple(found), whens[job_id]) for job_id, found in edges.items()}


async def consume(tx: Tx, consumed: Sequence[tuple[JobId, ConsumedRun]]) -> None:
    if not consumed:
        return
    await tx.execute(
        sql.dependencies.consume,
        {
            "job_ids": [job_id for job_id, _ in consumed],
            "upstream_ids": [mark.upstream for _, mark in consumed],
            "run_ids": [mark.run_id for _, mark in consumed],
        },
    )


async def lock_graph(tx: Tx) -> None:
    """Serialise edits of the workspace's edges until the transaction ends. Lock order: before any timer."""
    await tx.execute(sql.dependencies.lock_graph)


async def load_graph(tx: Tx) -> dict[JobId, list[JobId]]:
    """Load the upstreams of every job of the workspace that has any."""
    found: dict[JobId, list[JobId]] = {}
    for job_id, upstream_id in await tx.fetch_pairs(JobId, JobId, sql.dependencies.list_edges):
        found.setdefault(job_id, []).append(upstream_id)
    return found


async def list_upstreams(tx: Tx, job_id: JobId) -> set[JobId]:
    return set(await tx.fetch_as(JobId, sql.dependencies.list_upstreams, {"job_id": job_id}))


async def list_dependents(tx: Tx, job_id: JobId) -> dict[JobId, str]:
    """Return names of the jobs that depend on this one."""
    return dict(await tx.fetch_pairs(JobId, str, sql.dependencies.list_dependents, {"job_id": job_id}))


async def load_names(tx: Tx, job_ids: Iterable[JobId]) -> dict[JobId, tuple[str, JobStatus]]:
    rows = await tx.fetch_as(_NamedJob, sql.dependencies.load_names, {"job_ids": list(job_ids)})
    return {row.id: (row.name, row.status) for row in rows}


async def replace_edges(tx: Tx, job_id: JobId, edges: Sequence[Edge], touched: Iterable[JobId]) -> None:
    """Make these the edges of a job. The caller has locked `touched`, the jobs that gain or lose one."""
    params = {
        "job_id": job_id,
        "upstream_ids": [edge.upstream for edge in edges],
        "on": [edge.on.value for edge in edges],
        "mode": [edge.mode.value for edge in edges],
        "delay": [edge.delay for edge in edges],
        "max_age": [edge.max_age for edge in edges],
    }
    await tx.execute(sql.dependencies.unlink, params)
    if edges:
        await tx.execute(sql.dependencies.link, params)
    await tx.execute(sql.dependencies.mark_timers, {"job_ids": list(touched)})


class _JobEdge(NamedTuple):
    job_id: JobId
    facts: EdgeFacts


class _NamedJob(NamedTuple):
    id: JobId
    name: str
    status: JobStatus
