"""/webhooks: addresses of jobs that other programs call, and these addresses themselves: /hooks/{token}.

Outgoing webhooks are channels of the kind `webhook`.
"""

from __future__ import annotations

from typing import Annotated, assert_never

from fastapi import APIRouter, Depends, Query, Request, Response

from foliot.domain.access import Permission
from foliot.domain.ids import JobId, WebhookId, WorkspaceId
from foliot.domain.webhooks import CheckInState, IncomingWebhook, WebhookKind
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller
from foliot.services.webhooks import check_ins, triggers, webhooks
from foliot.services.webhooks.triggers import NotRunnable, NotSigned, TooMany, Triggered
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, path_id
from foliot.web.api.writes import Writing, dry_run_response
from foliot.web.auth import SharedEditor, SharedViewer, address_of
from foliot.web.errors import Refused
from foliot.web.mapping.webhooks import webhook_from, webhook_out
from foliot.web.preconditions import IfMatch, expecting
from foliot.web.rate_limits import RateLimits
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, JsonRequest, api_router
from foliot.web.strict_json import InvalidJson, has_unstorable_text, read_json
from foliot.wire.instants import Id
from foliot.wire.shape import Page
from foliot.wire.webhooks import (
    CheckInOut,
    IncomingWebhookIn,
    IncomingWebhookOut,
    TriggeredOut,
    WebhookDeletion,
)

routes = api_router("webhooks")
calls = APIRouter(tags=["webhooks"])
LARGEST_CALL = 256 << 10  # bytes of a body
LONGEST_MESSAGE = 2_000  # characters that a check-in may say


async def _base_url(request: Request) -> str:
    return str(request.app.state.public_url or request.base_url)


WebhookIdIn = Annotated[WebhookId, path_id("webhook_id")]
BaseUrl = Annotated[str, Depends(_base_url)]


@routes.post(
    "/webhooks", status_code=201, responses={**dry_run_response(IncomingWebhookOut), **CONFLICT, **WITH_BODY}
)
async def create_webhook(
    webhook: IncomingWebhookIn, caller: SharedEditor, write: Writing, base_url: BaseUrl
) -> IncomingWebhookOut:
    """Give a job an address that other programs call. The secret of a trigger is named, never given."""
    definition = webhook_from(webhook)

    async def verb(db: Database) -> IncomingWebhook:
        webhook_id = await webhooks.create(db, caller.scope, definition)
        return await webhooks.get(db, caller.workspace_id, webhook_id)

    return await write.create("webhooks", verb, lambda made: webhook_out(made, base_url))


