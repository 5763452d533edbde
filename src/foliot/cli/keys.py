"""`foliot keys` and `foliot whoami`. With access to the database, `keys create --admin` replaces a lost key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.lookup import pick_one
from foliot.cli.members import find_member
from foliot.cli.output import pluralize, print_err, print_out
from foliot.cli.session import FIRST_50, DryRun, Paging, Session, Yes, api_command, confirm
from foliot.cli.settings import Config, DataDir, PgBindir, load_settings
from foliot.cli.tables import (
    BOLD,
    DIM,
    GREEN,
    RED,
    YELLOW,
    Block,
    Column,
    StyledLine,
    Table,
    dry_run_page,
    facts,
    line,
    stack,
    styled,
)
from foliot.cli.times import local_time_relative, local_zone, parse_time, relative
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.dry_run import KeyDryRunOut
    from foliot.wire.identity import KeyOut, MeOut, Scope

SHOWN_ONCE = "This key is shown only once; the server stores only its hash. Keep it safe:"
app = typer.Typer(help="API keys.", no_args_is_help=True)


class ScopeChoice(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"
    SYSTEM = "system"
    WORKER = "worker"
    AGENDA = "agenda"


@api_command
def whoami(session: Session) -> None:
    """Show the server, who you are there, and what your key allows."""
    me = session.client.me()
    session.show(me, lambda: me_page(me, session.client.url, session.now))


@app.command("list")
@api_command
def list_keys(
    session: Session,
    revoked: Annotated[bool, typer.Option("--revoked", help="Only revoked keys.")] = False,
    paging: Paging = FIRST_50,
) -> None:
    """List your own keys; as an administrator, all keys of the workspace."""
    found = paging.fetch(session.client.keys.list, revoked=revoked)
    session.show_list(found, lambda: key_table(found.items, session.now))


@app.command()
@api_command
def create(
    session: Session,
    name: Annotated[str, typer.Option(help="Name to show in lists of keys.")] = "made on the command line",
    scope: Annotated[
        list[ScopeChoice] | None,
        typer.Option(help="Limit the key to this scope; repeatable. Default: all that you may do."),
    ] = None,
    member: Annotated[
        str | None,
        typer.Option(help="Member who owns the key, by name or id. Default: you.", metavar="WHO"),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="90d, 2027-01-01. Default: never.", metavar="TIME")
    ] = None,
    max_jobs: Annotated[
        int | None, typer.Option(min=0, help="Of an agent's key: jobs that it may own.", metavar="N")
    ] = None,
    min_interval: Annotated[
        int | None,
        typer.Option(min=1, help="Of an agent's key: seconds between two planned times.", metavar="SECONDS"),
    ] = None,
    admin: Annotated[
        bool,
        typer.Option(
            "--admin", help="Create a system administrator's key directly in the database, without a key."
        ),
    ] = False,
    dry_run: DryRun = False,
    config: Config = None,
    data_dir: DataDir = None,
    pg_bindir: PgBindir = None,
) -> None:
    """Create a key and print it once, alone on a line. --admin needs the data directory or FOLIOT_DATABASE_URL."""
    if admin:
        if dry_run:
            raise Invalid("--admin has no dry run.", hint="Remove --dry-run or --admin.")
        if scope or member or expires or max_jobs is not None or min_interval is not None:
            raise Invalid(
                "--admin creates a key with all permissions that never expires.",
                hint="Remove the other options.",
            )
        from foliot.wiring import admin_tasks

        settings = load_settings(config=config, data_dir=data_dir, pg_bindir=pg_bindir)
        secret = admin_tasks.create_admin_key(settings, name)
        print_err(SHOWN_ONCE)
        print_out(secret)
        return
    principal = None if member is None else find_member(session.client, member).id
    scopes: list[Scope] | None = None if scope is None else [each.value for each in scope]
    ends = None if expires is None else parse_time(expires, session.now, local_zone(), flag="--expires")
    bounds = {"max_jobs": max_jobs, "min_interval": min_interval}
    if dry_run:
        verbs = session.client.keys.dry_run
        tried = verbs.create(name, principal=principal, scopes=scopes, expires_at=ends, **bounds)
        session.show(tried, lambda: _dry_run_page(tried, "Would create"))
        return
    made = session.client.keys.create(name, principal=principal, scopes=scopes, expires_at=ends, **bounds)
    session.note(SHOWN_ONCE)
    session.show(made, lambda: styled(made.secret))


@app.command()
@api_command
def revoke(
    session: Session,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key id, prefix as lists show it, or name.")],
    made_too: Annotated[
        bool, typer.Option("--made-too", help="Also revoke every key made with it, because it has leaked.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Revoke a key, everywhere within five seconds. Keys made with it stay valid, unless --made-too."""
    found = _find_key(session.client, key, is_revoked=None if made_too else False)
    if dry_run:
        tried = session.client.keys.dry_run.revoke(found.id, made_too=made_too)
        session.show(tried, lambda: _dry_run_page(tried, "Would revoke"))
        return
    too = " and every key made with it" if made_too else ""
    confirm(f'Revoke "{found.name}" (fol_{found.prefix}_…) of {found.principal.name}{too}?', yes=yes)
    ended = session.client.keys.revoke(found.id, made_too=made_too)
    with_it = f", and {pluralize(ended.made_revoked, 'key')} made with it" if ended.made_revoked else ""
    session.show(ended, lambda: styled(f"Revoked {ended.name} (fol_{ended.prefix}_…){with_it}."))
    if ended.made_valid:
        session.note(
            f"{pluralize(ended.made_valid, 'key')} made with it {'is' if ended.made_valid == 1 else 'are'}"
            f" still valid. If the key has leaked: foliot keys revoke {ended.id} --made-too"
        )


