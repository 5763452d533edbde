"""`foliot members`: the people, agents and services of a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from foliot.cli.lookup import pick_one
from foliot.cli.output import pluralize
from foliot.cli.session import FIRST_50, DryRun, Paging, Session, Yes, api_command, confirm
from foliot.cli.tables import BOLD, DIM, Block, Column, StyledLine, Table, dry_run_page, line, stack, styled
from foliot.cli.times import local_time_relative, local_zone, parse_time, relative
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.dry_run import MemberDryRunOut
    from foliot.wire.identity import MemberOut

app = typer.Typer(help="Members of the workspace and their roles.", no_args_is_help=True)


class MemberKindChoice(StrEnum):
    USER = "user"
    AGENT = "agent"
    SERVICE = "service"


class JobsChoice(StrEnum):
    ARCHIVE = "archive"
    HAND_OVER = "hand_over"
    KEEP = "keep"


class MemberRoleChoice(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"


MemberRef = Annotated[
    str, typer.Argument(metavar="MEMBER", help="Member name, id or email.", show_default=False)
]
Email = Annotated[str | None, typer.Option(help="Email address.", metavar="ADDRESS")]


@app.command("list")
@api_command
def list_members(
    session: Session,
    kind: Annotated[MemberKindChoice | None, typer.Option(help="Only this kind.")] = None,
    removed: Annotated[bool, typer.Option("--removed", help="Only removed members.")] = False,
    paging: Paging = FIRST_50,
) -> None:
    """List members, newest first. An agent sees only itself."""
    found = paging.fetch(
        session.client.members.list, kind=None if kind is None else kind.value, active=not removed
    )
    session.show_list(found, lambda: member_table(found.items, session.now))
    if not found.items and not removed and kind is None:
        session.note('Add one with: foliot members add "Ada" --role editor')


@app.command()
@api_command
def add(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name.", show_default=False)],
    role: Annotated[MemberRoleChoice, typer.Option(help="Permissions.")],
    kind: Annotated[
        MemberKindChoice,
        typer.Option(help="A person, an AI agent (which sees only its own jobs), or a program."),
    ] = MemberKindChoice.USER,
    email: Email = None,
    dry_run: DryRun = False,
) -> None:
    """Add a member. Create a key for it with `foliot keys create --member`."""
    if dry_run:
        tried = session.client.members.dry_run.create(name, kind=kind.value, role=role.value, email=email)
        session.show(tried, lambda: _dry_run_page(tried, "Would add"))
        return
    made = session.client.members.create(name, kind=kind.value, role=role.value, email=email)
    session.show(made, lambda: member_line(made, "Added"))
    there = "" if session.workspace is None else f" --workspace {session.workspace}"
    session.note(
        f'Create a key for it: foliot keys create --member "{made.name}" --name "its first key"{there}'
    )


@app.command()
@api_command
def invite(
    session: Session,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name, id or email of a member, or a new name.", show_default=False
        ),
    ],
    role: Annotated[
        MemberRoleChoice | None, typer.Option(help="Permissions of a new member.", show_default=False)
    ] = None,
    email: Email = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the invite. Default: in a week.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Print a link that signs a person in once and gives them a key of their own. A new name is added as a member first."""
    members, known = session.client.members, _known(session.client, name)
    ends = None if until is None else parse_time(until, session.now, local_zone(), flag="--until")
    if known is None and role is None:
        raise Invalid(f"There is no member {name!r}.", hint="Give --role to add one with this name.")
    if known is None and dry_run:
        added = members.dry_run.create(
            name, kind="user", role=(role or MemberRoleChoice.VIEWER).value, email=email
        )
        session.show(added, lambda: _dry_run_page(added, "Would add and invite"))
        return
    if known is None:
        known = members.create(name, kind="user", role=(role or MemberRoleChoice.VIEWER).value, email=email)
    if dry_run:
        tried = members.dry_run.invite(known.id, expires_at=ends)
        session.show(tried, lambda: dry_run_page(f"Would invite {_describe(known)}", None))
        return
    made = members.invite(known.id, expires_at=ends)
    link = session.client.url.rstrip("/") + made.path
    session.show(
        made,
        lambda: stack(
            line(
                ("Invited", BOLD),
                f" {_describe(known)}, until {local_time_relative(made.expires_at, local_zone(), session.now)}",
            ),
            styled(link),
        ),
    )
    session.note("The link works once. Whoever opens it first joins, so send it to this person alone.")


@app.command("join")
@api_command
def accept_invite(session: Session, dry_run: DryRun = False) -> None:
    """Accept the invite in FOLIOT_API_KEY: print the lasting key that replaces it."""
    if dry_run:
        tried = session.client.members.dry_run.accept_invite()
        session.show(tried, lambda: dry_run_page("Would accept the invite", None))
        return
    made = session.client.members.accept_invite()
    session.show(made, lambda: styled(made.secret))
    session.note("This key is shown only once; the server stores only its hash. Keep it safe.")


