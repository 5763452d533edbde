"""Turn the notices of a workspace into incidents and deliveries, in one transaction of that workspace.

The facts were written by the transactions that made them true, so nothing here can lose one or undo a run. A workspace whose rules or data
cannot be read delays its own messages alone.

Why: docs/decisions/909-notices.md
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from foliot.domain.errors import Unavailable
from foliot.domain.ids import ChannelId, JobId, WorkspaceId
from foliot.domain.notifications.channel import ChannelKind
from foliot.domain.notifications.content import DigestEntry, Site
from foliot.domain.notifications.dispatch import (
    ChannelState,
    Dispatcher,
    DispatchPlan,
    DispatchState,
    PlannedMessage,
)
from foliot.domain.notifications.incidents import Incident
from foliot.domain.notifications.notice import JobNames, Notice, NoticeEvent
from foliot.domain.notifications.rules import RuleSet, default_rule
from foliot.domain.notifications.texts import digest
from foliot.services.notifications.filter_steps import find_jobs_of
from foliot.storage.identity import workspaces
from foliot.storage.jobs import freezes
from foliot.storage.notifications import channels, deliveries, incidents, notices, notification_rules
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)

BATCH = 500  # notices in one transaction
REMINDED = 200  # incidents in one transaction
WORKSPACES = 200  # in one step
CLOSED_ARE_KEPT = timedelta(days=90)
PRUNED = 1_000


@dataclass(frozen=True, slots=True)
class NotifierPolicy:
    """The choices of the installation: the address in links, and the kinds of channels that get failures without a rule."""

    base_url: str | None = None
    default_kinds: tuple[ChannelKind, ...] = (ChannelKind.EMAIL,)


@dataclass(frozen=True, slots=True)
class DispatchResult:
    notices: int = 0
    messages: int = 0
    until_next: timedelta | None = None  # until the next reminder or digest
    is_more: bool = False


async def dispatch(database: Database, policy: NotifierPolicy) -> DispatchResult:
    """Process one batch of each workspace that has something to say."""
    async with database.tx(Role.ENGINE) as tx:
        waiting = await notices.list_waiting_workspaces(tx, WORKSPACES)
    read = sent = 0
    is_more = len(waiting) == WORKSPACES
    for workspace_id in waiting:
        try:
            found, planned = await dispatch_workspace(database, workspace_id, policy)
        except Unavailable:
            raise
        except Exception:
            log.exception("notices.not_dispatched", extra={"workspace": str(workspace_id)})
            continue
        read, sent = read + found, sent + planned
        is_more = is_more or found == BATCH
    async with database.tx(Role.ENGINE) as tx:
        due = await notices.find_next_due(tx)
        until = None if due is None else max(due - tx.now, timedelta(0))
    return DispatchResult(read, sent, until, is_more)


async def dispatch_workspace(
    database: Database, workspace_id: WorkspaceId, policy: NotifierPolicy, limit: int = BATCH
) -> tuple[int, int]:
    """Process the oldest notices of one workspace, its due reminders and digests. Return how many notices and messages that were."""
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await notices.lock_oldest(tx, limit)
        to_remind = await incidents.lock_to_remind(tx, REMINDED)
        state = await _load_state(tx, found, to_remind, policy)
        plan = Dispatcher(state, tx.new_id).plan(found, to_remind)
        await _add_digests(tx, state, plan)
        await _write(tx, plan)
        if found:
            await notices.delete(tx, [each.seq for each in found])
    if plan.messages:
        log.info(
            "notices.dispatched",
            extra={"workspace": str(workspace_id), "notices": len(found), "messages": len(plan.messages)},
        )
    return len(found), len(plan.messages)


async def prune(database: Database, limit: int = PRUNED) -> int:
    """Delete incidents that were closed long ago."""
    async with database.tx(Role.ENGINE) as tx:
        return await incidents.prune(tx, tx.now - CLOSED_ARE_KEPT, limit)


async def load_rules(
    tx: Tx, policy: NotifierPolicy, states: Collection[ChannelState], job_ids: Collection[JobId]
) -> RuleSet:
    """Return the rules of the workspace, the default that completes them, and what the filters of rules find among the jobs."""
    by_kind: dict[ChannelKind, list[ChannelId]] = {}
    for each in sorted(states, key=lambda state: state.name):
        by_kind.setdefault(each.kind, []).append(each.id)
    default = default_rule(channel for kind in policy.default_kinds for channel in by_kind.get(kind, ()))
    rules = await notification_rules.list_all(tx)
    found = {
        rule.id: await find_jobs_of(tx, rule.definition.scope.q, job_ids)
        for rule in rules
        if rule.enabled and rule.definition.scope.q and job_ids
    }
    return RuleSet(rules, default if policy.default_kinds else None, by_kind, found)


async def load_site(tx: Tx, policy: NotifierPolicy) -> Site:
    assert tx.workspace_id is not None
    home = await workspaces.get(tx, tx.workspace_id)
    return Site("" if home is None else home.slug, policy.base_url)


async def _load_state(
    tx: Tx, found: Sequence[Notice], to_remind: Sequence[Incident], policy: NotifierPolicy
) -> DispatchState:
    subjects = {each.subject for each in found} | {each.subject for each in to_remind}
    opened = {each.subject: each for each in (*to_remind, *await incidents.lock_open(tx, subjects))}
    over = {each.subject for each in found if each.event is NoticeEvent.RECOVERED}
    closing = [each.id for each in opened.values() if each.subject in over]
    job_ids = {each.job_id for each in found if each.job_id is not None}
    job_ids |= {each.job_id for each in to_remind if each.job_id is not None}
    run_ids = {each.run_id for each in found if each.run_id is not None}
    run_ids |= {each.last_run_id for each in to_remind if each.last_run_id is not None}
    jobs = await notices.load_jobs(tx, job_ids) if job_ids else {}
    states = await channels.load_states(tx)
    return DispatchState(
        site=await load_site(tx, policy),
        now=tx.now,
        rules=await load_rules(tx, policy, states.values(), job_ids),
        channels=states,
        incidents=opened,
        threads=await incidents.load_threads(tx, [each.id for each in opened.values()]) if opened else {},
        skipped=await incidents.count_skipped(tx, closing),
        last_messages=await incidents.load_last_messages(tx, subjects) if subjects else {},
        jobs=jobs,
        runs=await notices.load_runs(tx, run_ids) if run_ids else {},
        frozen=await _frozen(tx, jobs.values()),
    )


async def _frozen(tx: Tx, jobs: Collection[JobNames]) -> frozenset[JobId]:
    assert tx.workspace_id is not None
    in_force = [each for each in await freezes.list_since(tx, tx.now) if each.freeze.holds(tx.now)]
    return frozenset(
        job.id
        for job in jobs
        if any(each.covers(tx.workspace_id, job.id, job.tags, job.queue) for each in in_force)
    )


async def _add_digests(tx: Tx, state: DispatchState, plan: DispatchPlan) -> None:
    """Turn the waiting entries of channels whose digest is due into one message for each list of recipients."""
    due = [
        each.id for each in state.channels.values() if each.digest_at is not None and each.digest_at <= tx.now
    ]
    if not due:
        return
    states: dict[object, ChannelState] = {each.id: each for each in plan.channels}
    groups: dict[tuple[ChannelId, tuple[str, ...], datetime | None], list[DigestEntry]] = {}
    for each in await channels.take_due_entries(tx, due):
        held = each.due_at if each.due_at and each.due_at > tx.now else None
        groups.setdefault((each.channel_id, each.recipients, held), []).append(each.entry)
    for (channel_id, recipients, held), entries in groups.items():
        content = digest(state.site, entries, tx.now)
        plan.messages.append(PlannedMessage(channel_id, content, recipients=recipients, due_at=held))
    for channel_id in due:
        current = states.get(channel_id, state.channels[channel_id])
        still = any(each.channel_id == channel_id for each in plan.entries)
        next_at: datetime | None = tx.now + DIGEST_AGAIN if still else None
        states[channel_id] = replace(current, digest_at=next_at)
    plan.channels = list(states.values())


DIGEST_AGAIN = timedelta(minutes=5)


async def _write(tx: Tx, plan: DispatchPlan) -> None:
    await incidents.update(
        tx, plan.changed
    )  # first: one that closes here may make way for another of its subject
    await incidents.insert(tx, plan.opened)
    await incidents.insert_threads(tx, plan.threads)
    await deliveries.insert(tx, plan.messages)
    pairs = [(each.incident_id, each.channel_id) for each in plan.messages if each.incident_id is not None]
    await incidents.touch_threads(tx, pairs)
    await channels.insert_entries(tx, plan.entries)
    await channels.save_states(tx, plan.channels)
