"""`foliot runs artifacts`: the files that a run stored."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.lazy_group import FoliotGroup
from foliot.cli.lookup import RunRef, find_run
from foliot.cli.output import format_size, print_err
from foliot.cli.session import Session, api_command
from foliot.cli.tables import DIM, Column, Table
from foliot.cli.times import relative
from foliot.domain.errors import Conflict, Invalid

if TYPE_CHECKING:
    from foliot.wire.runs import ArtifactOut

app = typer.Typer(cls=FoliotGroup, help="Files that a run stored.", no_args_is_help=True)


@app.command("list")
@api_command
def list_artifacts(session: Session, run: RunRef) -> None:
    """List the files that a run stored, also while it runs."""
    found = session.client.runs.artifacts(find_run(session.client, run).id).items
    session.show_list(found, lambda: artifact_table(found, session.now))


@app.command()
@api_command
def get(
    session: Session,
    run: RunRef,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the file.", show_default=False)],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="File to write; - is standard output. Default: its name, in this folder.",
            metavar="FILE",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Download a file."""
    content = session.client.runs.artifact(find_run(session.client, run).id, name)
    if to == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    target = Path(to or Path(name).name)  # a run's file name must not lead to another folder
    try:
        with target.open("wb" if force else "xb") as file:
            file.write(content)
    except FileExistsError:
        raise Conflict(f"{target} exists already.", hint="Use --to with another name, or --force.") from None
    except OSError as error:
        raise Invalid(f"Cannot write {target}: {error.strerror}.") from error
    print_err(f"Wrote {target}: {len(content):,} bytes.")


def artifact_table(found: Sequence[ArtifactOut], now: datetime) -> Table[ArtifactOut]:
    columns: list[Column[ArtifactOut]] = [
        Column("NAME", lambda each: each.name, wrap=True),
        Column("SIZE", lambda each: format_size(each.size)),
        Column("TYPE", lambda each: each.media_type, DIM),
        Column("STORED", lambda each: relative(each.created_at - now), DIM),
    ]
    return Table(columns, found, empty="It stored no files.")
