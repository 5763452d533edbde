"""`foliot jobs`: its commands in the order that help lists them. What is drawn stands in rendering.py."""

from __future__ import annotations

import typer

from foliot.cli import why
from foliot.cli.jobs import creating, looking, operating

app = typer.Typer(
    help="Jobs: define them, look at them, operate them. JOB is an id, the beginning of one, or a name.",
    no_args_is_help=True,
)
app.command("list")(looking.list_jobs)
app.command("show")(looking.show)
app.command("create")(creating.create)
app.command("pause")(operating.pause)
app.command("resume")(operating.resume)
app.command("run")(operating.run)
app.command("history")(looking.history)
app.command("next")(looking.next_times)
app.command("why")(why.why)
