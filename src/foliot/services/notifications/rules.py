"""Notification rules: create, change and delete them, and answer which of them apply to a job."""

from __future__ import annotations

from dataclasses import replace as replaced
from uuid import UUID

from foliot.domain.access import Scope
from foliot.domain.errors import Invalid, QuotaExceeded, refuse_stale, require_found
from foliot.domain.ids import FIRST_ID, RuleId, WorkspaceId
from foliot.domain.notifications.rules import NotificationRule, RuleDefinition
from foliot.services.cursors import ListPage, cut_page, read_cursor, text
from foliot.services.identity.audit_steps import append_audit
from foliot.services.notifications.filter_steps import check_filter
from foliot.storage.codec import encode
from foliot.storage.identity import workspaces
from foliot.storage.notifications import channels, event_feeds, notices, notification_rules
from foliot.storage.notifications.notification_rules import MOST_RULES, RuleRow
from foliot.storage.tx import Database, Role, Tx

__all__ = ["RuleRow"]


async def create(
    database: Database, scope: Scope, name: str, definition: RuleDefinition, *, enabled: bool = True
) -> RuleId:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await workspaces.lock_quota(tx)
        if await notification_rules.count(tx) >= MOST_RULES:
            raise QuotaExceeded(f"A workspace has at most {MOST_RULES} notification rules.")
        await _check_names(tx, definition)
        rule = NotificationRule(RuleId(tx.new_id()), name, definition, enabled)
        await notification_rules.insert(tx, rule)
        await _note(tx, "notification_rule.created", rule, scope)
    return rule.id


async def replace(
    database: Database,
    scope: Scope,
    rule_id: RuleId,
    name: str,
    definition: RuleDefinition,
    *,
    enabled: bool = True,
) -> None:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock(tx, scope, rule_id)
        await _check_names(tx, definition)
        rule = replaced(found.rule, name=name, definition=definition, enabled=enabled)
        await notification_rules.update(tx, rule)
        await _note(tx, "notification_rule.edited", rule, scope)


async def delete(database: Database, scope: Scope, rule_id: RuleId) -> None:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock(tx, scope, rule_id)
        await notification_rules.delete(tx, rule_id)
        await _note(tx, "notification_rule.deleted", found.rule, scope)


async def get(database: Database, workspace_id: WorkspaceId, rule_id: RuleId) -> RuleRow:
    async with database.tx(Role.APP, workspace_id) as tx:
        return require_found(await notification_rules.get(tx, rule_id), "notification rule")


async def page(
    database: Database, workspace_id: WorkspaceId, cursor: str | None = None, limit: int = 50
) -> ListPage[RuleRow]:
    """List rules by name."""
    after = read_cursor(cursor, text, UUID) or ("", FIRST_ID)
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await notification_rules.page(tx, after, limit + 1)
    return cut_page(found, limit, lambda last: [last.rule.name, last.rule.id])


async def _lock(tx: Tx, scope: Scope, rule_id: RuleId) -> RuleRow:
    found = require_found(await notification_rules.lock(tx, rule_id), "notification rule")
    refuse_stale("notification rule", found.revision, scope.expected_revision)
    return found


async def _check_names(tx: Tx, definition: RuleDefinition) -> None:
    """Refuse channels and jobs that the workspace does not have, and filters that cannot be read."""
    if definition.scope.q:
        await check_filter(tx, definition.scope.q)
    existing = await channels.list_existing(tx, definition.channels) if definition.channels else set()
    for place, channel_id in enumerate(definition.channels):
        if channel_id not in existing:
            raise Invalid("There is no such channel.", pointer=f"/channels/{place}")
    jobs = await notices.load_jobs(tx, definition.scope.jobs) if definition.scope.jobs else {}
    for place, job_id in enumerate(definition.scope.jobs):
        if job_id not in jobs:
            raise Invalid("There is no such job.", pointer=f"/scope/jobs/{place}")


async def _note(tx: Tx, action: str, rule: NotificationRule, scope: Scope) -> None:
    after = {"name": rule.name, "enabled": rule.enabled, **encode(rule.definition)}
    await event_feeds.sync(tx)
    await append_audit(tx, action, ("notification_rule", rule.id), scope.actor, after=after)
