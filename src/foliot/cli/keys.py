"""`foliot keys`: keys by the API; and, with the database at hand, a new one for when the first is lost."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli import options
from foliot.cli.here import Here, Yes, asking, confirm
from foliot.cli.members import member_called
from foliot.cli.output import say, tell
from foliot.cli.paging import All, Cursor, Limit, gathered
from foliot.cli.times import local_zone, read_moment
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.identity import KeyOut

app = typer.Typer(help="Keys: who may come in.", no_args_is_help=True)


class Scope(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"
    SYSTEM = "system"
    WORKER = "worker"


@app.command("list")
@asking
def list_keys(
    here: Here,
    revoked: Annotated[bool, typer.Option("--revoked", help="Those that are revoked, instead.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    everything: All = False,
) -> None:
    """Your own keys; for an administrator, all of the workspace."""
    from foliot.cli.key_rendering import key_list

    found, next_cursor, _ = gathered(
        lambda n, at: here.client.keys.list(revoked=revoked, limit=n, cursor=at),
        limit=None if everything else limit,
        cursor=cursor,
    )
    here.show_list(found, lambda: key_list(found, here.now), next_cursor=next_cursor)


@app.command()
@asking
def create(
    here: Here,
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
    config: options.Config = None,
    data_dir: options.DataDir = None,
    pg_bindir: options.PgBindir = None,
) -> None:
    """Make a key and print it once, alone on one line. --admin needs the data directory or FOLIOT_DATABASE_URL."""
    if admin:
        if scope or member or expires:
            raise Invalid(
                "--admin makes a key that may everything, for ever.", hint="Leave out the other flags."
            )
        from foliot.wiring import errands

        found = options.settings(config=config, data_dir=data_dir, pg_bindir=pg_bindir)
        secret = errands.create_admin_key(found, name)
        tell("This key is shown once and stored only as a hash. Keep it safe:")
        say(secret)
        return
    made = here.client.keys.create(
        name,
        principal=None if member is None else member_called(here.client, member).id,
        scopes=None if scope is None else [each.value for each in scope],
        expires_at=None
        if expires is None
        else read_moment(expires, here.now, local_zone(), flag="--expires"),
    )
    here.note("This key is shown once and stored only as a hash. Keep it safe:")
    from foliot.cli.looks import cell

    here.show(made, lambda: cell(made.secret))


@app.command()
@asking
def revoke(
    here: Here,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="Its id, its prefix as lists show it, or its name.")
    ],
    yes: Yes = False,
) -> None:
    """End a key, everywhere within five seconds."""
    from foliot.cli.looks import cell

    found = _key(here.client, key)
    confirm(f'Revoke "{found.name}" (fol_{found.prefix}_…) of {found.principal.name}?', yes=yes)
    ended = here.client.keys.revoke(found.id)
    here.show(ended, lambda: cell(f"Revoked {ended.name} (fol_{ended.prefix}_…)."))


def _key(client: Client, called: str) -> KeyOut:
    bare = called.removeprefix("fol_").rstrip("_…")
    found = [
        each
        for each in client.keys.each(revoked=False)
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
