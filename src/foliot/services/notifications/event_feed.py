"""Hand the events of a workspace to its webhook channels and to rules about every run.

A workspace without such a channel or rule has no feed, and its runs write no events. Reading is exact: each event is handed on once, in
the transaction that moves the position.

Why: docs/decisions/505-events.md
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from foliot.domain.errors import Unavailable
from foliot.domain.ids import FIRST_ID, WorkspaceId
from foliot.domain.notifications.content import NoticeContent, NoticeKind, Severity, Site
from foliot.domain.notifications.dispatch import PlannedMessage
from foliot.domain.notifications.notice import NoticeEvent
from foliot.services.messaging import events
from foliot.services.messaging.events import EventFilter, EventRow, write_event_id
from foliot.services.notifications.dispatch import NotifierPolicy, load_site
from foliot.storage.codec import encode
from foliot.storage.notifications import deliveries, event_feeds, notices
from foliot.storage.notifications.event_feeds import EventFeed
from foliot.storage.notifications.notices import NewNotice
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)

WORKSPACES = 200
BATCH = 500
RENEW_EVERY = timedelta(minutes=10)
_NOTICED = {"run.succeeded": NoticeEvent.RUN_SUCCEEDED, "run.skipped": NoticeEvent.RUN_SKIPPED}


async def feed(database: Database) -> int:
    """Hand on one batch of each workspace that has a feed; return how many events that were."""
    read, after = 0, FIRST_ID
    while True:
        async with database.tx(Role.ENGINE) as tx:
            found = await event_feeds.list_workspaces(tx, after, WORKSPACES)
        for workspace_id in found:
            try:
                read += await _feed_workspace(database, workspace_id)
            except Unavailable:
                raise
            except Exception:
                log.exception("events.not_fed", extra={"workspace": str(workspace_id)})
        if len(found) < WORKSPACES:
            return read
        after = found[-1]


async def _feed_workspace(database: Database, workspace_id: WorkspaceId) -> int:
    async with database.tx(Role.APP, workspace_id) as tx:
        known, now = await event_feeds.get(tx), tx.now
    if known is None:
        return 0
    place = known.place
    if place is None or known.renewed_at is None or known.renewed_at + RENEW_EVERY <= now:
        started = await events.listen(database, workspace_id, place)
        if started.is_gap:
            log.warning("events.gap", extra={"workspace": str(workspace_id)})
        async with database.tx(Role.APP, workspace_id) as tx:
            await event_feeds.save(tx, started.place, now)
        known, place = EventFeed(started.place.xid, started.place.seq, now), started.place
    batch = await events.after(database, workspace_id, place, EventFilter(), BATCH)
    if batch.place == place:
        return 0
    async with database.tx(Role.APP, workspace_id) as tx:
        current = await event_feeds.lock(tx)
        if current is None or current.place != place:
            return 0  # another notifier has handed them on
        site = await load_site(tx, NotifierPolicy())
        messages = [
            PlannedMessage(each.id, _content(site, row, tx.now))
            for each in await event_feeds.list_subscribers(tx)
            for row in batch.events
            if each.wants(row.kind)
        ]
        await deliveries.insert(tx, messages)
        await notices.insert(tx, _notices(workspace_id, batch.events))
        await event_feeds.save(tx, batch.place)
    return len(batch.events)


def _notices(workspace_id: WorkspaceId, rows: Sequence[EventRow]) -> list[NewNotice]:
    return [
        NewNotice(
            workspace_id, _NOTICED[row.kind], row.job_id, row.run_id, {"reason": row.skip_reason or None}
        )
        for row in rows
        if row.kind in _NOTICED
    ]


def _content(site: Site, row: EventRow, now: datetime) -> NoticeContent:
    payload: dict[str, Any] = encode(row)
    payload["id"] = write_event_id(row.place)
    payload.pop("place", None)
    return NoticeContent(
        NoticeEvent.EVENT,
        NoticeKind.EVENT,
        Severity.NEUTRAL,
        site.workspace,
        row.kind,
        (),
        row.at,
        job_id=row.job_id,
        job_name=row.job_name,
        run_id=row.run_id,
        payload=payload,
    )
