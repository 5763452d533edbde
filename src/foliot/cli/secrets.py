"""`foliot secrets`: values that jobs use by name. A value comes from a prompt or standard input, never from a flag."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.input_files import read_text
from foliot.cli.lookup import find_named
from foliot.cli.members import find_member
from foliot.cli.output import pluralize
from foliot.cli.progress import progress_bar
from foliot.cli.session import FIRST_50, DryRun, Paging, Session, Yes, api_command, confirm
from foliot.cli.tables import BOLD, DIM, RED, SHORT_ID, Block, Column, Table, facts, stack, styled
from foliot.cli.times import relative
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from uuid import UUID

    from foliot.sdk import Client
    from foliot.wire.dry_run import RotationDryRunOut, SecretDryRunOut
    from foliot.wire.secrets import MasterKeyOut, RotatedOut, SecretOut, SecretUser

app = typer.Typer(
    help='Secrets: values that jobs use by name, as {"secret": "name"} in a config.', no_args_is_help=True
)
SecretRef = Annotated[str, typer.Argument(metavar="SECRET", help="Secret name or id.", show_default=False)]


@app.command("list")
@api_command
def list_secrets(session: Session, paging: Paging = FIRST_50) -> None:
    """List secrets by name, without their values."""
    found = paging.fetch(session.client.secrets.list)
    session.show_list(found, lambda: secret_table(found.items, session.now))


@app.command()
@api_command
def show(session: Session, secret: SecretRef) -> None:
    """Show a secret: its version, and what uses it. The value is never shown."""
    found = find_secret(session.client, secret)
    users = session.client.secrets.jobs(found.id).items if session.is_table else []
    session.show(found, lambda: secret_page(found, users, session.now))


@app.command("set")
@api_command
def set_secret(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, and . _ -")],
    agent: Annotated[
        list[str] | None,
        typer.Option(help="Agent that may use it in its jobs; repeatable.", metavar="WHO"),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Create a secret or change its value, which is read from a hidden prompt or from standard input.

    One newline at the end is removed: `pass show crm | foliot secrets set crm-token`.
    """
    agents = None if agent is None else _agent_ids(session.client, agent)
    value = _prompt_value(name) if sys.stdin.isatty() else _read_value()
    if dry_run:
        existing = session.client.secrets.list(name=name).items
        verbs = session.client.secrets.dry_run
        tried = (
            verbs.replace(existing[0].id, value)
            if existing
            else verbs.create(name, value, agents=agents or ())
        )
        verb = "replace" if existing else "create"
        session.show(tried, lambda: styled(_dry_run_sentence(tried, f"Would {verb} {name}")))
        return
    stored = session.client.secrets.set(name, value, agents=agents)
    session.show(stored, lambda: secret_page(stored, (), session.now))