def me_page(me: MeOut, url: str, now: datetime) -> Block:
    role = "system administrator" if me.is_system else me.role
    max_jobs = "any number" if me.limits.jobs is None else f"{me.limits.jobs:,}"
    expires = local_time_relative(me.key.expires_at, local_zone(), now) if me.key.expires_at else "never"
    return stack(
        line((me.principal.name, BOLD), f", {role} at {url}"),
        facts(
            (
                ("kind", me.principal.kind),
                ("sees", "only its own jobs" if me.sees_only_own_jobs else None),
                ("workspace", f"{me.workspace.slug} ({me.workspace.name}), {me.workspace.default_timezone}"),
                ("key", f"fol_{me.key.prefix}_…"),
                ("scopes", ", ".join(me.key.scopes) or "all that its owner may do"),
                ("expires", expires),
                ("jobs", f"{me.jobs or 0:,} of {max_jobs}, each at most every {me.limits.min_interval} s"),
            )
        ),
    )


def key_table(keys: Sequence[KeyOut], now: datetime) -> Table[KeyOut]:
    columns: list[Column[KeyOut]] = [
        Column("KEY", lambda each: f"fol_{each.prefix}_…"),
        Column("NAME", lambda each: each.name, wrap=True),
        Column("OWNER", lambda each: f"{each.principal.name} ({each.principal.kind})", wrap=True),
        Column("MAY", lambda each: ", ".join(each.scopes) or each.role or "-"),
        Column("AT MOST", _bounds, drop=2),
        Column("STATE", lambda each: _state(each, now)),
        Column(
            "USED",
            lambda each: relative(each.last_used_at - now) if each.last_used_at else "never",
            DIM,
            drop=1,
        ),
    ]
    return Table(columns, keys, empty="No keys.")


def _bounds(key: KeyOut) -> str:
    jobs = "" if key.max_jobs is None else pluralize(key.max_jobs, "job")
    pace = "" if key.min_interval is None else f"every {key.min_interval} s"
    return ", ".join(filter(None, (jobs, pace)))


def _state(key: KeyOut, now: datetime) -> StyledLine:
    if key.revoked_at is not None:
        return styled(f"revoked {relative(key.revoked_at - now)}", RED)
    if key.expires_at is None:
        return styled("valid", GREEN)
    if key.expires_at <= now:
        return styled(f"expired {relative(key.expires_at - now)}", RED)
    return styled(f"expires {relative(key.expires_at - now)}", YELLOW)


def _dry_run_page(tried: KeyDryRunOut, verb: str) -> Block:
    key = tried.key
    may = ", ".join(key.scopes) or key.role or "worker"
    revoked = f"{pluralize(tried.made_revoked, 'key')} made with it would be revoked too."
    valid = f"{pluralize(tried.made_valid, 'key')} made with it would stay valid; --made-too revokes them."
    return dry_run_page(
        f"{verb} {key.name} for {key.principal.name}: {may}",
        revoked if tried.made_revoked else None,
        valid if tried.made_valid else None,
    )


def _find_key(client: Client, ref: str, is_revoked: bool | None) -> KeyOut:
    """Find a key. A revoked one counts if `is_revoked` is None: keys made with it may still be valid."""
    prefix = ref.removeprefix("fol_").rstrip("_…")
    keys = list(client.keys.each(revoked=is_revoked))
    found = [each for each in keys if ref in {str(each.id), each.name} or each.prefix == prefix]
    known = (each.name for each in keys)
    return pick_one(found, ref, "key", lambda each: f"fol_{each.prefix}_…  {each.name}", known)