@app.command()
@api_command
def change(
    session: Session,
    member: MemberRef,
    name: Annotated[str | None, typer.Option(help="New name.", metavar="NAME")] = None,
    role: Annotated[MemberRoleChoice | None, typer.Option(help="New permissions.")] = None,
    email: Email = None,
    active: Annotated[
        bool | None,
        typer.Option(
            "--active/--inactive", help="Restore a removed member, or remove it.", show_default=False
        ),
    ] = None,
    fires_per_day: Annotated[
        str | None,
        typer.Option(
            help="Runs that the schedules of its jobs may start in a day (UTC); none: no limit.", metavar="N"
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Change a member. Its keys follow within seconds."""
    given = {"name": name, "role": role and role.value, "email": email, "active": active}
    fields: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    if fires_per_day is not None:
        fields["fires_per_day"] = _whole_number(fires_per_day)
    if not fields:
        hint = "Use --name, --role, --email, --fires-per-day, --active or --inactive."
        raise Invalid("Nothing to change.", hint=hint)
    found = find_member(session.client, member)
    if dry_run:
        tried = session.client.members.dry_run.change(found.id, **fields)
        session.show(tried, lambda: _dry_run_page(tried, "Would change"))
        return
    after = session.client.members.change(found.id, **fields)
    session.show(after, lambda: member_line(after, "Changed"))


@app.command()
@api_command
def remove(
    session: Session,
    member: MemberRef,
    jobs: Annotated[
        JobsChoice | None,
        typer.Option(
            help="What happens to its jobs. An agent that has jobs needs a choice.", show_default=False
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Hand its jobs over to this member.", metavar="MEMBER")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Remove a member and revoke its keys; archive its jobs, keep them, or hand them over. The audit log still names it."""
    if to is not None and jobs is None:
        jobs = JobsChoice.HAND_OVER
    found = find_member(session.client, member)
    fate: Literal["archive", "hand_over", "keep"] | None = None if jobs is None else jobs.value
    if dry_run:
        tried = session.client.members.dry_run.delete(found.id, jobs=fate, to=to)
        session.show(tried, lambda: _dry_run_page(tried, "Would remove"))
        return
    confirm(f'Remove {found.kind} "{found.name}" ({found.role}) and revoke its keys?', yes=yes)
    session.client.members.delete(found.id, jobs=fate, to=to)
    session.show({"id": str(found.id), "removed": True}, lambda: styled(f"Removed {found.name}."))


def member_table(members: Sequence[MemberOut], now: datetime) -> Table[MemberOut]:
    columns: list[Column[MemberOut]] = [
        Column("NAME", lambda each: styled(each.name, "" if each.active else DIM), wrap=True),
        Column("KIND", lambda each: each.kind),
        Column("ROLE", lambda each: each.role if each.active else f"{each.role} (removed)"),
        Column("EMAIL", lambda each: styled(each.email or "-", "" if each.email else DIM), wrap=True),
        Column("ADDED", lambda each: relative(each.created_at - now), DIM, drop=2),
        Column("ID", lambda each: str(each.id), DIM, drop=1),
    ]
    return Table(columns, members, empty="No members.")


def member_line(member: MemberOut, verb: str) -> StyledLine:
    return line((verb, BOLD), f" {_describe(member)}", (f" ({member.id})", DIM))


def _whole_number(text: str) -> int | None:
    if text == "none":
        return None
    if not text.isascii() or not text.isdigit():
        raise Invalid(
            f'"{text}" is not a whole number.', hint="Write --fires-per-day 100, or none for no limit."
        )
    return int(text)


def find_member(client: Client, ref: str) -> MemberOut:
    """Find a member; active ones come before removed ones."""
    members = list(client.members.each())
    matches = [each for each in members if ref in {str(each.id), each.name, each.email}]
    found = [each for each in matches if each.active] or matches
    known = (name for each in members for name in (each.name, each.email))
    return pick_one(found, ref, "member", lambda each: f"{each.kind:<7}  {each.role:<8}  {each.name}", known)


def _known(client: Client, ref: str) -> MemberOut | None:
    """Return the active member with this name, id or address; None for a new name."""
    matches = [
        each for each in client.members.each(active=True) if ref in {str(each.id), each.name, each.email}
    ]
    return pick_one(matches, ref, "member", lambda each: f"{each.role:<8}  {each.name}") if matches else None


def _dry_run_page(tried: MemberDryRunOut, verb: str) -> Block:
    effects = [f"{pluralize(tried.revoked_keys, 'key')} would be revoked."] if tried.revoked_keys else []
    if tried.jobs:
        effects.append(f"{pluralize(tried.jobs, 'job')} would be archived or handed over.")
    return dry_run_page(f"{verb} {_describe(tried.member)}", " ".join(effects) or None)


def _describe(member: MemberOut) -> str:
    return f"{member.name}: {member.kind}, {member.role}{'' if member.active else ', removed'}"