@app.command()
@api_command
def give(
    session: Session,
    secret: SecretRef,
    agents: Annotated[
        list[str] | None,
        typer.Argument(metavar="[AGENT]...", help="Only these agents; without any, no agent."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Set which agents may use a secret in their jobs."""
    found = find_secret(session.client, secret)
    if dry_run:
        tried = session.client.secrets.dry_run.give(found.id, _agent_ids(session.client, agents or []))
        session.show_dry_run(tried, f"Would give {found.name} to {pluralize(len(agents or []), 'agent')}")
        return
    changed = session.client.secrets.give(found.id, _agent_ids(session.client, agents or []))
    session.show(changed, lambda: secret_page(changed, (), session.now))


@app.command()
@api_command
def delete(
    session: Session,
    secret: SecretRef,
    force: Annotated[
        bool, typer.Option("--force", help="Even while jobs use it; their runs then fail.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete a secret. Refused while jobs use it, unless --force."""
    found = find_secret(session.client, secret)
    session.delete(
        session.client.secrets,
        found,
        f'Delete the secret "{found.name}"? Its value cannot be recovered.',
        lambda tried: styled(_dry_run_sentence(tried, f"Would delete {found.name}")),
        yes=yes,
        dry_run=dry_run,
        force=force,
    )


@app.command()
@api_command
def rotate(
    session: Session,
    new_key: Annotated[
        bool,
        typer.Option(
            "--new-key", help="First create a new key, in master.key of the server's data directory."
        ),
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="The installation's key is lost: continue with another.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Encrypt the secrets of all workspaces with the server's present master key. Safe to stop and repeat."""
    if dry_run:
        tried = session.client.secrets.dry_run.rotate(new_key=new_key, accept_loss=accept_loss)
        session.show(tried, lambda: styled(_rotation_preview(tried)))
        return
    if accept_loss:
        confirm("Secrets of the lost key must each be set again. Continue without it?", yes=yes)
    done = _rotate_all(session.client, new_key=new_key, accept_loss=accept_loss)
    session.show(done, lambda: styled(_rotation_result(done)))
    if done.left:
        raise typer.Exit(1)


@app.command("master-key")
@api_command
def master_key(session: Session) -> None:
    """Show the ids of the server's master keys, and how many secrets need a rotation."""
    found = session.client.secrets.master_key()
    session.show(found, lambda: master_key_page(found))


def secret_table(secrets: Sequence[SecretOut], now: datetime) -> Table[SecretOut]:
    columns: list[Column[SecretOut]] = [
        Column("NAME", lambda each: each.name, wrap=True),
        Column("VERSION", lambda each: each.version),
        Column("JOBS", lambda each: each.job_count),
        Column("OTHER USERS", lambda each: ", ".join(each.used_by), wrap=True),
        Column("AGENTS", lambda each: len(each.agents) or "", DIM, drop=1),
        Column(
            "CHANGED",
            lambda each: relative(each.updated_at - now) if each.readable else styled("unreadable", RED),
        ),
        Column("ID", lambda each: str(each.id)[:SHORT_ID], DIM, drop=2),
    ]
    return Table(columns, secrets, empty="No secrets.")


def secret_page(secret: SecretOut, users: Sequence[SecretUser], now: datetime) -> Block:
    names = ", ".join(each.name for each in users) + (" …" if secret.job_count > len(users) else "")
    unreadable = styled("The server does not have the master key that encrypted it. Set it again.", RED)
    return stack(
        styled(secret.name, BOLD),
        None if secret.readable else unreadable,
        facts(
            (
                ("id", str(secret.id)),
                ("version", f"{secret.version}, {relative(secret.updated_at - now)}"),
                ("jobs", f"{secret.job_count:,}: {names}" if users else f"{secret.job_count:,}"),
                ("used by", ", ".join(secret.used_by) or None),
                ("agents", ", ".join(map(str, secret.agents)) or "none"),
                ("in a config", f'{{"secret": "{secret.name}"}}'),
            )
        ),
    )


def master_key_page(key: MasterKeyOut) -> Block:
    older = ", ".join(each for each in key.known if each != key.present)
    wrong = styled("These are not the keys of this installation.", RED)
    return stack(
        None if key.is_right else wrong,
        facts(
            (
                ("present key", key.present or "none"),
                ("older keys", older or "none"),
                ("secrets", f"{key.secrets:,}"),
                ("to rotate", f"{key.under_other_keys:,}"),
                ("unreadable", f"{key.unreadable:,}"),
            )
        ),
    )


def find_secret(client: Client, ref: str) -> SecretOut:
    found = client.secrets.list(name=ref).items
    return found[0] if found else find_named(client.secrets.each(), ref, "secret", lambda each: each.name)


def _dry_run_sentence(tried: SecretDryRunOut, summary: str) -> str:
    version = f", version {tried.secret.version}" if tried.secret else ""
    uses = "uses" if tried.jobs == 1 else "use"
    jobs = f", which {pluralize(tried.jobs, 'job')} {uses}" if tried.jobs else ""
    return f"{summary}{version}{jobs}. Nothing was done."


def _rotation_preview(tried: RotationDryRunOut) -> str:
    return (
        f"Would encrypt {pluralize(tried.rotated, 'secret')} again; {tried.unreadable:,} unreadable."
        " Nothing was done."
    )


def _rotation_result(done: RotatedOut) -> str:
    text = f"Encrypted {pluralize(done.rotated, 'secret')} with the key {done.present}."
    if done.left:
        text += f" {pluralize(done.left, 'secret')} could not be decrypted with the key they name."
    if done.unreadable:
        text += f" {pluralize(done.unreadable, 'secret')} cannot be read with any known key."
    return text


def _rotate_all(client: Client, *, new_key: bool, accept_loss: bool) -> RotatedOut:
    """Call the server until a call rotates nothing."""
    done = client.secrets.rotate(new_key=new_key, accept_loss=accept_loss)
    rotated = done.rotated
    with progress_bar("rotate", rotated + done.left) as advance:
        advance(rotated)
        while done.left and done.rotated:
            done = client.secrets.rotate()
            advance(done.rotated)
            rotated += done.rotated
    return done.model_copy(update={"rotated": rotated})


def _agent_ids(client: Client, refs: Sequence[str]) -> list[UUID]:
    return [find_member(client, each).id for each in refs]


def _prompt_value(name: str) -> str:
    value: str = typer.prompt(f"Value of {name}", hide_input=True, confirmation_prompt=True, err=True)
    return value


def _read_value() -> str:
    value = read_text("-", "the value").removesuffix("\n").removesuffix("\r")
    if not value:
        raise Invalid(
            "Standard input is empty.",
            hint="Run it in a terminal to type the value, or pipe it: echo -n … | foliot secrets set NAME.",
        )
    return value
