"""`foliot webhooks`: addresses of jobs that other programs call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.lookup import find_job, find_named
from foliot.cli.session import FIRST_50, DryRun, Paging, Session, Yes, api_command, confirm
from foliot.cli.tables import BOLD, DIM, SHORT_ID, Block, Column, Table, facts, stack, styled
from foliot.cli.times import relative

if TYPE_CHECKING:
    from datetime import datetime

    from foliot.sdk import Client
    from foliot.wire.webhooks import IncomingWebhookOut

app = typer.Typer(help="Incoming webhooks: signed triggers and check-ins of jobs.", no_args_is_help=True)
WebhookRef = Annotated[
    str,
    typer.Argument(metavar="WEBHOOK", help="Webhook name, id, or beginning of the id.", show_default=False),
]
Secret = Annotated[
    str | None, typer.Option(help="Name of the secret that verifies signatures.", metavar="NAME")
]
OldSecret = Annotated[
    str | None,
    typer.Option(help="Name of a secret that is valid as well, while senders change over.", metavar="NAME"),
]


@app.command("list")
@api_command
def list_webhooks(
    session: Session,
    job: Annotated[str | None, typer.Option(help="Only those of this job.", metavar="JOB")] = None,
    paging: Paging = FIRST_50,
) -> None:
    """List webhooks by name."""
    job_id = None if job is None else find_job(session.client, job).id
    found = paging.fetch(session.client.webhooks.list, job_id=job_id)
    session.show_list(found, lambda: webhook_table(found.items, session.now))


@app.command()
@api_command
def show(session: Session, webhook: WebhookRef) -> None:
    """Show a webhook: its address, its last call and its last refusal."""
    found = find_webhook(session.client, webhook)
    session.show(found, lambda: webhook_page(found, session.now))


@app.command()
@api_command
def create(
    session: Session,
    job: Annotated[str, typer.Argument(metavar="JOB", help="Job name or id.", show_default=False)],
    name: Annotated[str | None, typer.Option(help="Default: the job's name.", metavar="NAME")] = None,
    secret: Secret = None,
    old_secret: OldSecret = None,
    dry_run: DryRun = False,
) -> None:
    """Give a job an address. A job of type check_in takes check-ins; others run on requests signed with --secret."""
    found = find_job(session.client, job)
    body = {
        "name": name or found.name[:100],
        "kind": "check_in" if found.type == "check_in" else "trigger",
        "job_id": found.id,
        **_secrets(secret, old_secret),
    }
    verbs = session.client.webhooks.dry_run if dry_run else session.client.webhooks
    made = verbs.create(body)
    session.show(made, lambda: webhook_page(made, session.now, is_tried=dry_run))


@app.command("set")
@api_command
def change(
    session: Session,
    webhook: WebhookRef,
    name: Annotated[str | None, typer.Option(help="A new name.", metavar="NAME")] = None,
    secret: Secret = None,
    old_secret: OldSecret = None,
    enabled: Annotated[
        bool | None, typer.Option("--enable/--disable", help="Whether calls are accepted.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Change a webhook. Without --old-secret only --secret is valid from then on."""
    found = find_webhook(session.client, webhook)
    kept = {} if found.secret is None else {"secret": found.secret}
    body = {
        "name": name or found.name,
        "kind": found.kind,
        "job_id": found.job_id,
        "enabled": found.enabled if enabled is None else enabled,
        **kept,
        **_secrets(secret, old_secret),
    }
    verbs = session.client.webhooks.dry_run if dry_run else session.client.webhooks
    changed = verbs.replace(found.id, body)
    session.show(changed, lambda: webhook_page(changed, session.now, is_tried=dry_run))


@app.command()
@api_command
def rotate(session: Session, webhook: WebhookRef, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Give a webhook another address. The old one is unknown from then on."""
    found = find_webhook(session.client, webhook)
    if not dry_run:
        confirm(f'Replace the address of "{found.name}"? Callers of the old one are refused.', yes=yes)
    verbs = session.client.webhooks.dry_run if dry_run else session.client.webhooks
    changed = verbs.rotate(found.id)
    session.show(changed, lambda: webhook_page(changed, session.now, is_tried=dry_run))


@app.command()
@api_command
def delete(session: Session, webhook: WebhookRef, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete a webhook."""
    found = find_webhook(session.client, webhook)
    question = f'Delete the webhook "{found.name}"?'
    session.delete(session.client.webhooks, found, question, yes=yes, dry_run=dry_run)


def webhook_table(webhooks: Sequence[IncomingWebhookOut], now: datetime) -> Table[IncomingWebhookOut]:
    columns: list[Column[IncomingWebhookOut]] = [
        Column("NAME", lambda each: each.name if each.enabled else f"{each.name} (off)", wrap=True),
        Column("KIND", lambda each: each.kind),
        Column("JOB", lambda each: each.job_name, wrap=True),
        Column("LAST CALL", lambda each: relative(each.last_call_at - now) if each.last_call_at else "never"),
        Column("REFUSED", lambda each: each.last_refusal or "", wrap=True, drop=2),
        Column("ID", lambda each: str(each.id)[:SHORT_ID], DIM, drop=1),
    ]
    return Table(columns, webhooks, empty="No webhooks.")


def webhook_page(webhook: IncomingWebhookOut, now: datetime, *, is_tried: bool = False) -> Block:
    refused = webhook.last_refusal_at
    shown: list[tuple[str, Any]] = [
        ("id", str(webhook.id)),
        ("kind", webhook.kind),
        ("job", webhook.job_name),
        ("url", webhook.url or "not shown to viewers"),
        ("secret", webhook.secret and webhook.secret.secret),
        ("old secret", webhook.old_secret and webhook.old_secret.secret),
        ("state", "on" if webhook.enabled else "off"),
        ("last call", relative(webhook.last_call_at - now) if webhook.last_call_at else "never"),
        ("refused", f"{relative(refused - now)}: {webhook.last_refusal}" if refused else None),
    ]
    return stack(styled(webhook.name, BOLD), facts(shown), styled("Nothing was done.") if is_tried else None)


def find_webhook(client: Client, ref: str) -> IncomingWebhookOut:
    return find_named(client.webhooks.each(), ref, "webhook", lambda each: each.name)


def _secrets(secret: str | None, old_secret: str | None) -> dict[str, object]:
    given = {"secret": secret, "old_secret": old_secret}
    return {field: {"secret": name} for field, name in given.items() if name is not None}
