"""`foliot secrets`: values that jobs use by name. A value comes by prompt or standard input, never by a flag that others could read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.input_files import read_text
from foliot.cli.members import find_member
from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.progress import progress_bar
from foliot.cli.session import DryRun, OutputFormat, Session, Yes, api_command, confirm
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from uuid import UUID

    from foliot.sdk import Client
    from foliot.wire.secrets import RotatedOut, SecretOut

app = typer.Typer(
    help='Secrets: values that jobs use by name, as {"secret": "name"} in a config.', no_args_is_help=True
)
Called = Annotated[str, typer.Argument(metavar="SECRET", help="Its name, or its id.", show_default=False)]


@app.command("list")
@api_command
def list_secrets(session: Session, limit: Limit = 50, cursor: Cursor = None, everything: All = False) -> None:
    """Secrets, by name, without their values."""
    from foliot.cli.secret_rendering import secret_list

    found, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.secrets.list(limit=n, cursor=at),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(found, lambda: secret_list(found, session.now), next_cursor=next_cursor)


@app.command()
@api_command
def show(session: Session, secret: Called) -> None:
    """One secret: its version, and the jobs that name it. Nobody is shown its value."""
    from foliot.cli.secret_rendering import secret_page

    found = find_secret(session.client, secret)
    users = session.client.secrets.jobs(found.id).items if session.format is OutputFormat.TABLE else []
    session.show(found, lambda: secret_page(found, users, session.now))


@app.command("set")
@api_command
def set_secret(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, and . _ -")],
    agent: Annotated[
        list[str] | None,
        typer.Option(help="An agent that may use it in its jobs; may be given several times.", metavar="WHO"),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Make a secret, or give it a new value, which is asked for without being shown, or read from standard input.

    One line end at its end is left out: `pass show crm | foliot secrets set crm-token`.
    """
    from foliot.cli.secret_rendering import secret_page, tried_line

    agents = None if agent is None else _agents(session.client, agent)
    value = _typed(name) if sys.stdin.isatty() else _piped()
    if dry_run:
        there = session.client.secrets.list(name=name).items
        dry = session.client.secrets.dry_run
        tried = dry.replace(there[0].id, value) if there else dry.create(name, value, agents=agents or ())
        session.show(tried, lambda: tried_line(tried, f"Would {'replace' if there else 'make'} {name}"))
        return
    kept = session.client.secrets.set(name, value, agents=agents)
    session.show(kept, lambda: secret_page(kept, (), session.now))


@app.command()
@api_command
def give(
    session: Session,
    secret: Called,
    agents: Annotated[
        list[str] | None,
        typer.Argument(metavar="[AGENT]...", help="These, and no others; none takes it back."),
    ] = None,
) -> None:
    """Say which agents may use a secret in the jobs that they write."""
    from foliot.cli.secret_rendering import secret_page

    found = find_secret(session.client, secret)
    changed = session.client.secrets.give(found.id, _agents(session.client, agents or []))
    session.show(changed, lambda: secret_page(changed, (), session.now))


@app.command()
@api_command
def delete(
    session: Session,
    secret: Called,
    force: Annotated[
        bool, typer.Option("--force", help="Also while jobs use it; their runs then fail.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete a secret. Refused while jobs use it, unless --force."""
    from foliot.cli.secret_rendering import tried_line
    from foliot.cli.tables import cell

    found = find_secret(session.client, secret)
    if dry_run:
        tried = session.client.secrets.dry_run.delete(found.id, force=force)
        session.show(tried, lambda: tried_line(tried, f"Would delete {found.name}"))
        return
    confirm(f'Delete the secret "{found.name}"? Its value is kept nowhere else.', yes=yes)
    session.client.secrets.delete(found.id, force=force)
    session.show({"deleted": str(found.id)}, lambda: cell(f"Deleted {found.name}."))


@app.command()
@api_command
def rotate(
    session: Session,
    new_key: Annotated[
        bool,
        typer.Option("--new-key", help="Make a new key first, in master.key of the server's data directory."),
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="The installation's key is lost: go on with another.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Seal the secrets of all workspaces with the server's present master key. It may be stopped and asked for again."""
    from foliot.cli.secret_rendering import rotated_line, tried_rotation

    if dry_run:
        tried = session.client.secrets.dry_run.rotate(new_key=new_key, accept_loss=accept_loss)
        session.show(tried, lambda: tried_rotation(tried))
        return
    if accept_loss:
        confirm("Secrets that only the lost key opens must each be set anew. Go on without it?", yes=yes)
    done = _rotated(session.client, new_key=new_key, accept_loss=accept_loss)
    session.show(done, lambda: rotated_line(done))
    if done.left:
        raise typer.Exit(1)


@app.command("master-key")
@api_command
def master_key(session: Session) -> None:
    """Which master keys the server knows, by their ids, and how many secrets wait for a rotation."""
    from foliot.cli.secret_rendering import master_key_page

    found = session.client.secrets.master_key()
    session.show(found, lambda: master_key_page(found))


def find_secret(client: Client, called: str) -> SecretOut:
    found = client.secrets.list(name=called).items
    found = found or [each for each in client.secrets.each() if str(each.id) == called.lower()]
    if found:
        return found[0]
    raise NotFound(f'There is no secret called "{called}".', hint="See them with `foliot secrets list`.")


def _rotated(client: Client, *, new_key: bool, accept_loss: bool) -> RotatedOut:
    """Call after call, as long as they find some to seal anew."""
    done = client.secrets.rotate(new_key=new_key, accept_loss=accept_loss)
    rotated = done.rotated
    with progress_bar("rotate", rotated + done.left) as advance:
        advance(rotated)
        while done.left and done.rotated:
            done = client.secrets.rotate()
            advance(done.rotated)
            rotated += done.rotated
    return done.model_copy(update={"rotated": rotated})


def _agents(client: Client, called: list[str]) -> list[UUID]:
    return [find_member(client, each).id for each in called]


def _typed(name: str) -> str:
    value: str = typer.prompt(f"Value of {name}", hide_input=True, confirmation_prompt=True, err=True)
    return value


def _piped() -> str:
    value = read_text("-", "the value").removesuffix("\n").removesuffix("\r")
    if not value:
        raise Invalid(
            "No value came.",
            hint="Type it at the prompt of a terminal, or send it: echo -n … | foliot secrets set NAME.",
        )
    return value