@routes.get("/webhooks")
async def list_webhooks(
    caller: SharedViewer,
    db: Db,
    base_url: BaseUrl,
    job_id: Annotated[Id | None, Query(description="Only those of this job.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[IncomingWebhookOut]:
    """List them by name."""
    wanted = None if job_id is None else JobId(job_id)
    page = await webhooks.page(db, caller.workspace_id, cursor, limit, job_id=wanted)
    seen = _seen_by(caller, base_url)
    items = [webhook_out(each, seen) for each in page.items]
    return Page[IncomingWebhookOut](items=items, next_cursor=page.next_cursor)


@routes.get("/webhooks/{webhook_id}", responses=NOT_FOUND)
async def get_webhook(
    webhook_id: WebhookIdIn, caller: SharedViewer, db: Db, base_url: BaseUrl, response: Response
) -> IncomingWebhookOut:
    """Get a webhook."""
    found = await webhooks.get(db, caller.workspace_id, webhook_id)
    response.headers["ETag"] = f'"{found.revision}"'
    return webhook_out(found, _seen_by(caller, base_url))


@routes.put("/webhooks/{webhook_id}", responses={**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY})
async def replace_webhook(
    webhook_id: WebhookIdIn,
    webhook: IncomingWebhookIn,
    caller: SharedEditor,
    db: Db,
    write: Writing,
    base_url: BaseUrl,
    if_match: IfMatch = None,
) -> IncomingWebhookOut:
    """Change its name, its secrets and whether it is enabled. Kind, job and address stay."""
    definition = webhook_from(webhook)
    scope = await expecting(caller.scope, if_match, lambda: webhooks.get(db, caller.workspace_id, webhook_id))

    async def verb(db: Database) -> IncomingWebhook:
        await webhooks.replace(db, scope, webhook_id, definition)
        return await webhooks.get(db, caller.workspace_id, webhook_id)

    return await write.apply(verb, lambda made: webhook_out(made, base_url))


@routes.post("/webhooks/{webhook_id}/rotate", responses=NOT_FOUND)
async def rotate_webhook(
    webhook_id: WebhookIdIn, caller: SharedEditor, write: Writing, base_url: BaseUrl
) -> IncomingWebhookOut:
    """Give it another address. The old one is unknown from then on."""

    async def verb(db: Database) -> IncomingWebhook:
        await webhooks.rotate(db, caller.scope, webhook_id)
        return await webhooks.get(db, caller.workspace_id, webhook_id)

    return await write.apply(verb, lambda made: webhook_out(made, base_url))


@routes.delete(
    "/webhooks/{webhook_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(WebhookDeletion), **NOT_FOUND, **STALE},
)
async def delete_webhook(
    webhook_id: WebhookIdIn, caller: SharedEditor, db: Db, write: Writing, if_match: IfMatch = None
) -> Response | None:
    """Delete it. Its address is unknown from then on."""
    scope = await expecting(caller.scope, if_match, lambda: webhooks.get(db, caller.workspace_id, webhook_id))
    return await write.delete_or_preview(
        lambda db: webhooks.delete(db, scope, webhook_id), lambda _: WebhookDeletion(deleted=webhook_id)
    )


@calls.post("/hooks/{token}", include_in_schema=False)
async def trigger_job(token: str, request: Request, response: Response) -> TriggeredOut | CheckInOut:
    """Run the job of a trigger. The signature is the proof; a check-in without a word is a success."""
    workspace_id, webhook = await _find(request, token)
    if webhook.definition.kind is WebhookKind.CHECK_IN:
        return await _check_in(request, workspace_id, webhook, CheckInState.SUCCESS)
    body = await _body(request)
    answer = await triggers.trigger(
        request.app.state.database,
        request.app.state.vault,
        workspace_id,
        webhook,
        request.headers,
        body,
        _payload(body),
    )
    match answer:
        case NotSigned(sentence=sentence):
            request.app.state.rates.count_failure(address_of(request))
            raise Refused(401, sentence, hint="Sign it as Standard Webhooks says, with the webhook's secret.")
        case TooMany():
            raise Refused(
                429,
                f"This webhook takes {triggers.MOST_MESSAGES} messages a minute.",
                headers={"Retry-After": "60"},
            )
        case NotRunnable(sentence=sentence):
            raise Refused(409, sentence)
        case Triggered(run_id=run_id, is_repeated=is_repeated):
            request.app.state.announce(Hint.READY)
            response.status_code = 200 if is_repeated else 202
            return TriggeredOut(run_id=run_id, repeated=is_repeated)
        case _ as never:
            assert_never(never)


@calls.api_route("/hooks/{token}/{state}", methods=["GET", "HEAD", "POST"], include_in_schema=False)
async def report_check_in(token: str, state: CheckInState, request: Request) -> CheckInOut:
    """Record start, success or fail of work elsewhere. GET as well: a cron line calls it with curl or wget."""
    workspace_id, webhook = await _find(request, token)
    if webhook.definition.kind is not WebhookKind.CHECK_IN:
        raise Refused(404, "There is no such webhook.")
    return await _check_in(request, workspace_id, webhook, state)


async def _check_in(
    request: Request, workspace_id: WorkspaceId, webhook: IncomingWebhook, state: CheckInState
) -> CheckInOut:
    rates: RateLimits = request.app.state.rates
    rates.count_call(webhook.id)
    message = (await _body(request))[: 4 * LONGEST_MESSAGE].decode("utf-8", "replace").replace("\0", "")
    done = await check_ins.check_in(
        request.app.state.database, workspace_id, webhook, state, message[:LONGEST_MESSAGE]
    )
    return CheckInOut(recorded=done.run_id is not None, run_id=done.run_id, message=done.sentence)


async def _find(request: Request, token: str) -> tuple[WorkspaceId, IncomingWebhook]:
    rates: RateLimits = request.app.state.rates
    rates.check_failures(address_of(request))
    is_token = len(token) <= 100 and token.isascii() and token.isprintable()
    found = await webhooks.find_by_token(request.app.state.database, token) if is_token else None
    if found is None:
        rates.count_failure(address_of(request))
        raise Refused(404, "There is no such webhook.")
    return found


async def _body(request: Request) -> bytes:
    bounded = JsonRequest(request.scope, request.receive)
    bounded.most = LARGEST_CALL
    return await bounded.body()


def _payload(body: bytes) -> object:
    """Return the body as JSON."""
    if not body:
        return {}
    try:
        found = read_json(body)
    except InvalidJson as error:
        raise Refused(400, str(error)) from None
    if has_unstorable_text(found):
        raise Refused(400, "Text cannot hold NUL or half a surrogate pair.")
    return found


def _seen_by(caller: Caller, base_url: str) -> str | None:
    return base_url if caller.holder.may(Permission.OPERATOR) else None
