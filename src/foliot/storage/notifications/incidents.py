"""Incidents and the channels that know of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.ids import ChannelId, IncidentId, JobId, PrincipalId
from foliot.domain.notifications.dispatch import IncidentThread
from foliot.domain.notifications.incidents import Incident
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


class _ThreadRow(NamedTuple):
    incident_id: IncidentId
    channel_id: ChannelId
    recipients: tuple[str, ...]


class _Skipped(NamedTuple):
    incident_id: IncidentId
    skipped: int


class _LastMessage(NamedTuple):
    subject: str
    channel_id: ChannelId
    last_at: datetime


async def lock_open(tx: Tx, subjects: Collection[str]) -> list[Incident]:
    return await tx.fetch_as(Incident, sql.incidents.lock_open, {"subjects": list(subjects)})


async def lock_to_remind(tx: Tx, limit: int) -> list[Incident]:
    """Lock open incidents whose reminder is due."""
    return await tx.fetch_as(Incident, sql.incidents.lock_to_remind, {"limit": limit})


async def lock(tx: Tx, incident_id: IncidentId) -> Incident | None:
    return await tx.fetch_one_as(Incident, sql.incidents.lock, {"id": incident_id})


async def insert(tx: Tx, opened: Sequence[Incident]) -> None:
    if not opened:
        return
    params = {
        **_columns(opened),
        "subjects": [each.subject for each in opened],
        "job_ids": [each.job_id for each in opened],
        "events": [each.event.value for each in opened],
        "first_run_ids": [each.first_run_id for each in opened],
        "opened_ats": [each.opened_at for each in opened],
    }
    await tx.execute(sql.incidents.insert, params)
    await _insert_events(tx, opened, "incident.opened")
    await _insert_events(tx, [each for each in opened if each.closed_at], "incident.closed")


async def update(tx: Tx, changed: Sequence[Incident]) -> None:
    """Write what facts and messages have changed."""
    if changed:
        await tx.execute(sql.incidents.update, _columns(changed))
        await _insert_events(tx, [each for each in changed if each.closed_at], "incident.closed")


async def _insert_events(tx: Tx, incidents: Sequence[Incident], kind: str, actor: str | None = None) -> None:
    """Write an event of this kind for each, for the listeners of the workspace."""
    if incidents:
        params = {
            "kinds": [kind] * len(incidents),
            "ids": [each.id for each in incidents],
            "job_ids": [each.job_id for each in incidents],
            "actor": actor,
        }
        await tx.execute(sql.incidents.insert_events, params)


async def set_attention(tx: Tx, incident: Incident, action: str, actor: str) -> None:
    """Write what a person has decided: acknowledged, muted, snoozed, noted, closed."""
    names = (
        "id", "acknowledged_at", "acknowledged_by", "muted_at", "muted_by", "snoozed_until", "note", "remind_at",
        "closed_at", "closed_by",
    )  # fmt: skip
    await tx.execute(sql.incidents.set_attention, {name: getattr(incident, name) for name in names})
    await _insert_events(tx, [incident], action, actor)


async def load_threads(tx: Tx, ids: Collection[IncidentId]) -> dict[IncidentId, list[IncidentThread]]:
    found: dict[IncidentId, list[IncidentThread]] = {}
    for row in await tx.fetch_as(_ThreadRow, sql.incidents.load_threads, {"ids": list(ids)}):
        found.setdefault(row.incident_id, []).append(IncidentThread(row.channel_id, row.recipients))
    return found


async def count_skipped(tx: Tx, ids: Collection[IncidentId]) -> dict[IncidentId, int]:
    """Return how many planned times did not run since each incident opened."""
    if not ids:
        return {}
    rows = await tx.fetch_as(_Skipped, sql.incidents.count_skipped, {"ids": list(ids)})
    return {row.incident_id: row.skipped for row in rows}


async def load_last_messages(tx: Tx, subjects: Collection[str]) -> dict[tuple[str, ChannelId], datetime]:
    """Return when each channel heard last of each subject."""
    rows = await tx.fetch_as(_LastMessage, sql.incidents.load_last_messages, {"subjects": list(subjects)})
    return {(row.subject, row.channel_id): row.last_at for row in rows}


async def insert_threads(tx: Tx, threads: Sequence[tuple[IncidentId, str, IncidentThread]]) -> None:
    if not threads:
        return
    params = {
        "incident_ids": [incident_id for incident_id, _, _ in threads],
        "channel_ids": [thread.channel_id for _, _, thread in threads],
        "subjects": [subject for _, subject, _ in threads],
        "recipients": [Jsonb(list(thread.recipients)) for _, _, thread in threads],
    }
    await tx.execute(sql.incidents.insert_threads, params)


async def touch_threads(tx: Tx, pairs: Sequence[tuple[IncidentId, ChannelId]]) -> None:
    """Note that these channels get a message about these incidents now."""
    if pairs:
        params = {"incident_ids": [a for a, _ in pairs], "channel_ids": [b for _, b in pairs]}
        await tx.execute(sql.incidents.touch_threads, params)


async def set_thread(tx: Tx, incident_id: IncidentId, channel_id: ChannelId, thread: str) -> None:
    """Store the peer's name of the thread. The first message decides it."""
    params = {"incident_id": incident_id, "channel_id": channel_id, "thread": thread}
    await tx.execute(sql.incidents.set_thread, params)


async def page(
    tx: Tx,
    before: UUID,
    limit: int,
    *,
    state: str | None = None,
    job_id: JobId | None = None,
    visible_owner: PrincipalId | None = None,
) -> list[Incident]:
    """List incidents, newest first."""
    params = {"before": before, "limit": limit, "state": state, "job_id": job_id, "owner_id": visible_owner}
    return await tx.fetch_as(Incident, sql.incidents.page, params)


async def prune(tx: Tx, before: datetime, limit: int) -> int:
    """Delete incidents of all workspaces that ended before then. Needs an engine transaction."""
    return await tx.execute(sql.incidents.prune, {"before": before, "limit": limit})


def _columns(incidents: Sequence[Incident]) -> dict[str, Any]:
    return {
        "ids": [each.id for each in incidents],
        "fingerprints": [each.fingerprint for each in incidents],
        "errors": [
            None if each.error is None else Jsonb({"code": each.error.code, "message": each.error.message})
            for each in incidents
        ],
        "failures": [each.failures for each in incidents],
        "missed": [each.missed for each in incidents],
        "last_run_ids": [each.last_run_id for each in incidents],
        "last_ats": [each.last_at for each in incidents],
        "closed_ats": [each.closed_at for each in incidents],
        "closed_bys": [each.closed_by for each in incidents],
        "messages": [each.messages for each in incidents],
        "reminders": [each.reminders for each in incidents],
        "remind_ats": [each.remind_at for each in incidents],
    }
