"""`foliot keys`: keys by the API; and, with the database at hand, a new one for when the first is lost."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli import options
from foliot.cli.members import find_member
from foliot.cli.output import pluralize, print_err, print_out
from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.cli.times import local_zone, parse_time
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.identity import KeyOut
    from foliot.wire.identity import Scope as AnyScope

app = typer.Typer(help="Keys: who may come in.", no_args_is_help=True)


class Scope(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"
    SYSTEM = "system"
    WORKER = "worker"


@app.command("list")
@api_command
def list_keys(
    session: Session,
    revoked: Annotated[bool, typer.Option("--revoked", help="Those that are revoked, instead.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    everything: All = False,
) -> None:
    """Your own keys; for an administrator, all of the workspace."""
    from foliot.cli.key_rendering import key_list

    found, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.keys.list(revoked=revoked, limit=n, cursor=at),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(found, lambda: key_list(found, session.now), next_cursor=next_cursor)


@app.command()
@api_command
def create(
    session: Session,
    name: Annotated[str, typer.Option(help="What to call it in lists of keys.")] = "made on the command line",
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="What it may at most; several add up. Default: all that you may."),
    ] = None,
    member: Annotated[
        str | None,
        typer.Option(help="Whose it will be: a member's name or id. Default: yours.", metavar="WHO"),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="90d, 2027-01-01. Default: never.", metavar="TIME")
    ] = None,
    admin: Annotated[
        bool,
        typer.Option(
            "--admin", help="A system administrator's key, made in the database itself: no key is needed."
        ),
    ] = False,
    dry_run: DryRun = False,
    config: options.Config = None,
    data_dir: options.DataDir = None,
    pg_bindir: options.PgBindir = None,
) -> None:
    """Make a key and print it once, alone on one line. --admin needs the data directory or FOLIOT_DATABASE_URL."""
    if admin:
        if dry_run:
            raise Invalid("--admin cannot be tried.", hint="Leave out --dry-run, or --admin.")
        if scope or member or expires:
            raise Invalid(
                "--admin makes a key that may everything, for ever.", hint="Leave out the other flags."
            )
        from foliot.wiring import admin_tasks

        found = options.settings(config=config, data_dir=data_dir, pg_bindir=pg_bindir)
        secret = admin_tasks.create_admin_key(found, name)
        print_err("This key is shown once and stored only as a hash. Keep it safe:")
        print_out(secret)
        return
    principal = None if member is None else find_member(session.client, member).id
    scopes: list[AnyScope] | None = None if scope is None else [each.value for each in scope]
    ends = None if expires is None else parse_time(expires, session.now, local_zone(), flag="--expires")
    if dry_run:
        from foliot.cli.dry_rendering import tried_key

        verbs = session.client.keys.dry_run
        tried = verbs.create(name, principal=principal, scopes=scopes, expires_at=ends)
        session.show(tried, lambda: tried_key(tried, "Would make"))
        return
    made = session.client.keys.create(name, principal=principal, scopes=scopes, expires_at=ends)
    session.note("This key is shown once and stored only as a hash. Keep it safe:")
    from foliot.cli.tables import cell

    session.show(made, lambda: cell(made.secret))


@app.command()
@api_command
def revoke(
    session: Session,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="Its id, its prefix as lists show it, or its name.")
    ],
    made_too: Annotated[
        bool, typer.Option("--made-too", help="Also every key made with it, and with those: it has leaked.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """End a key, everywhere within five seconds. Keys that were made with it go on, unless --made-too."""
    from foliot.cli.tables import cell

    found = _key(session.client, key, is_revoked=None if made_too else False)
    if dry_run:
        from foliot.cli.dry_rendering import tried_key

        tried = session.client.keys.dry_run.revoke(found.id, made_too=made_too)
        session.show(tried, lambda: tried_key(tried, "Would revoke"))
        return
    too = " and every key made with it" if made_too else ""
    confirm(f'Revoke "{found.name}" (fol_{found.prefix}_…) of {found.principal.name}{too}?', yes=yes)
    ended = session.client.keys.revoke(found.id, made_too=made_too)
    with_it = f", and {pluralize(ended.made_revoked, 'key')} made with it" if ended.made_revoked else ""
    session.show(ended, lambda: cell(f"Revoked {ended.name} (fol_{ended.prefix}_…){with_it}."))
    if ended.made_valid:
        session.note(
            f"{pluralize(ended.made_valid, 'key')} made with it still open{'s' if ended.made_valid == 1 else ''}:"
            f" if it has leaked, foliot keys revoke {ended.id} --made-too"
        )


def _key(client: Client, called: str, is_revoked: bool | None) -> KeyOut:
    """One that is revoked already may still have made others that are not."""
    bare = called.removeprefix("fol_").rstrip("_…")
    found = [
        each
        for each in client.keys.each(revoked=is_revoked)
        if called in {str(each.id), each.name} or each.prefix == bare
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise Invalid(
            f'"{called}" could be any of {len(found)} keys.',
            hint="Use the prefix that `foliot keys list` shows.",
        )
    raise NotFound(f'There is no valid key called "{called}".', hint="See them with `foliot keys list`.")
