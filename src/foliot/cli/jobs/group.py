"""The group that the commands about jobs belong to."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="Jobs: define them, look at them, operate them. JOB is an id, the beginning of one, or a name.",
    no_args_is_help=True,
)
