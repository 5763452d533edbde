"""`foliot limits`: how many runs are under way at once, in the workspace and for each concurrency key."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.session import DryRun, Here, asking

app = typer.Typer(help="Limits: how many runs are under way at once.", no_args_is_help=True)
Key = Annotated[
    str | None,
    typer.Option(help="A concurrency key of jobs. Default: the whole workspace.", metavar="KEY"),
]


@app.command("list")
@asking
def list_limits(here: Here) -> None:
    """The limit of the workspace, where it has one, and those of concurrency keys."""
    from foliot.cli.limit_rendering import limit_list

    found = here.client.limits.list().items
    here.show_list(found, lambda: limit_list(found))


@app.command("set")
@asking
def set_limit(
    here: Here,
    cap: Annotated[
        int, typer.Argument(min=1, metavar="N", help="The most runs at once.", show_default=False)
    ],
    key: Key = None,
    dry_run: DryRun = False,
) -> None:
    """Let at most so many run at once. What runs now runs on; what is too many waits its turn."""
    from foliot.cli.limit_rendering import limit_line

    verbs = here.client.limits.dry_run if dry_run else here.client.limits
    made = verbs.set(cap, key=key)
    here.show(made, lambda: limit_line(made, "Would be" if dry_run else "Now"))


@app.command()
@asking
def remove(here: Here, key: Key = None, dry_run: DryRun = False) -> None:
    """Take a limit away. What waited for it goes on."""
    from foliot.cli.limit_rendering import limit_line, of
    from foliot.cli.tables import cell

    if dry_run:
        seen = here.client.limits.dry_run.remove(key=key)
        here.show(seen, lambda: limit_line(seen, "Would remove"))
        return
    here.client.limits.remove(key=key)
    here.show({"key": key, "removed": True}, lambda: cell(f"Removed the limit of {of(key)}."))
