"""`foliot members`: the people, agents and services of a workspace."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.session import DryRun, Session, Yes, api_command, confirm
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.identity import MemberOut

app = typer.Typer(help="Members: who works in this workspace, and what each may.", no_args_is_help=True)


class Kind(StrEnum):
    USER = "user"
    AGENT = "agent"
    SERVICE = "service"


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"


MemberRef = Annotated[
    str, typer.Argument(metavar="MEMBER", help="Its name, its id, or its email.", show_default=False)
]
Email = Annotated[str | None, typer.Option(help="Where it gets mail.", metavar="ADDRESS")]


@app.command("list")
@api_command
def list_members(
    session: Session,
    kind: Annotated[Kind | None, typer.Option(help="Only these.")] = None,
    removed: Annotated[bool, typer.Option("--removed", help="Those that are removed, instead.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    everything: All = False,
) -> None:
    """Members, newest first. An agent sees itself alone."""
    from foliot.cli.identity_rendering import member_list

    found, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.members.list(
            kind=None if kind is None else kind.value, active=not removed, limit=n, cursor=at
        ),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(found, lambda: member_list(found, session.now), next_cursor=next_cursor)
    if not found and not removed and kind is None:
        session.note('Add one: foliot members add "Ada" --role editor')


@app.command()
@api_command
def add(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.", show_default=False)],
    role: Annotated[Role, typer.Option(help="What it may.")],
    kind: Annotated[
        Kind, typer.Option(help="A person, an AI agent (which sees its own jobs only), or a program.")
    ] = Kind.USER,
    email: Email = None,
    dry_run: DryRun = False,
) -> None:
    """Add a member. It comes in with a key of its own, which `foliot keys create --member` makes."""
    from foliot.cli.dry_rendering import tried_member
    from foliot.cli.identity_rendering import member_line

    if dry_run:
        tried = session.client.members.dry_run.create(name, kind=kind.value, role=role.value, email=email)
        session.show(tried, lambda: tried_member(tried, "Would add"))
        return
    made = session.client.members.create(name, kind=kind.value, role=role.value, email=email)
    session.show(made, lambda: member_line(made, "Added"))
    session.note(f'Give it a key: foliot keys create --member "{made.name}" --name "its first key"')


@app.command()
@api_command
def change(
    session: Session,
    member: MemberRef,
    name: Annotated[str | None, typer.Option(help="Another name.", metavar="NAME")] = None,
    role: Annotated[Role | None, typer.Option(help="What it may from now on.")] = None,
    email: Email = None,
    active: Annotated[
        bool | None,
        typer.Option(
            "--active/--inactive", help="Bring a removed one back; or remove it.", show_default=False
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Change a member. Its keys follow within seconds."""
    from foliot.cli.dry_rendering import tried_member
    from foliot.cli.identity_rendering import member_line

    said = {"name": name, "role": role and role.value, "email": email, "active": active}
    fields: dict[str, Any] = {field: value for field, value in said.items() if value is not None}
    if not fields:
        raise Invalid("What shall change?", hint="Give --name, --role, --email, --active or --inactive.")
    found = find_member(session.client, member)
    if dry_run:
        tried = session.client.members.dry_run.change(found.id, **fields)
        session.show(tried, lambda: tried_member(tried, "Would change"))
        return
    after = session.client.members.change(found.id, **fields)
    session.show(after, lambda: member_line(after, "Changed"))


@app.command()
@api_command
def remove(session: Session, member: MemberRef, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Remove a member and revoke its keys. Its jobs stay, and the audit goes on naming it."""
    from foliot.cli.dry_rendering import tried_member
    from foliot.cli.tables import cell

    found = find_member(session.client, member)
    if dry_run:
        tried = session.client.members.dry_run.delete(found.id)
        session.show(tried, lambda: tried_member(tried, "Would remove"))
        return
    confirm(f'Remove {found.kind} "{found.name}" ({found.role}) and revoke its keys?', yes=yes)
    session.client.members.delete(found.id)
    session.show({"id": str(found.id), "removed": True}, lambda: cell(f"Removed {found.name}."))


def find_member(client: Client, called: str) -> MemberOut:
    """Those that are active come before those that are not."""
    there = [each for each in client.members.each() if called in {str(each.id), each.name, each.email}]
    found = [each for each in there if each.active] or there
    if len(found) == 1:
        return found[0]
    if found:
        lines = [f"{each.id}  {each.kind:<7}  {each.role:<8}  {each.name}" for each in found]
        raise Invalid(
            f'"{called}" could be any of {len(found)} members.',
            hint="\n  ".join(["Use the id of one of these:", *lines]),
        )
    raise NotFound(f'There is no member called "{called}".', hint="See them with `foliot members list`.")
