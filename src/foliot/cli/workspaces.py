"""`foliot workspaces`: the tenants of an installation, for system keys."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.domain.errors import Invalid

app = typer.Typer(help="Workspaces: one for each tenant. For system keys only.", no_args_is_help=True)
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
)
Slug = Annotated[str, typer.Argument(metavar="SLUG", help="Its short name, or its id.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="What people call it.", metavar="NAME")]
Timezone = Annotated[
    str | None,
    typer.Option("--timezone", "--tz", help="Of schedules that name none.", metavar="ZONE"),
]
Quota = Annotated[
    list[str] | None,
    typer.Option(
        "--quota",
        help=f"Such as jobs=1000; default goes back to the installation's. One of {', '.join(QUOTAS)}.",
        metavar="WHAT=N",
    ),
]


@app.command("list")
@api_command
def list_workspaces(
    session: Session,
    archived: Annotated[bool, typer.Option("--archived", help="Those that are archived, instead.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    everything: All = False,
) -> None:
    """Workspaces, in the order of their slugs."""
    from foliot.cli.identity_rendering import workspace_list

    found, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.workspaces.list(archived=archived, limit=n, cursor=at),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(found, lambda: workspace_list(found, session.now), next_cursor=next_cursor)


@app.command()
@api_command
def create(
    session: Session,
    slug: Annotated[
        str,
        typer.Argument(
            metavar="SLUG",
            help="Its short name: small letters, digits, hyphens. It never changes.",
            show_default=False,
        ),
    ],
    name: Name = None,
    timezone: Timezone = None,
    quota: Quota = None,
    dry_run: DryRun = False,
) -> None:
    """Make an empty workspace."""
    from foliot.cli.dry_rendering import tried_workspace
    from foliot.cli.identity_rendering import workspace_page

    quotas = None if quota is None else quotas_in(quota)
    if dry_run:
        verbs = session.client.workspaces.dry_run
        tried = verbs.create(slug, name=name, default_timezone=timezone, quotas=quotas)
        session.show(tried, lambda: tried_workspace(tried, "Would create"))
        return
    made = session.client.workspaces.create(slug, name=name, default_timezone=timezone, quotas=quotas)
    session.show(made, lambda: workspace_page(made, "Created", session.now))
    session.note(f"Work in it with -w {made.slug}: foliot jobs list -w {made.slug}")


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
    """Change its name, its zone, or its quotas."""
    from foliot.cli.dry_rendering import tried_workspace
    from foliot.cli.identity_rendering import workspace_page

    fields: dict[str, Any] = {}
    if name is not None:
        fields["name"] = name
    if timezone is not None:
        fields["default_timezone"] = timezone
    if quota is not None:
        fields["quotas"] = quotas_in(quota)
    if not fields:
        raise Invalid("What shall change?", hint="Give --name, --timezone or --quota.")
    if dry_run:
        tried = session.client.workspaces.dry_run.change(slug, **fields)
        session.show(tried, lambda: tried_workspace(tried, "Would change"))
        return
    after = session.client.workspaces.change(slug, **fields)
    session.show(after, lambda: workspace_page(after, "Changed", session.now))


@app.command()
@api_command
def archive(session: Session, slug: Slug, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Put a workspace away: its keys end, its jobs are archived, its runs are cancelled."""
    from foliot.cli.dry_rendering import tried_workspace
    from foliot.cli.tables import cell

    found = session.client.workspaces.get(slug)
    if dry_run:
        tried = session.client.workspaces.dry_run.delete(found.id)
        session.show(tried, lambda: tried_workspace(tried, "Would archive", archives=True))
        return
    confirm(
        f'Archive "{found.name}" ({found.slug}) with all its jobs, cancel its runs, and end its keys?',
        yes=yes,
    )
    session.client.workspaces.delete(found.id)
    session.show({"id": str(found.id), "archived": True}, lambda: cell(f"Archived {found.slug}."))


def quotas_in(said: list[str]) -> dict[str, int | None]:
    """`jobs=1000`; `jobs=default` takes the workspace's own away."""
    quotas: dict[str, int | None] = {}
    for each in said:
        what, _, amount = each.partition("=")
        what = what.strip().replace("-", "_")
        amount = amount.strip().replace(",", "").replace("_", "")
        if what not in QUOTAS:
            raise Invalid(f'There is no quota "{what}".', hint=f"There are {', '.join(QUOTAS)}.")
        if amount != "default" and not (amount.isascii() and amount.isdigit()):
            raise Invalid(
                f'--quota {each}: "{amount}" is no whole number.',
                hint=f"Such as {what}=1000, or {what}=default.",
            )
        quotas[what] = None if amount == "default" else int(amount)
    return quotas
