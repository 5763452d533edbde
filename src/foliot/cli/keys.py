"""`foliot keys`: keys made on the machine that has the database, for when the first one is lost."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli import options
from foliot.cli.output import say, tell
from foliot.domain.errors import Invalid

app = typer.Typer(help="Keys of this installation.", no_args_is_help=True)


@app.command()
def create(
    *,
    admin: Annotated[bool, typer.Option("--admin", help="A key of the system's administrator.")] = False,
    name: Annotated[str, typer.Option(help="What to call it in lists of keys.")] = "made on the command line",
    config: options.Config = None,
    data_dir: options.DataDir = None,
    pg_bindir: options.PgBindir = None,
) -> None:
    """Make a key and print it once, alone on one line. Needs the data directory or FOLIOT_DATABASE_URL."""
    if not admin:
        raise Invalid("This command makes administrator's keys only so far.", hint="Add --admin.")
    from foliot.wiring import errands

    key = errands.create_admin_key(
        options.settings(config=config, data_dir=data_dir, pg_bindir=pg_bindir), name
    )
    tell("This key is shown once and stored only as a hash. Keep it safe:")
    say(key)
