"""One query of events for all streams of a workspace that have read equally far.

Open pages of the console are streams with the same filter. Each of them asking for itself would cost a transaction for every page
every few seconds, while nothing happens.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from foliot.clock import monotonic
from foliot.domain.ids import WorkspaceId
from foliot.services import Database
from foliot.services.messaging import events
from foliot.services.messaging.events import EventBatch, EventFilter, EventPosition
from foliot.web.work_signal import WorkSignal

FRESH = 1.0  # seconds that an answer is shared; a hint ends it at once
_Key = tuple[WorkspaceId, EventFilter]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A query that has begun. It answers all who have read up to `since` or further."""

    since: EventPosition
    began_at: float
    mark: asyncio.Event  # of the hints: one that came after the query began is not in its answer
    answer: asyncio.Task[EventBatch]


class EventReader:
    """Reads the events that streams ask for, and shares an answer among those it is right for."""

    def __init__(self, database: Database, changes: WorkSignal) -> None:
        self._database = database
        self._changes = changes
        self._readings: dict[_Key, _Reading] = {}

    async def after(self, workspace_id: WorkspaceId, place: EventPosition, wanted: EventFilter) -> EventBatch:
        """Return the events after `place`, as `services.messaging.events.after` does."""
        key = (workspace_id, wanted)
        reading = self._readings.get(key)
        if reading is None or not self._answers(reading, place):
            self._drop_old()
            task = asyncio.create_task(events.after(self._database, workspace_id, place, wanted))
            reading = self._readings[key] = _Reading(place, monotonic(), self._changes.mark(), task)
        # Shielded: a reader that leaves must not take the answer from the others.
        batch = await asyncio.shield(reading.answer)
        if reading.since == place:
            return batch
        newer = [each for each in batch.events if each.place > place]
        return EventBatch(newer, max(place, batch.place), batch.is_full)

    def _answers(self, reading: _Reading, place: EventPosition) -> bool:
        is_fresh = monotonic() - reading.began_at < FRESH and reading.mark is self._changes.mark()
        return is_fresh and reading.since <= place

    def _drop_old(self) -> None:
        old = [key for key, each in self._readings.items() if monotonic() - each.began_at >= FRESH]
        for key in old:
            del self._readings[key]
