"""Edges between jobs. A workspace-wide lock allows one editor of edges at a time, so that two edits cannot close a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from foliot.domain.access import Scope
from foliot.domain.definition import Definition
from foliot.domain.dependencies import Edge, check_edges, find_cycle
from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import JobId
from foliot.domain.lifecycle import JobStatus
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.jobs.lock_steps import check_owner
from foliot.services.settlement.dependent_steps import judge_gates_of
from foliot.services.settlement.settle_steps import SettlementWriter
from foliot.storage.jobs import dependencies, jobs
from foliot.storage.jobs.jobs import RevisionAuthor
from foliot.storage.timers import timers
from foliot.storage.tx import Tx

MOST_EDGES = 100
NAMED = 5  # names in a refusal


async def write_edges(
    tx: Tx, job_id: JobId, scope: Scope, definition: Definition, before: Sequence[Edge] = ()
) -> None:
    """Check and write the edges of a job that is created or edited. Call this before any timer is locked.

    Locks the timers of the job, its upstreams (old and new) and its dependents, in the order of ids. An agent may depend
    on its own jobs only, except where `before` already has the edge.
    """
    schedule, edges = definition.spec.schedule, definition.depends_on
    check_edges(job_id, schedule, edges)
    if len(edges) > MOST_EDGES:
        raise Invalid(f"A job depends on at most {MOST_EDGES} others.", pointer="/depends_on")
    await dependencies.lock_graph(tx)
    old, wanted = await dependencies.list_upstreams(tx, job_id), {edge.upstream for edge in edges}
    if not old and not wanted:
        return
    touched = {job_id, *old, *wanted}
    await timers.lock(tx, touched | (await dependencies.list_dependents(tx, job_id)).keys())
    known = await dependencies.load_names(tx, wanted)
    visible = set(wanted)
    if scope.visible_owner is not None:
        owned = await jobs.list_owned(tx, list(wanted), scope.visible_owner)
        visible = {*owned, *(edge.upstream for edge in before)}
    for place, edge in enumerate(edges):
        _, status = known.get(edge.upstream, (None, JobStatus.ARCHIVED))
        if status is JobStatus.ARCHIVED or edge.upstream not in visible:
            raise Invalid("There is no such job.", pointer=f"/depends_on/{place}/job")
    graph = await dependencies.load_graph(tx)
    graph[job_id] = [edge.upstream for edge in edges]
    if cycle := find_cycle(graph):
        raise await _circular(tx, cycle)
    await dependencies.replace_edges(tx, job_id, edges, touched)


async def release_upstream(tx: Tx, job_id: JobId, scope: Scope, *, detach: bool) -> None:
    """Before a delete: refuse while other jobs depend on this one, or with `detach` remove their edges to it.

    Call this before any timer is locked. A dependent that waits at this gate is judged again without it.
    """
    await check_owner(tx, job_id, scope)
    await dependencies.lock_graph(tx)
    dependents = await dependencies.list_dependents(tx, job_id)
    if not dependents:
        return
    if scope.visible_owner is not None and any(
        [await jobs.load_owner(tx, each) != scope.visible_owner for each in dependents]
    ):
        raise Conflict("Jobs of others depend on this one.", hint="Pause or disable it instead.")
    if not detach:
        shown = ", ".join(f'"{name}"' for name in list(dependents.values())[:NAMED])
        more = f" and {len(dependents) - NAMED:,} more" if len(dependents) > NAMED else ""
        raise Conflict(f"Other jobs depend on this one: {shown}{more}.", hint="Delete it with detach.")
    await timers.lock(tx, [job_id, *dependents])
    author = RevisionAuthor(scope.actor.name, "A job it depended on was deleted.")
    for dependent in sorted(dependents):
        definition = await jobs.load_definition(tx, dependent)
        assert definition is not None, "a dependent exists"
        left = tuple(edge for edge in definition.depends_on if edge.upstream != job_id)
        await dependencies.replace_edges(tx, dependent, left, [job_id, dependent])
        await jobs.redefine(tx, dependent, replace(definition, depends_on=left), author)
        await _ask_again(tx, dependent)


async def _ask_again(tx: Tx, job_id: JobId) -> None:
    rows = await timers.lock(tx, [job_id])
    writer = SettlementWriter(tx, rows, await load_job_context(tx, rows.values()))
    await judge_gates_of(writer, [job_id])
    await writer.write()


async def _circular(tx: Tx, cycle: Sequence[JobId]) -> Invalid:
    known = await dependencies.load_names(tx, cycle)
    shown = " → ".join(f'"{known[job_id][0]}"' for job_id in cycle)
    return Invalid(f"These jobs would wait for each other: {shown}.", pointer="/depends_on")
