"""What runs write: delivered by workers in batches, read by people a page at a time or as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foliot.domain.access import Scope
from foliot.domain.ids import RunId
from foliot.domain.lifecycle import TERMINAL, RunStatus
from foliot.services.jobs.visibility_steps import require_visible_run
from foliot.storage.content import logs
from foliot.storage.content.logs import LogChunk, NumberedLine
from foliot.storage.tx import Database, Role

__all__ = ["LogChunk", "LogPage", "NumberedLine", "append", "read"]


@dataclass(frozen=True, slots=True)
class LogPage:
    lines: Sequence[NumberedLine]
    is_more: bool
    truncated: bool  # the run wrote more than is kept
    status: RunStatus

    @property
    def is_over(self) -> bool:
        """Nothing will follow these lines."""
        return not self.is_more and self.status in TERMINAL


async def append(database: Database, chunks: Sequence[LogChunk]) -> None:
    """Lines that nobody waits for: a crash of the server may take the last moments of them."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        await logs.append(tx, chunks)


async def read(
    database: Database,
    scope: Scope,
    run_id: RunId,
    *,
    after: int = 0,
    limit: int = 200,
) -> LogPage:
    """The lines behind `after`. Workers deliver a run's lines before they report its end, so the status is looked at first."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await require_visible_run(tx, run_id, scope)
        lines = await logs.page(tx, run_id, after, limit + 1)
        head = await logs.head(tx, run_id)
    return LogPage(lines[:limit], len(lines) > limit, head.truncated, found.run.status)
