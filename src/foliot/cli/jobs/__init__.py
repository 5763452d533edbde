"""`foliot jobs`: its commands in the order that help lists them. What is drawn stands in rendering.py."""

from __future__ import annotations

import typer

from foliot.cli import why
from foliot.cli.jobs import actions, bulk, create, edit, planned, views

app = typer.Typer(
    help="Jobs: define them, look at them, operate them. JOB is an id, the beginning of one, or a name.",
    no_args_is_help=True,
)
app.command("list")(views.list_jobs)
app.command("show")(views.show)
app.command("create")(create.create)
app.command("edit")(edit.edit)
app.command("pause")(actions.pause)
app.command("resume")(actions.resume)
app.command("disable")(actions.disable)
app.command("run")(actions.run)
app.command("history")(views.history)
app.command("status")(views.status)
app.command("next")(views.next_times)
app.command("why")(why.why)
app.command("skip-next")(planned.skip_next)
app.command("backfill")(planned.backfill)
app.command("revisions")(edit.revisions)
app.command("revert")(edit.revert)
app.command("bulk")(bulk.bulk)
app.command("delete")(actions.delete)
