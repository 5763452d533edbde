"""`foliot hosts`: machines that fetch their own work, and the server instances on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.lookup import find_named, name_not_found
from foliot.cli.output import pluralize
from foliot.cli.session import FIRST_50, DryRun, Paging, Session, Yes, api_command, confirm, view_command
from foliot.cli.tables import DIM, GREEN, RED, YELLOW, Block, Column, Table, facts, styled
from foliot.cli.times import relative
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.fleet import HostOut, InstanceOut

MAX_JOBS = 10  # named on a page
_STYLES = {"online": GREEN, "stale": YELLOW, "offline": RED}
app = typer.Typer(help="Hosts: machines that fetch their own work.", no_args_is_help=True)
HostRef = Annotated[
    str,
    typer.Argument(metavar="HOST", help="Host name, id, or beginning of the id.", show_default=False),
]
InstanceRef = Annotated[
    str, typer.Argument(metavar="SERVER", help="Name of a server instance.", show_default=False)
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", help="NAME=VALUE; repeatable. Replaces all labels.", metavar="LABEL"),
]
Force = Annotated[bool, typer.Option("--force", help="Even if jobs are bound to it: their runs then wait.")]


@app.command("list")
@view_command
def list_hosts(session: Session, paging: Paging = FIRST_50) -> None:
    """List hosts by name: their status and their server instances."""
    found = paging.fetch(session.client.hosts.list)
    session.show_list(found, lambda: host_table(found.items, session.now))


@app.command()
@view_command
def show(session: Session, host: HostRef) -> None:
    """Show a host: its status, its server instances, its job types, and the jobs bound to it."""
    _show(session, session.client.hosts.get(find_host(session.client, host).id))


@app.command()
@api_command
def change(
    session: Session,
    host: HostRef,
    label: Labels = None,
    max_mutations: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of mutating runs at a time.", metavar="N")
    ] = None,
    max_reads: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of read-only runs at a time.", metavar="N")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Change the labels of a host, or how many runs it executes at a time."""
    given = {"max_mutations": max_mutations, "max_reads": max_reads}
    fields: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    if label is not None:
        fields["labels"] = dict(parse_label(each) for each in label)
    if not fields:
        raise Invalid("Nothing to change.", hint="Use --label, --max-mutations or --max-reads.")
    found = find_host(session.client, host)
    if dry_run:
        tried = session.client.hosts.dry_run.change(found.id, **fields)
        session.show_dry_run(tried, f"Would change {tried.name}")
        return
    _show(session, session.client.hosts.change(found.id, **fields))


@app.command()
@api_command
def delete(
    session: Session, host: HostRef, force: Force = False, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Delete a host and its server instances."""
    found = find_host(session.client, host)
    servers = pluralize(len(found.instances), "server instance")
    preview = styled(f"Would delete {found.name} and {servers}. Nothing was done.")
    question = f'Delete the host "{found.name}"?'
    session.delete(
        session.client.hosts, found, question, lambda _: preview, yes=yes, dry_run=dry_run, force=force
    )


@app.command("add-server")
@api_command
def add_server(
    session: Session, host: HostRef, server: InstanceRef, label: Labels = None, dry_run: DryRun = False
) -> None:
    """Add a server instance to a host. Jobs can be bound to it."""
    labels = None if label is None else dict(parse_label(each) for each in label)
    found = find_host(session.client, host)
    if dry_run:
        tried = session.client.hosts.dry_run.add_instance(found.id, server, labels=labels)
        session.show_dry_run(tried, f"Would add {tried.name} to {found.name}")
        return
    session.client.hosts.add_instance(found.id, server, labels=labels)
    _show(session, session.client.hosts.get(found.id))


@app.command("move-server")
@api_command
def move_server(
    session: Session,
    server: InstanceRef,
    to: Annotated[str, typer.Option(help="The host it is on now.", metavar="HOST")],
    dry_run: DryRun = False,
) -> None:
    """Move a server instance to another host, with the runs that wait for it."""
    found, target = find_instance(session.client, server), find_host(session.client, to)
    if dry_run:
        tried = session.client.hosts.dry_run.change_instance(found.host_id, found.id, to=target.id)
        session.show_dry_run(tried, f"Would move {tried.name} to {target.name}")
        return
    session.client.hosts.change_instance(found.host_id, found.id, to=target.id)
    _show(session, session.client.hosts.get(target.id))


@app.command("remove-server")
@api_command
def remove_server(
    session: Session, server: InstanceRef, force: Force = False, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Remove a server instance."""
    found = find_instance(session.client, server)
    if dry_run:
        tried = session.client.hosts.dry_run.remove_instance(found.host_id, found.id, force=force)
        session.show_dry_run(tried, f"Would remove {found.name} from {tried.name}")
        return
    confirm(f'Remove the server "{found.name}"?', yes=yes)
    session.client.hosts.remove_instance(found.host_id, found.id, force=force)
    session.show({"removed": str(found.id)}, lambda: styled(f"Removed {found.name}."))


def host_table(hosts: Sequence[HostOut], now: datetime) -> Table[HostOut]:
    columns: list[Column[HostOut]] = [
        Column("HOST", lambda each: each.name),
        Column("STATUS", lambda each: styled(each.status, _STYLES[each.status])),
        Column("LAST SEEN", lambda each: relative(each.last_seen_at - now), DIM),
        Column("RUNNING", lambda each: each.running),
        Column("SERVERS", lambda each: ", ".join(one.name for one in each.instances) or "-", wrap=True),
        Column("LABELS", lambda each: _format_labels(each.labels) or "-", DIM, wrap=True, drop=1),
    ]
    return Table(columns, hosts, empty="No hosts. Run `foliot host` on a machine to add it.")


def host_page(host: HostOut, now: datetime) -> Block:
    running = (
        f"{pluralize(host.running, 'run')} now; at most {host.max_mutations} mutating and"
        f" {host.max_reads} read-only at a time"
    )
    return facts(
        (
            ("host", host.name),
            ("id", str(host.id)),
            ("status", f"{host.status}, last seen {relative(host.last_seen_at - now)}"),
            ("servers", ", ".join(one.name for one in host.instances) or "none"),
            ("types", ", ".join(host.types) or "none while it is offline"),
            ("running", running),
            ("jobs", _bound_jobs(host)),
            ("labels", _format_labels(host.labels) or "none"),
            ("since", relative(host.created_at - now)),
            ("version", host.version or "unknown"),
        )
    )


def find_host(client: Client, ref: str) -> HostOut:
    return find_named(client.hosts.each(), ref, "host", lambda each: each.name)


def find_instance(client: Client, name: str) -> InstanceOut:
    known = [one for host in client.hosts.each() for one in host.instances]
    found = [one for one in known if one.name == name]
    if not found:
        raise name_not_found(name, "server", (one.name for one in known))
    return found[0]


def parse_label(text: str) -> tuple[str, str]:
    name, has_value, value = text.partition("=")
    if not has_value or not name.strip():
        raise Invalid(f'"{text}" is not a label.', hint="Use --label NAME=VALUE, such as --label region=eu.")
    return name.strip(), value.strip()


def _bound_jobs(host: HostOut) -> str | None:
    if host.jobs is None:
        return None
    names = ", ".join(each.name for each in host.jobs[:MAX_JOBS])
    return f"{names} and more" if len(host.jobs) > MAX_JOBS else names or "none bound to it"


def _format_labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in labels.items())


def _show(session: Session, host: HostOut) -> None:
    session.show(host, lambda: host_page(host, session.now))
