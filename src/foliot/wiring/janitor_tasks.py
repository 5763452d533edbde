"""The tasks of the janitor: add up days, prune beyond retention, repair, and forget old idempotency keys and silent hosts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from foliot.domain.access import Actor
from foliot.domain.ids import JobId
from foliot.domain.quotas import Quotas
from foliot.engine.janitor import JanitorTask
from foliot.handlers.dependencies import EgressPolicy
from foliot.services.identity import workspaces
from foliot.services.identity.idempotency import FORGOTTEN_AT_ONCE, forget_old
from foliot.services.identity.workspaces import Workspace
from foliot.services.jobs.defaults import apply_unapplied
from foliot.services.jobs.job_inbox import BATCH, process_inbox
from foliot.services.jobs.job_status import finish_purges
from foliot.services.messaging import courier, events, rooms
from foliot.services.notifications import dispatch
from foliot.services.runs.retention import prune
from foliot.services.runs.statistics import roll_up
from foliot.services.scheduling.repair import refresh_zone_data, repair_runs, repair_timers
from foliot.services.webhooks import webhooks
from foliot.services.workers import hosts
from foliot.services.workers.overview import forget_lost
from foliot.storage.tx import Database


def inbox_task(database: Database, reach: EgressPolicy, quotas: Quotas) -> JanitorTask:
    """Return the task that creates the jobs inserted with SQL."""

    async def create(stage: Database, workspace: Workspace, login: str, job: Mapping[str, Any]) -> JobId:
        from foliot.wiring.app_sync import create_from_sql  # noqa: PLC0415  # most nodes never need it

        by = Actor(f"sql:{login}", quotas=quotas.overlaid(workspace.quotas))
        return await create_from_sql(stage, workspace, by, job, reach)

    async def create_inserted_jobs() -> bool:
        return await process_inbox(database, create) == BATCH

    return create_inserted_jobs


def janitor_tasks(
    database: Database, keep_messages: int = 0, host_retention: int = 0
) -> tuple[JanitorTask, ...]:
    """Return the tasks. Both retentions are in days; 0 keeps for ever."""

    async def move_timers_to_new_zone_data() -> bool:
        await refresh_zone_data(database)
        return False

    async def add_up_days() -> bool:
        return (await roll_up(database)).is_more

    async def prune_history() -> bool:
        return (await prune(database)).is_more

    async def finish_long_purges() -> bool:
        return await finish_purges(database)

    async def repair_all_timers() -> bool:
        await repair_timers(database)
        return False  # one step a minute is enough; more at once would read every timer without end

    async def repair_open_runs() -> bool:
        await repair_runs(database)
        return False

    async def apply_new_defaults() -> bool:
        return await apply_unapplied(database)

    async def empty_archived_workspaces() -> bool:
        return await workspaces.finish_archiving(database)

    async def forget_idempotency_keys() -> bool:
        return await forget_old(database) == FORGOTTEN_AT_ONCE

    async def forget_lost_workers() -> bool:
        await forget_lost(database)
        return False

    async def forget_hosts() -> bool:
        if host_retention == 0:
            return False
        silent_for = timedelta(days=host_retention)
        return await hosts.forget_unseen(database, silent_for) == hosts.FORGOTTEN_AT_ONCE

    async def prune_events() -> bool:
        return await events.prune(database) > 0

    async def prune_messages() -> bool:
        return keep_messages > 0 and await rooms.prune(database, timedelta(days=keep_messages)) > 0

    async def prune_outbox() -> bool:
        return await courier.prune(database) > 0

    async def prune_incidents() -> bool:
        return await dispatch.prune(database) > 0

    async def forget_received_messages() -> bool:
        return await webhooks.prune(database) > 0

    return (
        move_timers_to_new_zone_data,
        add_up_days,
        prune_history,
        finish_long_purges,
        repair_all_timers,
        repair_open_runs,
        apply_new_defaults,
        empty_archived_workspaces,
        forget_idempotency_keys,
        forget_lost_workers,
        forget_hosts,
        prune_events,
        prune_messages,
        prune_outbox,
        prune_incidents,
        forget_received_messages,
    )
