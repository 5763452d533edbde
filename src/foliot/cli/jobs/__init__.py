"""`foliot jobs`: its commands, in the order that help lists them."""

from __future__ import annotations

import typer

from foliot.cli import why
from foliot.cli.jobs import actions, bulk, edit, overview, planned_times, views

app = typer.Typer(
    help="Jobs: create, inspect and control them. JOB is a name, an id, or the beginning of an id.",
    no_args_is_help=True,
)
app.command("list")(views.list_jobs)
app.command("show")(views.show)
app.command("create")(edit.create)
app.command("edit")(edit.edit)
app.command("pause")(actions.pause)
app.command("resume")(actions.resume)
app.command("disable")(actions.disable)
app.command("run")(actions.run)
app.command("history")(views.history)
app.command("status")(overview.status)
app.command("next")(views.next_times)
app.command("why")(why.why)
app.command("skip-next")(planned_times.skip_next)
app.command("backfill")(planned_times.backfill)
app.command("revisions")(edit.revisions)
app.command("revert")(edit.revert)
app.command("bulk")(bulk.bulk)
app.command("delete")(actions.delete)
