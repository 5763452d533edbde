"""Incidents: list them, and acknowledge, mute, snooze, note or close one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from foliot.domain.access import ADMINISTRATOR, Scope
from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import LAST_ID, IncidentId, JobId
from foliot.domain.notifications import incidents as domain
from foliot.domain.notifications.incidents import Incident
from foliot.services.cursors import ListPage, cut_page, read_cursor
from foliot.services.identity.audit_steps import append_audit
from foliot.services.jobs.visibility_steps import require_visible
from foliot.storage.identity import members
from foliot.storage.notifications import incidents, notices
from foliot.storage.tx import Database, Role, Tx

Change = Callable[[Incident, datetime, str], Incident]


async def page(
    database: Database,
    scope: Scope,
    cursor: str | None = None,
    limit: int = 50,
    *,
    state: str | None = None,
    job_id: JobId | None = None,
) -> ListPage[Incident]:
    """List incidents, newest first; an agent sees those of its own jobs."""
    [before] = read_cursor(cursor, UUID) or [LAST_ID]
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await incidents.page(
            tx, before, limit + 1, state=state, job_id=job_id, visible_owner=scope.visible_owner
        )
    return cut_page(found, limit, lambda last: [last.id])


async def job_names(database: Database, scope: Scope, found: Sequence[Incident]) -> dict[JobId, str]:
    """Return the names of the jobs of incidents that a list shows."""
    wanted = {each.job_id for each in found if each.job_id is not None}
    if not wanted:
        return {}
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return {job_id: job.name for job_id, job in (await notices.load_jobs(tx, wanted)).items()}


async def get(database: Database, scope: Scope, incident_id: IncidentId) -> Incident:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await _lock(tx, scope, incident_id)


async def acknowledge(database: Database, scope: Scope, incident_id: IncidentId) -> None:
    await _change(database, scope, incident_id, "incident.acknowledged", domain.acknowledge)


async def mute(database: Database, scope: Scope, incident_id: IncidentId) -> None:
    await _change(database, scope, incident_id, "incident.muted", domain.mute)


async def unmute(database: Database, scope: Scope, incident_id: IncidentId) -> None:
    await _change(
        database,
        scope,
        incident_id,
        "incident.unmuted",
        lambda incident, now, _: domain.unmute(incident, now),
    )


async def snooze(database: Database, scope: Scope, incident_id: IncidentId, until: datetime) -> None:
    def change(incident: Incident, now: datetime, _by: str) -> Incident:
        if until <= now:
            raise Invalid("A snooze ends in the future.", pointer="/until")
        return domain.snooze(incident, until)

    await _change(database, scope, incident_id, "incident.snoozed", change)


async def set_note(database: Database, scope: Scope, incident_id: IncidentId, note: str) -> None:
    """Replace the note, also of a closed incident; an empty one removes it."""
    await _change(
        database,
        scope,
        incident_id,
        "incident.noted",
        lambda incident, _now, _by: replace(incident, note=note.strip() or None),
        of_closed=True,
    )


async def close(database: Database, scope: Scope, incident_id: IncidentId) -> None:
    """Close an incident without a success. The next failure opens another; nothing is sent."""
    await _change(database, scope, incident_id, "incident.closed", domain.close_incident)


async def _change(
    database: Database,
    scope: Scope,
    incident_id: IncidentId,
    action: str,
    change: Change,
    *,
    of_closed: bool = False,
) -> None:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock(tx, scope, incident_id)
        if found.closed_at is not None and not of_closed:
            raise Conflict("This incident is closed.", hint="A new failure opens another.")
        changed = change(found, tx.now, await members.name_actor(tx, scope.actor.name) or ADMINISTRATOR)
        await incidents.set_attention(tx, changed, action, scope.actor.name)
        await append_audit(tx, action, ("incident", incident_id), scope.actor, after={"note": changed.note})


async def _lock(tx: Tx, scope: Scope, incident_id: IncidentId) -> Incident:
    return await require_visible(tx, await incidents.lock(tx, incident_id), "incident", scope)
