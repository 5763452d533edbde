"""`foliot workspaces`: the tenants of an installation, for system keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.output import pluralize
from foliot.cli.session import FIRST_50, DryRun, Paging, Session, Yes, api_command, confirm
from foliot.cli.tables import BOLD, DIM, Block, Column, Table, dry_run_page, facts, line, stack, styled
from foliot.cli.times import relative
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.wire.dry_run import WorkspaceDryRunOut
    from foliot.wire.identity import Quotas, WorkspaceOut

app = typer.Typer(help="Workspaces, one for each tenant. Only for system keys.", no_args_is_help=True)
QUOTAS = (
    "jobs",
    "min_interval",
    "payload_bytes",
    "requests_per_second",
    "key_requests_per_second",
    "artifact_bytes",
    "hosts",
    "servers",
    "rooms",
    "room_messages",
    "secrets",
    "fires_per_day",
    "keys",
    "archived_jobs",
)
Slug = Annotated[str, typer.Argument(metavar="SLUG", help="Workspace slug or id.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="Display name.", metavar="NAME")]
Timezone = Annotated[
    str | None,
    typer.Option("--timezone", "--tz", help="Default time zone of schedules.", metavar="ZONE"),
]
Quota = Annotated[
    list[str] | None,
    typer.Option(
        "--quota",
        help=f"Such as jobs=1000, or jobs=default for the installation's. One of {', '.join(QUOTAS)}.",
        metavar="WHAT=N",
    ),
]


@app.command("list")
@api_command
def list_workspaces(
    session: Session,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived workspaces.")] = False,
    paging: Paging = FIRST_50,
) -> None:
    """List workspaces by slug."""
    found = paging.fetch(session.client.workspaces.list, archived=archived)
    session.show_list(found, lambda: workspace_table(found.items, session.now))


@app.command()
@api_command
def create(
    session: Session,
    slug: Annotated[
        str,
        typer.Argument(
            metavar="SLUG",
            help="Short name: lower-case letters, digits, hyphens. It cannot be changed.",
            show_default=False,
        ),
    ],
    name: Name = None,
    timezone: Timezone = None,
    quota: Quota = None,
    dry_run: DryRun = False,
) -> None:
    """Create an empty workspace."""
    quotas = None if quota is None else parse_quotas(quota)
    if dry_run:
        verbs = session.client.workspaces.dry_run
        tried = verbs.create(slug, name=name, default_timezone=timezone, quotas=quotas)
        session.show(tried, lambda: _dry_run_page(tried, "Would create"))
        return
    made = session.client.workspaces.create(slug, name=name, default_timezone=timezone, quotas=quotas)
    session.show(made, lambda: workspace_page(made, "Created", session.now))
    session.note(f"Use it with -w {made.slug}: foliot jobs list -w {made.slug}")


@app.command()
@api_command
def change(
    session: Session,
    slug: Slug,
    name: Name = None,
    timezone: Timezone = None,
    quota: Quota = None,
    dry_run: DryRun = False,
) -> None:
    """Change the name, the default time zone or the quotas of a workspace."""
    fields: dict[str, Any] = {}
    if name is not None:
        fields["name"] = name
    if timezone is not None:
        fields["default_timezone"] = timezone
    if quota is not None:
        fields["quotas"] = parse_quotas(quota)
    if not fields:
        raise Invalid("Nothing to change.", hint="Use --name, --timezone or --quota.")
    if dry_run:
        tried = session.client.workspaces.dry_run.change(slug, **fields)
        session.show(tried, lambda: _dry_run_page(tried, "Would change"))
        return
    after = session.client.workspaces.change(slug, **fields)
    session.show(after, lambda: workspace_page(after, "Changed", session.now))


@app.command()
@api_command
def archive(session: Session, slug: Slug, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Archive a workspace: revoke its keys, archive its jobs, cancel its runs."""
    found = session.client.workspaces.get(slug)
    if dry_run:
        tried = session.client.workspaces.dry_run.delete(found.id)
        session.show(tried, lambda: _dry_run_page(tried, "Would archive", archive=True))
        return
    confirm(
        f'Archive "{found.name}" ({found.slug}) with all its jobs, cancel its runs, and revoke its keys?',
        yes=yes,
    )
    session.client.workspaces.delete(found.id)
    session.show({"id": str(found.id), "archived": True}, lambda: styled(f"Archived {found.slug}."))


def workspace_table(workspaces: Sequence[WorkspaceOut], now: datetime) -> Table[WorkspaceOut]:
    is_archived = bool(workspaces and workspaces[0].archived_at)
    columns: list[Column[WorkspaceOut]] = [
        Column("SLUG", lambda each: each.slug),
        Column("NAME", lambda each: each.name, wrap=True),
        Column("ZONE", lambda each: each.default_timezone),
        Column("QUOTAS", lambda each: _format_quotas(each.quotas) or "-", wrap=True),
        Column(
            "ARCHIVED" if is_archived else "CREATED",
            lambda each: relative((each.archived_at or each.created_at) - now),
            DIM,
            drop=1,
        ),
    ]
    return Table(columns, workspaces, empty="No workspaces.")


def workspace_page(workspace: WorkspaceOut, verb: str, now: datetime) -> Block:
    return stack(
        line((verb, BOLD), f" {workspace.slug}."),
        facts(
            (
                ("id", str(workspace.id)),
                ("name", workspace.name),
                ("zone", workspace.default_timezone),
                ("quotas", _format_quotas(workspace.quotas) or "those of the installation"),
                ("created", relative(workspace.created_at - now)),
            )
        ),
    )


def parse_quotas(texts: list[str]) -> dict[str, int | None]:
    """Read `jobs=1000`. `jobs=default` removes the workspace's own quota."""
    quotas: dict[str, int | None] = {}
    for each in texts:
        name, _, amount = each.partition("=")
        name = name.strip().replace("-", "_")
        amount = amount.strip().replace(",", "").replace("_", "")
        if name not in QUOTAS:
            raise Invalid(f'Unknown quota "{name}".', hint=f"Known quotas: {', '.join(QUOTAS)}.")
        if amount != "default" and not (amount.isascii() and amount.isdigit()):
            raise Invalid(
                f'--quota {each}: "{amount}" is not a whole number.',
                hint=f"Examples: {name}=1000, {name}=default.",
            )
        quotas[name] = None if amount == "default" else int(amount)
    return quotas


def _dry_run_page(tried: WorkspaceDryRunOut, verb: str, *, archive: bool = False) -> Block:
    found = tried.workspace
    effect = (
        f"{pluralize(tried.jobs, 'job')} would be archived, {pluralize(tried.keys, 'key')} revoked,"
        f" {pluralize(tried.runs, 'run')} cancelled."
    )
    return dry_run_page(
        f"{verb} {found.slug}: {found.name}, {found.default_timezone}", effect if archive else None
    )


def _format_quotas(quotas: Quotas) -> str:
    return ", ".join(f"{name}={amount:,}" for name, amount in quotas.model_dump(exclude_none=True).items())
