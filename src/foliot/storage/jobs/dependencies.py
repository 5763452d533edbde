"""Dependencies: the edges of jobs with what their upstreams have done, and the marks of what was used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from foliot.domain.dependencies import (
    ConsumedRun,
    Dependencies,
    Edge,
    EdgeCondition,
    EdgeFacts,
    EdgeMode,
    JoinRule,
    UpstreamEnd,
)
from foliot.domain.ids import JobId
from foliot.domain.lifecycle import JobStatus
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


async def facts(tx: Tx, whens: Mapping[JobId, JoinRule]) -> dict[JobId, Dependencies]:
    """Each job's dependencies; `whens` says for each whether all edges or any must be satisfied."""
    if not whens:
        return {}
    edges: dict[JobId, list[EdgeFacts]] = {}
    for row in await tx.fetch(sql.dependencies.facts, {"job_ids": list(whens)}):
        edges.setdefault(row["job_id"], []).append(_edge(row))
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
    """Until the end of the transaction nobody else edits edges of its workspace. To be taken before any timer."""
    await tx.execute(sql.dependencies.lock_graph, {"workspace_id": tx.workspace_id})


async def graph(tx: Tx) -> dict[JobId, list[JobId]]:
    """The upstreams of every job of the workspace that has any."""
    found: dict[JobId, list[JobId]] = {}
    for row in await tx.fetch(sql.dependencies.graph, {"workspace_id": tx.workspace_id}):
        found.setdefault(row["job_id"], []).append(row["upstream_id"])
    return found


async def upstreams(tx: Tx, job_id: JobId) -> set[JobId]:
    return {row["job_id"] for row in await tx.fetch(sql.dependencies.around, {"job_id": job_id})}


async def dependents(tx: Tx, job_id: JobId) -> dict[JobId, str]:
    """The jobs that depend on this one, with their names."""
    rows = await tx.fetch(sql.dependencies.dependents, {"job_id": job_id})
    return {row["job_id"]: row["name"] for row in rows}


async def names(tx: Tx, job_ids: Iterable[JobId]) -> dict[JobId, tuple[str, JobStatus]]:
    rows = await tx.fetch(sql.dependencies.names, {"job_ids": list(job_ids)})
    return {row["id"]: (row["name"], JobStatus(row["status"])) for row in rows}


async def replace_edges(tx: Tx, job_id: JobId, edges: Sequence[Edge], touched: Iterable[JobId]) -> None:
    """Make these the edges of a job. `touched` are the jobs that gain or lose one, all locked."""
    params = {
        "workspace_id": tx.workspace_id,
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


def _edge(row: Row) -> EdgeFacts:
    on = EdgeCondition(row["on"])
    return EdgeFacts(
        edge=Edge(row["upstream_id"], on, EdgeMode(row["mode"]), row["delay"], row["max_age"]),
        latest=_ended(
            row,
            {EdgeCondition.SUCCESS: "success", EdgeCondition.FAILURE: "failure", EdgeCondition.ANY: "end"}[
                on
            ],
        ),
        consumed_run_id=row["consumed_run_id"],
        upstream_is_live=row["is_live"],
        upstream_has_run=row["has_run"],
    )


def _ended(row: Row, kind: str) -> UpstreamEnd | None:
    run_id = row[f"last_{kind}_run_id"]
    return None if run_id is None else UpstreamEnd(run_id, row[f"last_{kind}_at"])
