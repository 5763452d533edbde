"""Run a job when a signed request comes in. A message runs it once: a repeated id gets the answer of the first.

Why: docs/decisions/913-webhooks.md
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Conflict, NotFound
from foliot.domain.ids import RunId, WorkspaceId
from foliot.domain.run import RunError, Trigger
from foliot.domain.signatures import InvalidSigningSecret, refuse_signature
from foliot.domain.webhooks import IncomingWebhook
from foliot.services.runs.run_steps import request_run
from foliot.services.secrets.resolution import resolve_secrets
from foliot.services.secrets.vault import Vault
from foliot.storage.tx import Database, Role
from foliot.storage.webhooks import incoming_webhooks

log = logging.getLogger(__name__)

MOST_MESSAGES = 60  # of one webhook within a minute
WINDOW = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Triggered:
    run_id: RunId
    is_repeated: bool = False  # an earlier message with this id has run the job


@dataclass(frozen=True, slots=True)
class NotSigned:
    """The signature does not verify, or is too old."""

    sentence: str


@dataclass(frozen=True, slots=True)
class TooMany:
    """The webhook has accepted as many messages as it may in a minute."""


@dataclass(frozen=True, slots=True)
class NotRunnable:
    """The job cannot run now: it is archived, frozen or of a type that is off."""

    sentence: str


TriggerAnswer = Triggered | NotSigned | TooMany | NotRunnable


async def trigger(
    database: Database,
    vault: Vault,
    workspace_id: WorkspaceId,
    webhook: IncomingWebhook,
    headers: Mapping[str, str],
    body: bytes,
    payload: Any,
) -> TriggerAnswer:
    """Verify the message and run the job with its payload, in one transaction with the record of the message."""
    refusal = await _refuse(database, vault, workspace_id, webhook, headers, body)
    message_id = headers.get("webhook-id", "")
    try:
        async with database.tx(Role.APP, workspace_id) as tx:
            if await incoming_webhooks.lock(tx, webhook.id) is None:
                return NotSigned("This webhook was deleted.")
            if refusal is not None:
                await incoming_webhooks.record_refusal(tx, webhook.id, refusal)
                return NotSigned(refusal)
            known = await incoming_webhooks.find_message(tx, webhook.id, message_id)
            if known is not None:
                return Triggered(known, is_repeated=True)
            if await incoming_webhooks.count_messages(tx, webhook.id, tx.now - WINDOW) >= MOST_MESSAGES:
                await incoming_webhooks.record_refusal(
                    tx, webhook.id, f"More than {MOST_MESSAGES} messages within a minute."
                )
                return TooMany()
            scope = Scope(workspace_id, Actor(f"webhook {webhook.definition.name}"))
            given = payload if isinstance(payload, dict) else {"payload": payload}
            run_id = await request_run(
                tx, webhook.definition.job_id, scope, input=given, trigger=Trigger.WEBHOOK
            )
            await incoming_webhooks.insert_message(tx, webhook.id, message_id, run_id)
            await incoming_webhooks.record_call(tx, webhook.id)
    except (Conflict, NotFound) as error:
        return NotRunnable(error.message)
    log.info("webhook.triggered", extra={"webhook": str(webhook.id), "run": str(run_id)})
    return Triggered(run_id)


async def _refuse(
    database: Database,
    vault: Vault,
    workspace_id: WorkspaceId,
    webhook: IncomingWebhook,
    headers: Mapping[str, str],
    body: bytes,
) -> str | None:
    [resolved] = await resolve_secrets(database, vault, workspace_id, [webhook.definition.secrets])
    if isinstance(resolved, RunError):
        return resolved.message
    async with database.tx(Role.APP, workspace_id) as tx:
        now = tx.now
    try:
        return refuse_signature([str(each) for each in resolved.config.values()], headers, body, now)
    except InvalidSigningSecret as error:
        return str(error)
