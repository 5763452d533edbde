"""/rooms/{id}/deliveries: what the webhook of a room has sent, has still to send and has given up; and that again."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query

from foliot.domain.delivery import Delivery, DeliveryState
from foliot.domain.ids import DeliveryId
from foliot.services.hints import Hint
from foliot.services.messaging import webhooks
from foliot.web.api.params import DEFAULT_LIMIT, Db, Limit, Tell
from foliot.web.api.rooms import MOST, PLACE, RoomIdIn, read_after
from foliot.web.auth import SharedOperator, SharedViewer
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.pages import Page
from foliot.wire.rooms import DeliveryOut, RedeliveredOut, RedeliverIn

routes = api_router("rooms")


@routes.get("/rooms/{room_id}/deliveries", responses=NOT_FOUND)
async def list_deliveries(
    room_id: RoomIdIn,
    caller: SharedViewer,
    db: Db,
    state: Annotated[
        Literal["waiting", "delivered", "dead"] | None,
        Query(description="Those being sent are waiting, too."),
    ] = None,
    cursor: Annotated[str | None, Query(pattern=PLACE, description="next_cursor of the page before.")] = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[DeliveryOut]:
    """One for each message, the newest first. What has ended is kept for a week."""
    before = MOST if cursor is None else read_after(cursor)
    wanted = None if state is None else DeliveryState(state)
    found = await webhooks.deliveries(db, caller, room_id, before, limit + 1, wanted)
    shown = found[:limit]
    place = str(shown[-1].position) if len(found) > limit else None
    return Page[DeliveryOut](items=[_out(each) for each in shown], next_cursor=place)


@routes.post("/rooms/{room_id}/redeliver", responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def redeliver(
    room_id: RoomIdIn, wanted: RedeliverIn, caller: SharedOperator, db: Db, tell: Tell
) -> RedeliveredOut:
    """Send again what was given up, under the same ids, before anything that waits."""
    ids = None if wanted.deliveries is None else [DeliveryId(each) for each in wanted.deliveries]
    again = await webhooks.redeliver(db, caller, room_id, ids)
    tell(Hint.OUTBOX)
    return RedeliveredOut(redelivered=again)


def _out(delivery: Delivery) -> DeliveryOut:
    return DeliveryOut(
        id=delivery.id,
        seq=delivery.position,
        state=delivery.state.value,
        attempts=delivery.attempts,
        next_attempt_at=delivery.due_at,
        last_status=delivery.status,
        last_error=delivery.error,
        created_at=delivery.created_at,
        ended_at=delivery.ended_at,
    )
