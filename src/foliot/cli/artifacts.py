"""`foliot runs artifacts list|get`: the files that a run kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from foliot.cli.lookup import RunRef, find_run
from foliot.cli.output import print_err
from foliot.cli.session import Session, api_command
from foliot.domain.errors import Conflict, Invalid

app = typer.Typer(help="Files that a run kept.", no_args_is_help=True)


@app.command("list")
@api_command
def list_artifacts(session: Session, run: RunRef) -> None:
    """The files that it kept, also while it runs."""
    from foliot.cli.run_rendering import artifact_list

    found = session.client.runs.artifacts(find_run(session.client, run).id).items
    session.show_list(found, lambda: artifact_list(found, session.now))


@app.command()
@api_command
def get(
    session: Session,
    run: RunRef,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As the list names it.", show_default=False)],
    to: Annotated[
        str | None,
        typer.Option(
            "--to", help="File to write; - is standard output. Default: its name, here.", metavar="FILE"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Even over a file that is there.")] = False,
) -> None:
    """Fetch one of them."""
    content = session.client.runs.artifact(find_run(session.client, run).id, name)
    if to == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    target = Path(to or Path(name).name)  # what a run calls its file may not lead elsewhere
    try:
        with target.open("wb" if force else "xb") as file:
            file.write(content)
    except FileExistsError:
        raise Conflict(
            f"{target} is there already.", hint="Name another with --to, or add --force."
        ) from None
    except OSError as error:
        raise Invalid(f"{target} cannot be written: {error.strerror}.") from error
    print_err(f"Wrote {target}: {len(content):,} bytes.")
