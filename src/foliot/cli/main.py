"""The `foliot` command: its sub-commands, and the only place that turns errors into messages and exit codes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from foliot import __version__
from foliot.cli.lazy_group import lazy_group
from foliot.cli.output import MEANINGS, Exit, mute_stdout, print_out, report_api_error, report_error
from foliot.domain.errors import FoliotError
from foliot.settings import SettingsError

COMMANDS = {
    "serve": "serve:serve",
    "worker": "serve:worker",
    "host": "serve:host",
    "mcp": "mcp:mcp",
    "jobs": "jobs:app",
    "runs": "runs:app",
    "why": "why:why",
    "agenda": "agenda:agenda",
    "freeze": "freeze:app",
    "calendars": "calendars:app",
    "rooms": "rooms:app",
    "limits": "limits:app",
    "usage": "usage:usage",
    "budgets": "usage:budgets",
    "defaults": "defaults:app",
    "secrets": "secrets:app",
    "channels": "channels:app",
    "notify": "channels:notify",
    "incidents": "incidents:app",
    "webhooks": "webhooks:app",
    "workers": "workers:workers",
    "hosts": "hosts:app",
    "leases": "workers:leases",
    "queues": "workers:queues",
    "job-types": "workers:job_types",
    "events": "events:events",
    "apply": "apply:apply",
    "export": "apply:export",
    "import": "imports:import_jobs",
    "cutover": "imports:cutover",
    "whoami": "keys:whoami",
    "members": "members:app",
    "workspaces": "workspaces:app",
    "audit": "audit:app",
    "preview": "preview:preview",
    "migrate": "serve:migrate",
    "settings": "settings:settings",
    "profiles": "settings:profiles",
    "db": "db:app",
    "keys": "keys:app",
}
app = typer.Typer(
    name="foliot",
    cls=lazy_group(COMMANDS),
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
