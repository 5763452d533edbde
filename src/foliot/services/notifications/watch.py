"""Find what should have happened and did not, without help of the scheduler: planned times that nobody recorded, queues without a worker.

Why: docs/decisions/912-watcher.md
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from foliot.domain.errors import Unavailable
from foliot.domain.ids import WorkspaceId
from foliot.domain.notifications.notice import NoticeEvent
from foliot.services.identity import installation
from foliot.storage.notifications import missed_runs, notices
from foliot.storage.notifications.missed_runs import UnservedQueue
from foliot.storage.notifications.notices import NewNotice
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)

GRACE = timedelta(minutes=5)  # a scheduler that was restarted has caught up long before
BATCH = 1_000


@dataclass(frozen=True, slots=True)
class WatchResult:
    notices: int = 0
    overdue: int = 0  # timers of all workspaces, counted up to a bound

    @property
    def is_healthy(self) -> bool:
        return self.overdue == 0


async def watch(database: Database, grace: timedelta = GRACE) -> WatchResult:
    """Write notices about silence. Repeating this is harmless: a subject with an open incident gets no other."""
    if (await installation.state(database)).is_held:
        return WatchResult()  # a restored installation fires nothing until its operator releases it
    async with database.tx(Role.ENGINE) as tx:
        by = tx.now - grace
        found = await missed_runs.list_overdue_workspaces(tx, by, BATCH)
        overdue = await missed_runs.count_overdue(tx, by, BATCH)
    written = 0
    for workspace_id in found:
        try:
            written += await _watch_workspace(database, workspace_id, grace)
        except Unavailable:
            raise
        except Exception:
            log.exception("workspace.not_watched", extra={"workspace": str(workspace_id)})
    if written:
        log.warning("runs.missed", extra={"notices": written, "overdue": overdue})
    return WatchResult(written, overdue)


async def _watch_workspace(database: Database, workspace_id: WorkspaceId, grace: timedelta) -> int:
    async with database.tx(Role.APP, workspace_id) as tx:
        by = tx.now - grace
        missed = await missed_runs.insert_missed(tx, by, BATCH)
        return missed + await _watch_queues(tx, workspace_id, await missed_runs.list_unserved(tx, by, BATCH))


async def _watch_queues(tx: Tx, workspace_id: WorkspaceId, unserved: list[UnservedQueue]) -> int:
    known = await missed_runs.list_open_queues(tx)
    silent = {each.subject: each for each in unserved}
    new = [
        NewNotice(
            workspace_id,
            NoticeEvent.NO_WORKER,
            facts={
                "subject": each.subject,
                "reason": f"{each.runs:,} runs of type {each.type} wait in the queue {each.queue}, and no live worker serves them. "
                "They start by themselves when one returns.",
            },
        )
        for each in unserved
        if each.subject not in known
    ]
    over = [
        NewNotice(workspace_id, NoticeEvent.RECOVERED, facts={"subject": subject})
        for subject in sorted(known - set(silent))
    ]
    await notices.insert(tx, [*new, *over])
    return len(new) + len(over)
