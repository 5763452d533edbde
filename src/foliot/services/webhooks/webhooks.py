"""Incoming webhooks: create, change and delete them, and find the one that a request names by its token."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import timedelta
from uuid import UUID

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, Invalid, QuotaExceeded, refuse_stale, require_found
from foliot.domain.ids import FIRST_ID, JobId, WebhookId, WorkspaceId
from foliot.domain.secret_references import references
from foliot.domain.webhooks import CHECK_IN, IncomingWebhook, WebhookDefinition, WebhookKind
from foliot.services.cursors import ListPage, cut_page, read_cursor, text
from foliot.services.identity.audit_steps import append_audit
from foliot.services.secrets.reference_steps import check_named
from foliot.storage.identity import workspaces
from foliot.storage.jobs import jobs
from foliot.storage.tx import Database, Role, Tx
from foliot.storage.webhooks import incoming_webhooks

MOST_WEBHOOKS = 1_000  # of a workspace
TOKEN_BYTES = 24
MESSAGES_ARE_KEPT = timedelta(days=7)  # longer than senders try again
PRUNED = 5_000


async def create(database: Database, scope: Scope, definition: WebhookDefinition) -> WebhookId:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await workspaces.lock_quota(tx)
        if await incoming_webhooks.count(tx) >= MOST_WEBHOOKS:
            raise QuotaExceeded(f"A workspace has at most {MOST_WEBHOOKS:,} webhooks.")
        await _check(tx, scope, definition)
        webhook_id = WebhookId(tx.new_id())
        await incoming_webhooks.insert(tx, webhook_id, _new_token(tx), definition, scope.actor.name)
        await _note(tx, "webhook.created", webhook_id, scope, definition)
    return webhook_id


async def replace(
    database: Database, scope: Scope, webhook_id: WebhookId, definition: WebhookDefinition
) -> None:
    """Change the name, the secrets and whether it is enabled. Its kind, job and address stay."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = (await _lock(tx, scope, webhook_id)).definition
        for field, before, after in (
            ("kind", found.kind, definition.kind),
            ("job_id", found.job_id, definition.job_id),
        ):
            if before != after:
                raise Conflict(
                    f"The {field} of a webhook cannot be changed.",
                    pointer=f"/{field}",
                    hint="Create another.",
                )
        await _check(tx, scope, definition)
        await incoming_webhooks.update(tx, webhook_id, definition)
        await _note(tx, "webhook.edited", webhook_id, scope, definition)


async def rotate(database: Database, scope: Scope, webhook_id: WebhookId) -> None:
    """Give the webhook another address. The old one is unknown from then on."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock(tx, scope, webhook_id)
        await incoming_webhooks.set_token(tx, webhook_id, _new_token(tx))
        await _note(tx, "webhook.rotated", webhook_id, scope, found.definition)


async def delete(database: Database, scope: Scope, webhook_id: WebhookId) -> None:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock(tx, scope, webhook_id)
        await incoming_webhooks.delete(tx, webhook_id)
        await _note(tx, "webhook.deleted", webhook_id, scope, found.definition)


async def get(database: Database, workspace_id: WorkspaceId, webhook_id: WebhookId) -> IncomingWebhook:
    async with database.tx(Role.APP, workspace_id) as tx:
        return require_found(await incoming_webhooks.get(tx, webhook_id), "webhook")


async def page(
    database: Database,
    workspace_id: WorkspaceId,
    cursor: str | None = None,
    limit: int = 50,
    *,
    job_id: JobId | None = None,
) -> ListPage[IncomingWebhook]:
    """List webhooks by name."""
    after = read_cursor(cursor, text, UUID) or ("", FIRST_ID)
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await incoming_webhooks.page(tx, after, limit + 1, job_id)
    return cut_page(found, limit, lambda last: [last.definition.name, last.id])


async def find_by_token(database: Database, token: str) -> tuple[WorkspaceId, IncomingWebhook] | None:
    """Find the enabled webhook of an address."""
    async with database.tx(Role.ENGINE) as tx:
        found = await incoming_webhooks.find_by_token(tx, token)
    if found is None:
        return None
    workspace_id, webhook_id = found
    async with database.tx(Role.APP, workspace_id) as tx:
        home = await workspaces.get(tx, workspace_id)
        webhook = await incoming_webhooks.get(tx, webhook_id)
    is_open = home is not None and home.archived_at is None
    return (workspace_id, webhook) if is_open and webhook and webhook.definition.enabled else None


async def prune(database: Database, limit: int = PRUNED) -> int:
    """Forget messages that no sender repeats any more."""
    async with database.tx(Role.ENGINE) as tx:
        return await incoming_webhooks.prune_messages(tx, tx.now - MESSAGES_ARE_KEPT, limit)


async def _lock(tx: Tx, scope: Scope, webhook_id: WebhookId) -> IncomingWebhook:
    found = require_found(await incoming_webhooks.lock(tx, webhook_id), "webhook")
    refuse_stale("webhook", found.revision, scope.expected_revision)
    return found


async def _check(tx: Tx, scope: Scope, definition: WebhookDefinition) -> None:
    job = await jobs.get(tx, definition.job_id)
    if job is None:
        raise Invalid("There is no such job.", pointer="/job_id")
    is_check_in = job.definition.spec.type == CHECK_IN
    if definition.kind is WebhookKind.CHECK_IN and not is_check_in:
        raise Invalid(
            f"Only jobs of type {CHECK_IN} take check-ins.",
            pointer="/kind",
            hint="Use kind trigger to run this job.",
        )
    if definition.kind is WebhookKind.TRIGGER and is_check_in:
        raise Invalid(
            "The work of this job is done elsewhere; it cannot be triggered.",
            pointer="/kind",
            hint=f"Use kind {CHECK_IN}.",
        )
    found = list(references(dict(definition.secrets)))
    if found:
        await check_named(tx, found, "", scope)


def _new_token(tx: Tx) -> str:
    return urlsafe_b64encode(tx.chance.randbytes(TOKEN_BYTES)).decode()


async def _note(
    tx: Tx, action: str, webhook_id: WebhookId, scope: Scope, definition: WebhookDefinition
) -> None:
    after = {
        "name": definition.name,
        "kind": definition.kind.value,
        "job": str(definition.job_id),
        "secret": definition.secret,
        "old_secret": definition.old_secret,
        "enabled": definition.enabled,
    }
    await append_audit(tx, action, ("webhook", webhook_id), scope.actor, after=after)
