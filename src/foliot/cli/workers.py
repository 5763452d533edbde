"""`foliot workers`, `foliot leases`, `foliot queues` and `foliot job-types`: who executes runs, what is queued, which types exist."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.lookup import find_near_names
from foliot.cli.session import DryRun, Session, api_command, view_command
from foliot.cli.tables import BOLD, DIM, GREEN, RED, YELLOW, Block, Column, Table, line, stack, styled
from foliot.cli.times import relative
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from foliot.wire.fleet import JobTypeOut, LeaseOut, QueueOut, WorkerOut

_STYLES = {"alive": GREEN, "draining": YELLOW, "lost": RED}


@view_command
def workers(session: Session) -> None:
    """List workers: those alive first, then those lost within the last day."""
    found = session.client.workers().items
    session.show_list(found, lambda: worker_table(found, session.now))
    if not any(each.status == "alive" for each in found):
        session.note("No worker is alive, so no run starts. `foliot serve` starts one.")


@view_command
def leases(
    session: Session,
    overdue: Annotated[
        bool, typer.Option("--overdue", help="Only those past their deadline, or whose worker fell silent.")
    ] = False,
) -> None:
    """List running attempts: who holds each, since when, until when, and when it times out."""
    found = session.client.leases(overdue=overdue).items
    session.show_list(found, lambda: lease_table(found, session.now))


@view_command
def queues(session: Session) -> None:
    """List queues: how many runs each has, how long they wait, and how many workers serve it."""
    found = session.client.queues().items
    session.show_list(found, lambda: queue_page(found, session.now))


@api_command
def job_types(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="[TYPE]", help="Show the config of this type.", show_default=False)
    ] = None,
    disable: Annotated[
        bool, typer.Option("--disable", help="Disable TYPE in this workspace: its jobs start no run.")
    ] = False,
    enable: Annotated[bool, typer.Option("--enable", help="Enable TYPE again.")] = False,
    reason: Annotated[str, typer.Option(help="Why it is disabled.", metavar="TEXT")] = "",
    dry_run: DryRun = False,
) -> None:
    """List the types a job may have; with TYPE, show the fields of its --config."""
    if disable or enable:
        if name is None or (disable and enable):
            raise Invalid("Name a TYPE, and use --disable or --enable, not both.")
        changed = session.client.switch_job_type(name, enabled=enable, reason=reason, dry_run=dry_run)
        if dry_run:
            session.show_dry_run(changed, f"Would {'enable' if enable else 'disable'} {changed.name}")
            return
        session.show(changed, lambda: type_page(changed))
        return
    found = session.client.job_types().items
    if name is None:
        session.show_list(found, lambda: type_table(found))
        return
    chosen = next((each for each in found if each.name == name), None)
    if chosen is None:
        known = ", ".join(each.name for each in found)
        near = find_near_names(name, (each.name for each in found))
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        raise NotFound(f'Job type not found: "{name}".', hint=f"{hint}Known types: {known}.")
    session.show(chosen, lambda: type_page(chosen))


def worker_table(workers: Sequence[WorkerOut], now: datetime) -> Table[WorkerOut]:
    columns: list[Column[WorkerOut]] = [
        Column("WORKER", lambda each: each.name),
        Column("STATUS", lambda each: styled(each.status, _STYLES[each.status])),
        Column("RUNNING", lambda each: f"{each.running} of {each.capacity}"),
        Column(
            "QUEUES",
            lambda each: f"host {each.host}" if each.host else ", ".join(each.queues) or "-",
            wrap=True,
        ),
        Column("TYPES", lambda each: ", ".join(each.types), wrap=True),
        Column("SINCE", lambda each: relative(each.since - now), DIM, drop=2),
        Column("LAST SEEN", lambda each: relative(each.last_heartbeat_at - now), DIM),
        Column("VERSION", lambda each: each.version, DIM, drop=1),
    ]
    return Table(columns, workers, empty="No workers.")


def lease_table(leases: Sequence[LeaseOut], now: datetime) -> Table[LeaseOut]:
    columns: list[Column[LeaseOut]] = [
        Column("RUN", lambda each: str(each.run_id)),
        Column("JOB", lambda each: each.job, wrap=True),
        Column("ATTEMPT", lambda each: each.attempt, drop=1),
        Column("WORKER", lambda each: each.worker_name or str(each.worker)),
        Column("SINCE", lambda each: relative(each.since - now), DIM),
        Column(
            "LEASED",
            lambda each: relative(each.expires_at - now) if each.expires_at else styled("worker gone", RED),
        ),
        Column(
            "TIMES OUT", lambda each: styled(relative(each.deadline_at - now), RED if each.overdue else "")
        ),
    ]
    return Table(columns, leases, empty="Nothing is running.")


def queue_page(queues: Sequence[QueueOut], now: datetime) -> Block:
    columns: list[Column[QueueOut]] = [
        Column("QUEUE", lambda each: each.name),
        Column("READY", lambda each: each.ready),
        Column("WAITING", lambda each: each.waiting),
        Column("RUNNING", lambda each: each.running),
        Column("OLDEST", lambda each: relative(each.oldest_ready_at - now) if each.oldest_ready_at else "-"),
        Column("WORKERS", lambda each: styled(each.workers, RED if each.workers == 0 and each.ready else "")),
    ]
    warnings = [styled(f"{each.name}: {warning}", YELLOW) for each in queues for warning in each.warnings]
    return stack(Table(columns, queues, empty="No queues."), *warnings)


def type_table(types: Sequence[JobTypeOut]) -> Table[JobTypeOut]:
    columns: list[Column[JobTypeOut]] = [
        Column("TYPE", lambda each: each.name),
        Column("WORKERS", lambda each: styled(each.workers, "" if each.active else RED)),
        Column(
            "WHAT",
            lambda each: (each.description or "known to workers only") if each.enabled else "disabled",
            wrap=True,
        ),
    ]
    return Table(columns, types, empty="No job types.")


def type_page(found: JobTypeOut) -> Block:
    """Show the config fields of a type, from its JSON schema."""
    schema = found.config_schema
    fields: dict[str, dict[str, Any]] = {} if schema is None else schema.get("properties", {})
    required = set() if schema is None else set(schema.get("required", ()))
    heading = line((found.name, BOLD), f": {found.description or 'no description'}")
    if not found.enabled:
        why = f": {found.disabled_reason}" if found.disabled_reason else "."
        heading = line(heading, (f" Disabled in this workspace{why}", RED))
    if not fields:
        return stack(
            heading, styled("Its config is not described." if schema is None else "It takes no config.")
        )
    columns: list[Column[tuple[str, dict[str, Any]]]] = [
        Column("CONFIG", lambda row: row[0]),
        Column(
            "DEFAULT",
            lambda row: styled("required") if row[0] in required else styled(_default(row[1]), DIM),
        ),
        Column("TAKES", lambda row: _accepted_types(row[1]), wrap=True),
        Column("WHAT", lambda row: str(row[1].get("description", "")), wrap=True),
    ]
    return stack(heading, Table(columns, list(fields.items())))


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    return "-" if default is None else str(default)


def _accepted_types(field: dict[str, Any]) -> str:
    """Return the enum or the types of a JSON schema field: `string or integer`."""
    if "enum" in field:
        return " | ".join(str(each) for each in field["enum"])
    options = field.get("anyOf") or field.get("oneOf") or [field]
    types = [str(each.get("type", "value")) for each in options if each.get("type") != "null"]
    return " or ".join(dict.fromkeys(types))
