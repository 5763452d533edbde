"""Log lines and progress of runs: workers deliver them in batches, people read them by page or as a stream.

Why: docs/decisions/306-outputs-lines-and-artifacts.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foliot.domain.access import Scope
from foliot.domain.ids import RunId
from foliot.domain.lifecycle import TERMINAL, RunStatus
from foliot.domain.logs import DEFAULT_LIMITS, LogLimits
from foliot.domain.run import Progress
from foliot.services.jobs.visibility_steps import require_visible_run
from foliot.storage.content import logs
from foliot.storage.content.logs import LogChunk, NumberedLine
from foliot.storage.queue import run_queue
from foliot.storage.tx import Database, Role

__all__ = ["LogChunk", "NumberedLine", "Progress"]


@dataclass(frozen=True, slots=True)
class LogPage:
    lines: Sequence[NumberedLine]
    is_more: bool
    truncated: bool  # lines beyond the limit were dropped
    status: RunStatus

    @property
    def is_over(self) -> bool:
        """No more lines will follow."""
        return not self.is_more and self.status in TERMINAL


async def append(database: Database, chunks: Sequence[LogChunk], limits: LogLimits = DEFAULT_LIMITS) -> None:
    """Store lines without waiting for the disk: a crash of the server may lose the last moments."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        await logs.append(tx, chunks, limits)


async def read(
    database: Database, scope: Scope, run_id: RunId, *, after: int = 0, limit: int = 200
) -> LogPage:
    """Read the lines after number `after`.

    The status is read before the lines: workers deliver all lines before they report the end.
    """
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await require_visible_run(tx, run_id, scope)
        lines = await logs.page(tx, run_id, after, limit + 1)
        head = await logs.load_head(tx, run_id)
    return LogPage(lines[:limit], len(lines) > limit, head.truncated, found.run.status)


async def read_tail(database: Database, scope: Scope, run_id: RunId, lines: int) -> LogPage:
    """Read the last lines, however long the log is."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await require_visible_run(tx, run_id, scope)
        head = await logs.load_head(tx, run_id)
        last = await logs.page(tx, run_id, max(0, head.lines - lines), lines)
    return LogPage(last, False, head.truncated, found.run.status)


async def store_progress(database: Database, latest: Mapping[tuple[RunId, int], Progress]) -> None:
    """Store the progress without waiting for the disk: the next report comes soon."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        await run_queue.set_progress(tx, latest)
