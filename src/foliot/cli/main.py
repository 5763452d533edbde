"""The `foliot` command: its sub-commands, and the only place that turns errors into messages and exit codes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from foliot import __version__
from foliot.cli import (
    agenda,
    apply,
    audit,
    calendars,
    db,
    defaults,
    events,
    freeze,
    hosts,
    jobs,
    keys,
    limits,
    members,
    preview,
    rooms,
    runs,
    secrets,
    serve,
    why,
    workers,
    workspaces,
)
from foliot.cli import settings as settings_command
from foliot.cli.output import MEANINGS, Exit, mute_stdout, print_out, report_api_error, report_error
from foliot.domain.errors import FoliotError
from foliot.settings import SettingsError

app = typer.Typer(
    name="foliot",
    help="Durable, multi-tenant job scheduling on PostgreSQL: one record for every planned time.",
    epilog="Exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + ".",
    no_args_is_help=True,
    rich_markup_mode=None,  # brackets and stars in help texts are not markup
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(requested: bool) -> None:
    if requested:
        print_out(f"foliot {__version__}")
        raise typer.Exit


@app.callback()
def foliot(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


app.command("serve")(serve.serve)
app.command("worker")(serve.worker)
app.command("host")(serve.host)
app.add_typer(jobs.app, name="jobs")
app.add_typer(runs.app, name="runs")
app.command("why")(why.why)
app.command("agenda")(agenda.agenda)
app.add_typer(freeze.app, name="freeze")
app.add_typer(calendars.app, name="calendars")
app.add_typer(rooms.app, name="rooms")
app.add_typer(limits.app, name="limits")
app.add_typer(defaults.app, name="defaults")
app.add_typer(secrets.app, name="secrets")
app.command("workers")(workers.workers)
app.add_typer(hosts.app, name="hosts")
app.command("queues")(workers.queues)
app.command("job-types")(workers.job_types)
app.command("events")(events.events)
app.command("apply")(apply.apply)
app.command("export")(apply.export)
app.command("whoami")(keys.whoami)
app.add_typer(members.app, name="members")
app.add_typer(workspaces.app, name="workspaces")
app.add_typer(audit.app, name="audit")
app.command("preview")(preview.preview)
app.command("migrate")(serve.migrate)
app.command("settings")(settings_command.settings)
app.add_typer(db.app, name="db")
app.add_typer(keys.app, name="keys")


def main() -> None:
    try:
        app()  # on Ctrl-C it exits with 130
    except (FoliotError, SettingsError) as error:
        sys.exit(report_error(error))
    except BrokenPipeError:
        mute_stdout()  # the reader (`| head`) closed the pipe
        sys.exit(Exit.FAILURE)
    except Exception as error:
        from foliot.sdk import FoliotApiError  # slow to import: only after an error

        if not isinstance(error, FoliotApiError):
            raise
        sys.exit(report_api_error(error))
