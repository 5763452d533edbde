"""Channels, the addresses that peers refused, and the entries of digests that wait."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from foliot.domain.errors import Conflict
from foliot.domain.ids import ChannelId
from foliot.domain.notifications.channel import Channel, ChannelDefinition, RefusedAddress
from foliot.domain.notifications.dispatch import ChannelState, WaitingEntry
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


async def page(tx: Tx, after: tuple[str, UUID], limit: int) -> list[Channel]:
    """List channels by name."""
    name, last_id = after
    return await tx.fetch_as(Channel, sql.channels.page, {"name": name, "id": last_id, "limit": limit})


async def get(tx: Tx, channel_id: ChannelId) -> Channel | None:
    return await tx.fetch_one_as(Channel, sql.channels.get, {"id": channel_id})


async def lock(tx: Tx, *ids: ChannelId) -> set[ChannelId]:
    """Lock channels and return those that exist."""
    return set(await tx.fetch_as(ChannelId, sql.channels.lock, {"ids": list(ids)}))


async def load_states(tx: Tx) -> dict[ChannelId, ChannelState]:
    """Lock the channels of the workspace that may send, and return their windows."""
    return {each.id: each for each in await tx.fetch_as(ChannelState, sql.channels.load_states)}


async def list_existing(tx: Tx, ids: Collection[ChannelId]) -> set[ChannelId]:
    return set(await tx.fetch_as(ChannelId, sql.channels.list_existing, {"ids": list(ids)}))


async def insert(tx: Tx, channel_id: ChannelId, definition: ChannelDefinition) -> None:
    params = _columns(channel_id, definition)
    if not await tx.execute(sql.channels.insert, params):
        raise _taken(definition.name)


async def update(tx: Tx, channel_id: ChannelId, definition: ChannelDefinition) -> None:
    """Replace a channel and start it again: refused addresses are tried anew."""
    try:
        await tx.execute(sql.channels.update, _columns(channel_id, definition))
    except UniqueViolation:
        raise _taken(definition.name) from None
    await tx.execute(sql.channels.delete_refused, {"id": channel_id})


async def delete(tx: Tx, channel_id: ChannelId) -> None:
    await tx.execute(sql.channels.delete, {"id": channel_id})


async def save_states(tx: Tx, states: Sequence[ChannelState]) -> None:
    if states:
        params = {
            "ids": [each.id for each in states],
            "window_ats": [each.window_at for each in states],
            "window_counts": [each.window_count for each in states],
            "digest_ats": [each.digest_at for each in states],
        }
        await tx.execute(sql.channels.save_states, params)


async def record_success(tx: Tx, channel_id: ChannelId) -> None:
    await tx.execute(sql.channels.record_success, {"id": channel_id})


async def record_failure(tx: Tx, channel_id: ChannelId, error: str, *, disables: bool = False) -> None:
    await tx.execute(sql.channels.record_failure, {"id": channel_id, "error": error, "disables": disables})


async def add_refused(tx: Tx, channel_id: ChannelId, refused: Sequence[RefusedAddress]) -> None:
    if refused:
        params = {
            "id": channel_id,
            "addresses": [each.address for each in refused],
            "reasons": [each.reason for each in refused],
        }
        await tx.execute(sql.channels.add_refused, params)


async def insert_entries(tx: Tx, entries: Sequence[WaitingEntry]) -> None:
    if entries:
        params = {
            "channel_ids": [each.channel_id for each in entries],
            "incident_ids": [each.incident_id for each in entries],
            "kinds": [each.entry.kind.value for each in entries],
            "job_names": [each.entry.job_name for each in entries],
            "fingerprints": [each.entry.fingerprint for each in entries],
            "errors": [each.entry.error for each in entries],
            "failures": [each.entry.failures for each in entries],
            "recipients": [Jsonb(list(each.recipients)) for each in entries],
            "due_ats": [each.due_at for each in entries],
        }
        await tx.execute(sql.channels.insert_entries, params)


async def take_due_entries(tx: Tx, ids: Collection[ChannelId]) -> list[WaitingEntry]:
    """Remove and return the entries of digests that are due. The caller has locked the channels."""
    return await tx.fetch_as(WaitingEntry, sql.channels.take_due_entries, {"ids": list(ids)})


def _columns(channel_id: ChannelId, definition: ChannelDefinition) -> dict[str, object]:
    return {
        "id": channel_id,
        "name": definition.name,
        "kind": definition.kind.value,
        "config": Jsonb(definition.config),
        "receiver": definition.receiver,
        "enabled": definition.enabled,
        "timezone": definition.timezone,
    }


def _taken(name: str) -> Conflict:
    return Conflict(f'There is a channel named "{name}" already.', hint="Choose another name.")
