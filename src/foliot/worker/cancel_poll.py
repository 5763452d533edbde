"""Cancels reach a host as they are made: while it has work, a request waits for them at the server. The heartbeat would tell of them
too, up to a third of the lease later.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Protocol

from foliot.domain.errors import WorkerGone
from foliot.domain.ids import RunId, WorkerId
from foliot.services.workers.workers import Beat
from foliot.worker.worker import Worker

AT_ONCE, IDLE = timedelta(0), timedelta(seconds=30)
BREATH = timedelta(seconds=0.25)  # after nothing new: a server that stops answers all who wait at once
Key = tuple[RunId, int]  # a run under its fence


class Line(Protocol):
    async def stops(
        self, worker_id: WorkerId, working_on: Collection[Key], stopping: Collection[Key]
    ) -> Beat: ...


class Stopping:
    """Its step is run by a loop, which is woken when work begins."""

    def __init__(self, line: Line, worker: Worker) -> None:
        self._line = line
        self._worker = worker

    async def step(self) -> timedelta:
        worker_id = self._worker.id
        going, stopping = self._worker.under_way()
        if worker_id is None or not going:
            return IDLE
        try:
            found = await self._line.stops(worker_id, going, stopping)
        except WorkerGone:  # the heart hears of it too, and ends what there is to end
            return IDLE
        if self._worker.id == worker_id:
            self._worker.heard(found)
        return AT_ONCE if {*found.cancels, *found.gone} & set(going) else BREATH
