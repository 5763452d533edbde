"""Find what should have happened and did not, without help of the scheduler: planned times that nobody recorded, queues without a worker,
runs that do not start or end, jobs and keys that end soon.

Why: docs/decisions/912-watcher.md
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from foliot.domain.errors import Unavailable
from foliot.domain.ids import FIRST_ID, JobId, WorkspaceId
from foliot.domain.notifications.content import span
from foliot.domain.notifications.notice import NoticeEvent
from foliot.services.identity import installation
from foliot.storage.notifications import missed_runs, notices
from foliot.storage.notifications.missed_runs import RunLimits, RunTrouble, UnservedQueue
from foliot.storage.notifications.notices import NewNotice
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)

GRACE = timedelta(minutes=5)  # a scheduler that was restarted has caught up long before
BATCH = 1_000
LATE_AFTER = timedelta(minutes=5)
SLOW_AFTER = timedelta(minutes=1)  # a run that is shorter is never slow
SLOW_TIMES = 3.0  # as long as the runs of its job took on average
STUCK_AFTER = timedelta(hours=1)  # in a queue
SILENT_AFTER = timedelta(minutes=30)  # without progress, where it reported some
ENDS_WITHIN = timedelta(days=7)


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


async def watch_runs(database: Database) -> int:
    """Write notices about runs that are late, slow or stuck, and about those that no longer are; return how many."""
    if (await installation.state(database)).is_held:
        return 0
    async with database.tx(Role.ENGINE) as tx:
        found = await missed_runs.list_workspaces_with_open_runs(tx, _limits(tx), BATCH)
    written = 0
    for workspace_id in found:
        try:
            async with database.tx(Role.APP, workspace_id) as tx:
                written += await _watch_runs_of(tx, workspace_id)
        except Unavailable:
            raise
        except Exception:
            log.exception("workspace.not_watched", extra={"workspace": str(workspace_id)})
    return written


async def watch_expiries(database: Database) -> int:
    """Write a notice for each job and key that ends within a week, once; return how many.

    Each workspace is looked at by itself: the engine's role sees no keys.
    """
    written, after = 0, FIRST_ID
    while True:
        async with database.tx(Role.ENGINE) as tx:
            found = await missed_runs.list_workspaces_after(tx, after, BATCH)
        for workspace_id in found:
            async with database.tx(Role.APP, workspace_id) as tx:
                written += await missed_runs.insert_expiring(tx, ENDS_WITHIN, BATCH)
        if len(found) < BATCH:
            return written
        after = found[-1]


async def _watch_runs_of(tx: Tx, workspace_id: WorkspaceId) -> int:
    known = await missed_runs.list_open_run_troubles(tx)
    troubles = await missed_runs.list_run_troubles(tx, _limits(tx), BATCH)
    new = [
        NewNotice(
            workspace_id,
            each.event,
            each.job_id,
            each.run_id,
            {"subject": each.subject, "reason": _sentence(each, tx.now)},
        )
        for each in troubles
        if each.subject not in known
    ]
    gone = {each for each in known - {each.subject for each in troubles} if not _is_beyond(each, troubles)}
    over = [
        NewNotice(
            workspace_id,
            NoticeEvent.RECOVERED,
            JobId(UUID(subject.partition(":")[2])),
            facts={"subject": subject},
        )
        for subject in sorted(gone)
    ]
    await notices.insert(tx, [*new, *over])
    return len(new) + len(over)


def _is_beyond(subject: str, troubles: Sequence[RunTrouble]) -> bool:
    """Return whether the list of its kind was cut before this subject: whether its trouble is over is not known."""
    event, _, job_id = subject.partition(":")
    listed = [str(each.job_id) for each in troubles if each.event == event]
    return len(listed) >= BATCH and job_id > listed[-1]


def _limits(tx: Tx) -> RunLimits:
    now = tx.now
    return RunLimits(now - LATE_AFTER, now - SLOW_AFTER, now - STUCK_AFTER, now - SILENT_AFTER, SLOW_TIMES)


def _sentence(trouble: RunTrouble, now: datetime) -> str:
    length = span(now - trouble.since)
    match trouble.event:
        case NoticeEvent.LATE:
            return f"A run has been ready for {length}, and the workers that serve it have not taken it: they are busy."
        case NoticeEvent.SLOW:
            return f"A run has been under way for {length}; on average it takes {span(timedelta(seconds=trouble.usual or 0))}."
        case _ if trouble.waits_for is None:
            return f"A run has reported no progress for {length}."
        case _:
            return f"A run has waited for {length} for {_WAITS[trouble.waits_for]}."


_WAITS = {
    "turn": "another run of its job",
    "upstream": "its upstream job",
    "limit": "a free place under a limit",
    "type": "its job type, which is switched off",
}


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
