"""`foliot db`: dump and restore the database, and let jobs run again after a restore."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from foliot.cli.output import print_out
from foliot.cli.settings import Config, DataDir, PgBindir, load_settings

app = typer.Typer(help="Dump and restore the database.", no_args_is_help=True)


class MissedTimes(StrEnum):
    SKIP = "skip"
    CATCH_UP = "catch-up"


@app.command()
def dump(
    target: Annotated[
        Path,
        typer.Argument(
            help="File to write. An existing file is replaced when the dump is complete.", metavar="FILE"
        ),
    ],
    config: Config = None,
    data_dir: DataDir = None,
    pg_bindir: PgBindir = None,
) -> None:
    """Write the whole database to FILE, readable only by you."""
    from foliot.wiring import admin_tasks

    admin_tasks.dump(load_settings(config=config, data_dir=data_dir, pg_bindir=pg_bindir), target)
    print_out(f"Wrote {target} ({_size(target)}).")


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="File that `foliot db dump` wrote.", metavar="FILE")],
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete the present contents of the database.")
    ] = False,
    config: Config = None,
    data_dir: DataDir = None,
    pg_bindir: PgBindir = None,
) -> None:
    """Restore FILE. Jobs stay on hold until `foliot db release` decides about the times missed since."""
    from foliot.wiring import admin_tasks

    admin_tasks.restore(
        load_settings(config=config, data_dir=data_dir, pg_bindir=pg_bindir), source, replace=replace
    )
    print_out(f"Restored {source}. No job runs until you choose:")
    print_out("  foliot db release --missed skip       record the times missed since the dump as skipped")
    print_out("  foliot db release --missed catch-up   let each job catch up by its own misfire policy")


@app.command()
def release(
    missed: Annotated[MissedTimes, typer.Option(help="What to do with the times missed since the dump.")],
    config: Config = None,
    data_dir: DataDir = None,
    pg_bindir: PgBindir = None,
) -> None:
    """Let jobs run again after a restore."""
    from foliot.wiring import admin_tasks

    admin_tasks.release(
        load_settings(config=config, data_dir=data_dir, pg_bindir=pg_bindir),
        missed.value.replace("-", "_"),
    )
    effect = "are recorded as skipped" if missed is MissedTimes.SKIP else "follow each job's misfire policy"
    print_out(f"Released. Times missed since the dump {effect}.")


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1024:.0f} KiB" if size < 1024**2 else f"{size / 1024**2:.1f} MiB"
