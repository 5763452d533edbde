"""Replace the edges of a job by an edit, as the API does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from foliot.domain.access import Actor, Scope
from foliot.domain.dependencies import Edge, JoinRule
from foliot.domain.ids import JobId, WorkspaceId
from foliot.services import Database
from foliot.services.jobs import job_edits, jobs


async def set_edges(
    database: Database,
    workspace: WorkspaceId,
    job_id: JobId,
    edges: Sequence[Edge],
    by: Actor,
    *,
    when: JoinRule | None = None,
) -> None:
    definition = (await jobs.get(database, workspace, job_id)).definition
    spec = definition.spec if when is None else replace(definition.spec, depends_when=when)
    wanted = replace(definition, spec=spec, depends_on=tuple(edges))
    await job_edits.edit(database, Scope(workspace, by), job_id, wanted)
