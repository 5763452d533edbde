"""`foliot jobs`: its commands in the order that help lists them. What is drawn stands in rendering.py."""

from __future__ import annotations

import typer

from foliot.cli import why
from foliot.cli.jobs import bulk, creating, editing, looking, operating, planned

app = typer.Typer(
    help="Jobs: define them, look at them, operate them. JOB is an id, the beginning of one, or a name.",
    no_args_is_help=True,
)
app.command("list")(looking.list_jobs)
app.command("show")(looking.show)
app.command("create")(creating.create)
app.command("edit")(editing.edit)
app.command("pause")(operating.pause)
app.command("resume")(operating.resume)
app.command("disable")(operating.disable)
app.command("run")(operating.run)
app.command("history")(looking.history)
app.command("status")(looking.status)
app.command("next")(looking.next_times)
app.command("why")(why.why)
app.command("skip-next")(planned.skip_next)
app.command("backfill")(planned.backfill)
app.command("revisions")(editing.revisions)
app.command("revert")(editing.revert)
app.command("bulk")(bulk.bulk)
app.command("delete")(operating.delete)
