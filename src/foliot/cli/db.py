"""`foliot db`: save the database to a file, put it back, and say what becomes of the time in between."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from foliot.cli import options
from foliot.cli.output import print_out

app = typer.Typer(help="Save the database, put it back, release it.", no_args_is_help=True)


class Missed(StrEnum):
    SKIP = "skip"
    CATCH_UP = "catch-up"


@app.command()
def dump(
    target: Annotated[
        Path,
        typer.Argument(
            help="File to write; an older one is replaced once the new one is whole.", metavar="FILE"
        ),
    ],
    config: options.Config = None,
    data_dir: options.DataDir = None,
    pg_bindir: options.PgBindir = None,
) -> None:
    """Write the whole database to FILE, readable by you alone."""
    from foliot.wiring import admin_tasks

    admin_tasks.dump(options.settings(config=config, data_dir=data_dir, pg_bindir=pg_bindir), target)
    print_out(f"Wrote {target} ({_size(target)}).")


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="A file that `foliot db dump` wrote.", metavar="FILE")],
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Throw away what the database holds now.")
    ] = False,
    config: options.Config = None,
    data_dir: options.DataDir = None,
    pg_bindir: options.PgBindir = None,
) -> None:
    """Put FILE back. Jobs then wait until `foliot db release` says what becomes of the times missed since."""
    from foliot.wiring import admin_tasks

    admin_tasks.restore(
        options.settings(config=config, data_dir=data_dir, pg_bindir=pg_bindir), source, replace=replace
    )
    print_out(f"Restored {source}. No job runs until you choose:")
    print_out(
        "  foliot db release --missed skip       the times missed since the dump are recorded as skipped"
    )
    print_out("  foliot db release --missed catch-up   each job catches up by its own misfire policy")


@app.command()
def release(
    missed: Annotated[Missed, typer.Option(help="What becomes of the times missed since the dump.")],
    config: options.Config = None,
    data_dir: options.DataDir = None,
    pg_bindir: options.PgBindir = None,
) -> None:
    """Let jobs run again after a restore."""
    from foliot.wiring import admin_tasks

    admin_tasks.release(
        options.settings(config=config, data_dir=data_dir, pg_bindir=pg_bindir),
        missed.value.replace("-", "_"),
    )
    what = "are recorded as skipped" if missed is Missed.SKIP else "catch up by each job's misfire policy"
    print_out(f"Released. Times missed since the dump {what}.")


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1024:.0f} KiB" if size < 1024**2 else f"{size / 1024**2:.1f} MiB"
