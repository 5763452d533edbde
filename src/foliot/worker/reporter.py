"""Reports: gathered while the batch before is being committed, sent together, kept until they are acknowledged.

Under load the next batch begins a moment after the last one began: the cost of a transaction is shared by more reports.

Why: docs/decisions/401-fast-path-of-a-settlement.md
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import islice

from foliot.clock import monotonic
from foliot.domain.errors import Unavailable
from foliot.domain.ids import RunId
from foliot.domain.outcomes import Failed
from foliot.domain.run import RunError
from foliot.services.settlement.report import Report
from foliot.worker.link import Link

log = logging.getLogger(__name__)

BATCH = 500
MANY = 10  # reports of a batch that show that more will follow at once
GATHER = 0.025  # seconds from the start of such a batch to the start of the next
AT_ONCE, IDLE = timedelta(0), timedelta(seconds=30)
REPORT_REFUSED = RunError("report_refused", "What this attempt reported could not be stored.")


class Reporter:
    """A loop runs its step and sets `wake`. `on_accepted` is called after a batch that ended some run."""

    def __init__(self, link: Link) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.on_accepted: Callable[[], None] = lambda: None
        self._link = link
        self._unsent: deque[Report] = deque()
        self._gather_until = 0.0  # on the monotonic clock
        self._all_sent = asyncio.Event()
        self._all_sent.set()

    @property
    def unsent(self) -> int:
        return len(self._unsent)

    def keys(self) -> set[tuple[RunId, int]]:
        return {(report.run_id, report.fence) for report in list(self._unsent)}

    def put(self, report: Report) -> None:
        if not self._unsent:  # else a step is under way, or about to be, and finds it
            self._all_sent.clear()
            self.wake()
        self._unsent.append(report)

    async def wait_until_sent(self, within: float) -> None:
        """Wait until every report is sent, or the time is up."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_sent.wait(), within)

    async def step(self) -> timedelta:
        """Send one batch: at once, unless one of many reports began a moment ago. The next one grows while this one is sent."""
        wait = self._gather_until - (now := monotonic())
        if wait > 0 and 0 < len(self._unsent) < BATCH:
            return timedelta(seconds=wait)
        batch = list(islice(self._unsent, BATCH))
        if batch:
            self._gather_until = now + GATHER if len(batch) >= MANY else 0.0
            try:
                accepted = await self._link.report(batch)
            except Unavailable:
                raise  # the batch is kept and sent again; reports that were stored after all are refused then, harmlessly
            except Exception:
                log.exception("reports.rejected", extra={"reports": len(batch)})
                accepted = await self._send_one_by_one(batch)
            for _ in batch:
                self._unsent.popleft()
            if accepted:
                self.on_accepted()
        if self._unsent:
            return AT_ONCE
        self._all_sent.set()
        return IDLE

    async def _send_one_by_one(self, batch: list[Report]) -> frozenset[RunId]:
        """Find the bad report of a rejected batch; the others must be stored."""
        if len(batch) == 1:
            return await self._send_failure(batch[0])
        accepted: frozenset[RunId] = frozenset()
        for report in batch:
            try:
                accepted |= await self._link.report([report])
            except Unavailable:
                raise
            except Exception:
                log.exception("report.rejected", extra={"run": str(report.run_id)})
                accepted |= await self._send_failure(report)
        return accepted

    async def _send_failure(self, report: Report) -> frozenset[RunId]:
        try:
            return await self._link.report(
                [report._replace(outcome=Failed(REPORT_REFUSED), output=None, usage=None)]
            )
        except Unavailable:
            raise
        except Exception:
            # The sweeper ends the run at its deadline.
            log.exception("report.dropped", extra={"run": str(report.run_id)})
            return frozenset()
