"""`foliot hosts`: machines that fetch their own work, and the server instances on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.session import Session, Yes, api_command, confirm
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.hosts import HostOut, InstanceOut

app = typer.Typer(help="Hosts: machines that fetch their own work.", no_args_is_help=True)
Called = Annotated[
    str,
    typer.Argument(metavar="HOST", help="Its name, its id, or the beginning of its id.", show_default=False),
]
Instance = Annotated[str, typer.Argument(metavar="SERVER", help="A server instance.", show_default=False)]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label", help="NAME=VALUE; all of them, for these take the place of the old.", metavar="LABEL"
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Though jobs must run there: they wait.")]


@app.command("list")
@api_command
def list_hosts(session: Session, limit: Limit = 50, cursor: Cursor = None, everything: All = False) -> None:
    """Hosts, by name: whether they are there, and what is on them."""
    from foliot.cli.host_rendering import host_list

    found, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.hosts.list(limit=n, cursor=at),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(found, lambda: host_list(found, session.now), next_cursor=next_cursor)


@app.command()
@api_command
def show(session: Session, host: Called) -> None:
    """One host: whether it is there, what is on it, what it does, which jobs must run there."""
    _show(session, session.client.hosts.get(find_host(session.client, host).id))


@app.command()
@api_command
def change(
    session: Session,
    host: Called,
    label: Labels = None,
    max_mutations: Annotated[
        int | None, typer.Option(min=1, help="Runs that change something, at once.", metavar="N")
    ] = None,
    max_reads: Annotated[
        int | None, typer.Option(min=0, help="Runs of read-only jobs, at once.", metavar="N")
    ] = None,
) -> None:
    """Give it other labels, or let it take on more or less at once."""
    given = {"max_mutations": max_mutations, "max_reads": max_reads}
    fields: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    if label is not None:
        fields["labels"] = dict(parse_label(each) for each in label)
    if not fields:
        raise Invalid("Change what?", hint="Give --label, --max-mutations or --max-reads.")
    _show(session, session.client.hosts.change(find_host(session.client, host).id, **fields))


@app.command()
@api_command
def delete(session: Session, host: Called, force: Force = False, yes: Yes = False) -> None:
    """Delete a host that is gone, with its server instances."""
    from foliot.cli.tables import cell

    found = find_host(session.client, host)
    confirm(f'Delete the host "{found.name}"?', yes=yes)
    session.client.hosts.delete(found.id, force=force)
    session.show({"deleted": str(found.id)}, lambda: cell(f"Deleted {found.name}."))


@app.command("add-server")
@api_command
def add_server(session: Session, host: Called, server: Instance, label: Labels = None) -> None:
    """Add a server instance to a host, for jobs to be bound to."""
    labels = None if label is None else dict(parse_label(each) for each in label)
    found = find_host(session.client, host)
    session.client.hosts.add_instance(found.id, server, labels=labels)
    _show(session, session.client.hosts.get(found.id))


@app.command("move-server")
@api_command
def move_server(
    session: Session,
    server: Instance,
    to: Annotated[str, typer.Option(help="The host it is on now.", metavar="HOST")],
) -> None:
    """Move a server instance to another host. Runs that wait for it go along."""
    found, there = find_instance(session.client, server), find_host(session.client, to)
    session.client.hosts.change_instance(found.host_id, found.id, to=there.id)
    _show(session, session.client.hosts.get(there.id))


@app.command("remove-server")
@api_command
def remove_server(session: Session, server: Instance, force: Force = False, yes: Yes = False) -> None:
    """Remove a server instance."""
    from foliot.cli.tables import cell

    found = find_instance(session.client, server)
    confirm(f'Remove the server "{found.name}"?', yes=yes)
    session.client.hosts.remove_instance(found.host_id, found.id, force=force)
    session.show({"removed": str(found.id)}, lambda: cell(f"Removed {found.name}."))


def parse_label(text: str) -> tuple[str, str]:
    name, is_there, value = text.partition("=")
    if not is_there or not name.strip():
        raise Invalid(f'"{text}" is no label.', hint="Write --label NAME=VALUE, such as --label region=eu.")
    return name.strip(), value.strip()


def find_host(client: Client, called: str) -> HostOut:
    there = list(client.hosts.each())
    low = called.strip().lower()
    found = [each for each in there if each.name == called]
    if not found and len(low) >= 4:
        found = [each for each in there if str(each.id).startswith(low)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Invalid(f'"{called}" could be any of {len(found)} hosts.', hint="Use the id of one of them.")
    raise NotFound(f'There is no host called "{called}".', hint="See them all with `foliot hosts list`.")


def find_instance(client: Client, called: str) -> InstanceOut:
    found = [one for host in client.hosts.each() for one in host.instances if one.name == called]
    if not found:
        raise NotFound(f'There is no server called "{called}".', hint="`foliot hosts list` shows them.")
    return found[0]


def _show(session: Session, host: HostOut) -> None:
    from foliot.cli.host_rendering import host_page

    session.show(host, lambda: host_page(host, session.now))
