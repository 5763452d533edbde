"""/incidents: from the first failure of a job to its next success; /deliveries: what was sent about them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

from fastapi import Query

from foliot.domain.access import Scope
from foliot.domain.delivery import DeliveryState
from foliot.domain.ids import ChannelId, DeliveryId, IncidentId, JobId
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.notifications import deliveries, incidents
from foliot.services.notifications.deliveries import DeliveryFilter, DeliveryRecord
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, path_id
from foliot.web.api.writes import Write, Writing
from foliot.web.auth import SharedOperator, Viewer
from foliot.web.mapping.notifications import incident_out, notice_delivery_out
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.instants import Id
from foliot.wire.notifications import IncidentNoteIn, IncidentOut, NoticeDeliveryOut, SnoozeIn
from foliot.wire.shape import Page

routes = api_router("incidents")
CHANGES = {**NOT_FOUND, **CONFLICT}


IncidentIdIn = Annotated[IncidentId, path_id("incident_id")]
DeliveryIdIn = Annotated[DeliveryId, path_id("delivery_id")]
IncidentVerb = Callable[[Database, Scope, IncidentId], Awaitable[None]]


@routes.get("/incidents")
async def list_incidents(
    caller: Viewer,
    db: Db,
    state: Annotated[Literal["open", "closed"] | None, Query(description="Default: both.")] = None,
    job_id: Annotated[Id | None, Query(description="Only those of this job.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[IncidentOut]:
    """List incidents, newest first. Closed ones are kept for 90 days."""
    wanted = None if job_id is None else JobId(job_id)
    page = await incidents.page(db, caller.scope, cursor, limit, state=state, job_id=wanted)
    names = await incidents.job_names(db, caller.scope, page.items)
    items = [incident_out(each, caller.at, names) for each in page.items]
    return Page[IncidentOut](items=items, next_cursor=page.next_cursor)


@routes.get("/incidents/{incident_id}", responses=NOT_FOUND)
async def get_incident(incident_id: IncidentIdIn, caller: Viewer, db: Db) -> IncidentOut:
    """Get an incident."""
    found = await incidents.get(db, caller.scope, incident_id)
    return incident_out(found, caller.at, await incidents.job_names(db, caller.scope, [found]))


@routes.post("/incidents/{incident_id}/acknowledge", responses=CHANGES)
async def acknowledge_incident(
    incident_id: IncidentIdIn, caller: SharedOperator, write: Writing
) -> IncidentOut:
    """Stop its reminders: a person works on it. Its recovery is still sent."""
    return await _change(write, incident_id, incidents.acknowledge)


@routes.post("/incidents/{incident_id}/mute", responses=CHANGES)
async def mute_incident(incident_id: IncidentIdIn, caller: SharedOperator, write: Writing) -> IncidentOut:
    """Send nothing more about it, not even its recovery."""
    return await _change(write, incident_id, incidents.mute)


@routes.post("/incidents/{incident_id}/unmute", responses=CHANGES)
async def unmute_incident(incident_id: IncidentIdIn, caller: SharedOperator, write: Writing) -> IncidentOut:
    """Unmute an incident: notifications about it go on."""
    return await _change(write, incident_id, incidents.unmute)


@routes.post("/incidents/{incident_id}/snooze", responses={**CHANGES, **WITH_BODY})
async def snooze_incident(
    incident_id: IncidentIdIn, snooze: SnoozeIn, caller: SharedOperator, write: Writing
) -> IncidentOut:
    """Send nothing about it until then; then remind."""
    return await _change(
        write, incident_id, lambda db, scope, one: incidents.snooze(db, scope, one, snooze.until)
    )


@routes.post("/incidents/{incident_id}/close", responses=CHANGES)
async def close_incident(incident_id: IncidentIdIn, caller: SharedOperator, write: Writing) -> IncidentOut:
    """Close it without a success. Nothing is sent; the next failure opens another."""
    return await _change(write, incident_id, incidents.close)


@routes.put("/incidents/{incident_id}/note", responses={**NOT_FOUND, **WITH_BODY})
async def set_incident_note(
    incident_id: IncidentIdIn, note: IncidentNoteIn, caller: SharedOperator, write: Writing
) -> IncidentOut:
    """Replace its note, which later messages show."""
    return await _change(
        write, incident_id, lambda db, scope, one: incidents.set_note(db, scope, one, note.note)
    )


@routes.get("/deliveries")
async def list_notice_deliveries(
    caller: Viewer,
    db: Db,
    state: Annotated[
        Literal["waiting", "delivered", "dead"] | None,
        Query(description="`waiting` includes deliveries that are being sent."),
    ] = None,
    channel_id: Annotated[Id | None, Query(description="Only those through this channel.")] = None,
    incident_id: Annotated[Id | None, Query(description="Only those about this incident.")] = None,
    job_id: Annotated[Id | None, Query(description="Only those about this job.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[NoticeDeliveryOut]:
    """List messages to channels, newest first. Ended ones are kept for a week."""
    filters = DeliveryFilter(
        None if channel_id is None else ChannelId(channel_id),
        None if incident_id is None else IncidentId(incident_id),
        None if job_id is None else JobId(job_id),
        None if state is None else DeliveryState(state),
    )
    page = await deliveries.page(db, caller.scope, filters, cursor, limit)
    items = [notice_delivery_out(each) for each in page.items]
    return Page[NoticeDeliveryOut](items=items, next_cursor=page.next_cursor)


@routes.get("/deliveries/{delivery_id}", responses=NOT_FOUND)
async def get_notice_delivery(delivery_id: DeliveryIdIn, caller: Viewer, db: Db) -> NoticeDeliveryOut:
    """Get a delivery."""
    return notice_delivery_out(await deliveries.get(db, caller.scope, delivery_id))


@routes.post("/deliveries/{delivery_id}/replay", responses=CHANGES)
async def replay_delivery(
    delivery_id: DeliveryIdIn, caller: SharedOperator, write: Writing
) -> NoticeDeliveryOut:
    """Send an ended delivery again, under the same id."""

    async def verb(db: Database) -> DeliveryRecord:
        await deliveries.replay(db, caller.scope, delivery_id)
        return await deliveries.get(db, caller.scope, delivery_id)

    return await write.apply(verb, notice_delivery_out, Hint.OUTBOX)


async def _change(write: Write, incident_id: IncidentId, change: IncidentVerb) -> IncidentOut:
    scope, at = write.caller.scope, write.caller.at

    async def verb(db: Database) -> IncidentOut:
        await change(db, scope, incident_id)
        found = await incidents.get(db, scope, incident_id)
        return incident_out(found, at, await incidents.job_names(db, scope, [found]))

    return await write.apply(verb, lambda changed: changed)
