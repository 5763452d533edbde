"""`foliot limits`: how many runs are under way at once, in the workspace and for each concurrency key."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.session import DryRun, Session, api_command

app = typer.Typer(help="Limits: how many runs are under way at once.", no_args_is_help=True)
Key = Annotated[
    str | None,
    typer.Option(help="A concurrency key of jobs. Default: the whole workspace.", metavar="KEY"),
]


@app.command("list")
@api_command
def list_limits(session: Session) -> None:
    """The limit of the workspace, where it has one, and those of concurrency keys."""
    from foliot.cli.limit_rendering import limit_list

    found = session.client.limits.list().items
    session.show_list(found, lambda: limit_list(found))


@app.command("set")
@api_command
def set_limit(
    session: Session,
    cap: Annotated[
        int, typer.Argument(min=1, metavar="N", help="The most runs at once.", show_default=False)
    ],
    key: Key = None,
    dry_run: DryRun = False,
) -> None:
    """Let at most so many run at once. What runs now runs on; what is too many waits its turn."""
    from foliot.cli.limit_rendering import limit_line

    verbs = session.client.limits.dry_run if dry_run else session.client.limits
    made = verbs.set(cap, key=key)
    session.show(made, lambda: limit_line(made, "Would be" if dry_run else "Now"))


@app.command()
@api_command
def remove(session: Session, key: Key = None, dry_run: DryRun = False) -> None:
    """Take a limit away. What waited for it goes on."""
    from foliot.cli.limit_rendering import limit_line, of
    from foliot.cli.tables import cell

    if dry_run:
        seen = session.client.limits.dry_run.remove(key=key)
        session.show(seen, lambda: limit_line(seen, "Would remove"))
        return
    session.client.limits.remove(key=key)
    session.show({"key": key, "removed": True}, lambda: cell(f"Removed the limit of {of(key)}."))
