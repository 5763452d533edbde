"""Reports: gathered while the one before is being committed, sent together, kept until they are acknowledged."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import islice

from foliot.domain.errors import Unavailable
from foliot.domain.ids import RunId
from foliot.domain.outcomes import Failed
from foliot.domain.run import RunError
from foliot.services.settlement.report import Report
from foliot.worker.link import Link

log = logging.getLogger(__name__)

BATCH = 500
AT_ONCE, IDLE = timedelta(0), timedelta(seconds=30)
NOT_TAKEN = RunError("report_refused", "What this attempt reported could not be stored.")


class Reporter:
    """Its step is run by a loop; `wake` and `when_accepted` are set by whoever puts the parts together."""

    def __init__(self, link: Link) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.when_accepted: Callable[[], None] = lambda: None
        self._link = link
        self._owed: deque[Report] = deque()
        self._all_sent = asyncio.Event()
        self._all_sent.set()

    @property
    def owed(self) -> int:
        return len(self._owed)

    def keys(self) -> set[tuple[RunId, int]]:
        return {(report.run_id, report.fence) for report in list(self._owed)}

    def put(self, report: Report) -> None:
        if not self._owed:  # else a step is under way, or about to be, and will find it
            self._all_sent.clear()
            self.wake()
        self._owed.append(report)

    async def all_sent(self, within: float) -> None:
        """Wait until nothing is owed, or the time is up."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_sent.wait(), within)

    async def step(self) -> timedelta:
        """Nothing waits for a batch to fill: the next one grows while this one is on its way."""
        batch = list(islice(self._owed, BATCH))
        if batch:
            accepted = await self._send(batch)
            for _ in batch:
                self._owed.popleft()
            if accepted:
                self.when_accepted()
        if self._owed:
            return AT_ONCE
        self._all_sent.set()
        return IDLE

    async def _send(self, batch: list[Report]) -> frozenset[RunId]:
        try:
            return await self._link.report(batch)
        except Unavailable:
            raise  # all of it is kept and sent again; what was stored after all is refused then, and that is well
        except Exception:
            log.exception("reports.not_taken", extra={"reports": len(batch)})
        if len(batch) > 1:  # find the bad one; the others must not suffer for it
            accepted: frozenset[RunId] = frozenset()
            for report in batch:
                accepted |= await self._send([report])
            return accepted
        return await self._give_up(batch[0])

    async def _give_up(self, report: Report) -> frozenset[RunId]:
        try:
            return await self._link.report([report._replace(outcome=Failed(NOT_TAKEN), output=None)])
        except Unavailable:
            raise
        except Exception:
            log.exception(
                "report.dropped", extra={"run": str(report.run_id)}
            )  # the sweeper ends it at its deadline
            return frozenset()
