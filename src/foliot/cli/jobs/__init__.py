"""`foliot jobs`: its commands, in the order that help lists them."""

from __future__ import annotations

import typer

from foliot.cli.lazy_group import lazy_group

COMMANDS = {
    "list": "jobs.views:list_jobs",
    "show": "jobs.views:show",
    "create": "jobs.edit:create",
    "edit": "jobs.edit:edit",
    "pause": "jobs.actions:pause",
    "resume": "jobs.actions:resume",
    "disable": "jobs.actions:disable",
    "run": "jobs.actions:run",
    "history": "jobs.views:history",
    "status": "jobs.overview:status",
    "next": "jobs.views:next_times",
    "why": "why:why",
    "skip-next": "jobs.planned_times:skip_next",
    "backfill": "jobs.planned_times:backfill",
    "revisions": "jobs.edit:revisions",
    "revert": "jobs.edit:revert",
    "bulk": "jobs.bulk:bulk",
    "delete": "jobs.actions:delete",
    "restore": "jobs.actions:restore",
}
app = typer.Typer(
    cls=lazy_group(COMMANDS),
    help="Jobs: create, inspect and control them. JOB is a name, an id, or the beginning of an id.",
    no_args_is_help=True,
)
