"""/notification-rules: which events of which jobs go to which channels. The closest rules to a job decide."""

from __future__ import annotations

from typing import Annotated

from fastapi import Response

from foliot.domain.ids import RuleId
from foliot.services import Database
from foliot.services.notifications import rules
from foliot.services.notifications.rules import RuleRow
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, path_id
from foliot.web.api.writes import Writing, dry_run_response
from foliot.web.auth import SharedEditor, SharedViewer
from foliot.web.mapping.notifications import rule_from, rule_out
from foliot.web.preconditions import IfMatch, expecting
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.notifications import NotificationRuleIn, NotificationRuleOut, RuleDeletion
from foliot.wire.shape import Page

routes = api_router("notification-rules")
RuleIdIn = Annotated[RuleId, path_id("rule_id", "notification rule")]


@routes.post(
    "/notification-rules",
    status_code=201,
    responses={**dry_run_response(NotificationRuleOut), **CONFLICT, **WITH_BODY},
)
async def create_notification_rule(
    rule: NotificationRuleIn, caller: SharedEditor, write: Writing
) -> NotificationRuleOut:
    """Create a rule. Without channels it mutes its events for the jobs of its scope."""
    definition = rule_from(rule, caller.workspace.default_timezone)

    async def verb(db: Database) -> RuleRow:
        rule_id = await rules.create(db, caller.scope, rule.name.strip(), definition, enabled=rule.enabled)
        return await rules.get(db, caller.workspace_id, rule_id)

    return await write.create("notification-rules", verb, rule_out)


@routes.get("/notification-rules")
async def list_notification_rules(
    caller: SharedViewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[NotificationRuleOut]:
    """List them by name."""
    page = await rules.page(db, caller.workspace_id, cursor, limit)
    return Page[NotificationRuleOut](
        items=[rule_out(each) for each in page.items], next_cursor=page.next_cursor
    )


@routes.get("/notification-rules/{rule_id}", responses=NOT_FOUND)
async def get_notification_rule(
    rule_id: RuleIdIn, caller: SharedViewer, db: Db, response: Response
) -> NotificationRuleOut:
    """Get a notification rule."""
    found = await rules.get(db, caller.workspace_id, rule_id)
    response.headers["ETag"] = f'"{found.revision}"'
    return rule_out(found)


@routes.put("/notification-rules/{rule_id}", responses={**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY})
async def replace_notification_rule(
    rule_id: RuleIdIn,
    rule: NotificationRuleIn,
    caller: SharedEditor,
    db: Db,
    write: Writing,
    if_match: IfMatch = None,
) -> NotificationRuleOut:
    """Replace a notification rule."""
    definition = rule_from(rule, caller.workspace.default_timezone)
    scope = await expecting(caller.scope, if_match, lambda: rules.get(db, caller.workspace_id, rule_id))

    async def verb(db: Database) -> RuleRow:
        await rules.replace(db, scope, rule_id, rule.name.strip(), definition, enabled=rule.enabled)
        return await rules.get(db, caller.workspace_id, rule_id)

    return await write.apply(verb, rule_out)


@routes.delete(
    "/notification-rules/{rule_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(RuleDeletion), **NOT_FOUND, **STALE},
)
async def delete_notification_rule(
    rule_id: RuleIdIn, caller: SharedEditor, db: Db, write: Writing, if_match: IfMatch = None
) -> Response | None:
    """Delete a notification rule."""
    scope = await expecting(caller.scope, if_match, lambda: rules.get(db, caller.workspace_id, rule_id))
    return await write.delete_or_preview(
        lambda db: rules.delete(db, scope, rule_id), lambda _: RuleDeletion(deleted=rule_id)
    )
