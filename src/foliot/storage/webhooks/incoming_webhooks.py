"""Incoming webhooks: their rows, the messages they accepted, and the runs that wait for a check-in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.errors import UniqueViolation

from foliot.domain.errors import Conflict
from foliot.domain.ids import JobId, RunId, WebhookId, WorkspaceId
from foliot.domain.webhooks import IncomingWebhook, WebhookDefinition
from foliot.storage.filter_sql import filled
from foliot.storage.queries import sql
from foliot.storage.queue.leases import LeaseKey
from foliot.storage.timers.timers import TimerRow, queue_address
from foliot.storage.tx import Tx

_COLUMNS = """incoming_webhooks.id, incoming_webhooks.name AS "definition.name", incoming_webhooks.kind AS "definition.kind",
       incoming_webhooks.job_id AS "definition.job_id", incoming_webhooks.secret AS "definition.secret",
       incoming_webhooks.old_secret AS "definition.old_secret", incoming_webhooks.enabled AS "definition.enabled", incoming_webhooks.token,
       jobs.name AS job_name, incoming_webhooks.revision, incoming_webhooks.created_by, incoming_webhooks.created_at,
       incoming_webhooks.updated_at, incoming_webhooks.called_at, incoming_webhooks.refused_at, incoming_webhooks.refusal"""
_PAGE, _GET, _LOCK = (
    filled(each, columns=_COLUMNS)
    for each in (sql.incoming_webhooks.page, sql.incoming_webhooks.get, sql.incoming_webhooks.lock)
)


async def page(
    tx: Tx, after: tuple[str, UUID], limit: int, job_id: JobId | None = None
) -> list[IncomingWebhook]:
    """List webhooks by name."""
    name, last_id = after
    params = {"name": name, "id": last_id, "job_id": job_id, "limit": limit}
    return await tx.fetch_as(IncomingWebhook, _PAGE, params)


async def get(tx: Tx, webhook_id: WebhookId) -> IncomingWebhook | None:
    return await tx.fetch_one_as(IncomingWebhook, _GET, {"id": webhook_id})


async def lock(tx: Tx, webhook_id: WebhookId) -> IncomingWebhook | None:
    return await tx.fetch_one_as(IncomingWebhook, _LOCK, {"id": webhook_id})


async def find_by_token(tx: Tx, token: str) -> tuple[WorkspaceId, WebhookId] | None:
    """Find the webhook of an address. Needs an engine transaction."""
    found = await tx.fetch_pairs(
        WorkspaceId, WebhookId, sql.incoming_webhooks.find_by_token, {"token": token}
    )
    return found[0] if found else None


async def insert(tx: Tx, webhook_id: WebhookId, token: str, definition: WebhookDefinition, by: str) -> None:
    params = {**_columns(webhook_id, definition), "token": token, "by": by}
    if not await tx.execute(sql.incoming_webhooks.insert, params):
        raise _taken(definition.name)


async def update(tx: Tx, webhook_id: WebhookId, definition: WebhookDefinition) -> None:
    try:
        await tx.execute(sql.incoming_webhooks.update, _columns(webhook_id, definition))
    except UniqueViolation:
        raise _taken(definition.name) from None


async def set_token(tx: Tx, webhook_id: WebhookId, token: str) -> None:
    await tx.execute(sql.incoming_webhooks.set_token, {"id": webhook_id, "token": token})


async def delete(tx: Tx, webhook_id: WebhookId) -> None:
    await tx.execute(sql.incoming_webhooks.delete, {"id": webhook_id})


async def count(tx: Tx) -> int:
    return await tx.fetch_value(int, sql.incoming_webhooks.count)


async def record_call(tx: Tx, webhook_id: WebhookId) -> None:
    await tx.execute(sql.incoming_webhooks.record_call, {"id": webhook_id})


async def record_refusal(tx: Tx, webhook_id: WebhookId, refusal: str) -> None:
    await tx.execute(sql.incoming_webhooks.record_refusal, {"id": webhook_id, "refusal": refusal})


async def find_message(tx: Tx, webhook_id: WebhookId, message_id: str) -> RunId | None:
    """Return the run of a message that was accepted before."""
    params = {"webhook_id": webhook_id, "message_id": message_id}
    return await tx.fetch_one_as(RunId, sql.incoming_webhooks.find_message, params)


async def count_messages(tx: Tx, webhook_id: WebhookId, after: datetime) -> int:
    params = {"webhook_id": webhook_id, "after": after}
    return await tx.fetch_value(int, sql.incoming_webhooks.count_messages, params)


async def insert_message(tx: Tx, webhook_id: WebhookId, message_id: str, run_id: RunId) -> None:
    params = {"webhook_id": webhook_id, "message_id": message_id, "run_id": run_id}
    await tx.execute(sql.incoming_webhooks.insert_message, params)


async def prune_messages(tx: Tx, before: datetime, limit: int) -> int:
    """Delete old messages. Needs an engine transaction."""
    return await tx.execute(sql.incoming_webhooks.prune_messages, {"before": before, "limit": limit})


async def find_open_run(tx: Tx, row: TimerRow) -> RunId | None:
    """Return the oldest run of the job that waits for its check-in."""
    params = {**queue_address(row), "job_id": row.job_id}
    return await tx.fetch_one_as(RunId, sql.incoming_webhooks.find_open_run, params)


async def find_lease(tx: Tx, job_id: JobId) -> LeaseKey | None:
    row = await tx.fetch_one(sql.incoming_webhooks.find_lease, {"job_id": job_id})
    return None if row is None else LeaseKey(**row)


async def list_unreported(tx: Tx, within: timedelta, limit: int) -> list[tuple[RunId, JobId]]:
    """List runs whose check-in has not come in time; `within` holds where the job has no start deadline."""
    params = {"within": within, "limit": limit}
    return await tx.fetch_pairs(RunId, JobId, sql.incoming_webhooks.list_unreported, params)


async def lock_unreported(tx: Tx, run_ids: Sequence[RunId], within: timedelta) -> list[RunId]:
    params = {"run_ids": list(run_ids), "within": within}
    return await tx.fetch_as(RunId, sql.incoming_webhooks.lock_unreported, params)


def _columns(webhook_id: WebhookId, definition: WebhookDefinition) -> dict[str, object]:
    return {
        "id": webhook_id,
        "job_id": definition.job_id,
        "name": definition.name,
        "kind": definition.kind.value,
        "secret": definition.secret,
        "old_secret": definition.old_secret,
        "enabled": definition.enabled,
    }


def _taken(name: str) -> Conflict:
    return Conflict(f'There is a webhook named "{name}" already.', hint="Choose another name.")
