"""Every operation that changes something is offered by the command line and the console too, or a reason says why not.

That the Python client has every operation is tested in tests/sdk/test_operations.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import click
import typer.main

from docs.api_reference import description, operations
from foliot.cli.main import app
from foliot.sdk import Client
from foliot.web.console.pages import ROUTES


@dataclass(frozen=True, slots=True)
class Not:
    """Not offered there, for this reason."""

    reason: str


BY_THE_WORK = Not("for the programs that did the work")
PROGRAMS = Not("for programs that send many writes at once; people use the bulk actions")
SAME_AS_REVOKE = Not("the same as revoke")
PREVIEW = Not("shown before the action itself")
EDITOR = Not("the editor changes the fields that a person changed, by PATCH")
# Operation: the command, the address of the form in the console.
TABLE: dict[str, tuple[str | Not, str | Not]] = {
    "POST /jobs": ("jobs create", "/jobs/save"),
    "PUT /jobs/{job_id}": ("apply", EDITOR),
    "PATCH /jobs/{job_id}": ("jobs edit", "/jobs/{job_id}/save"),
    "DELETE /jobs/{job_id}": ("jobs delete", "/jobs/{job_id}/delete"),
    "POST /jobs/{job_id}/revert": ("jobs revert", "/jobs/{job_id}/revert"),
    "POST /jobs/{job_id}/run": ("jobs run", "/jobs/{job_id}/run"),
    "POST /jobs/{job_id}/pause": ("jobs pause", "/jobs/{job_id}/pause"),
    "POST /jobs/{job_id}/disable": ("jobs disable", "/jobs/{job_id}/disable"),
    "POST /jobs/{job_id}/resume": ("jobs resume", "/jobs/{job_id}/resume"),
    "POST /jobs/{job_id}/restore": ("jobs restore", "/jobs/{job_id}/restore"),
    "POST /jobs/{job_id}/skip-next": ("jobs skip-next", "/jobs/{job_id}/skip-next"),
    "DELETE /jobs/{job_id}/skip-next": ("jobs skip-next", "/jobs/{job_id}/undo-skip"),
    "POST /jobs/{job_id}/backfill": ("jobs backfill", "/jobs/{job_id}/backfill"),
    "POST /jobs/bulk": ("jobs bulk", "/jobs/bulk"),
    "POST /jobs/batch-delete": ("jobs bulk", "/jobs/bulk"),
    "POST /batch": (PROGRAMS, PROGRAMS),
    "POST /imports": ("import", "/import"),
    "POST /runs/{run_id}/cancel": ("runs cancel", "/runs/{run_id}/cancel"),
    "POST /runs/{run_id}/retry": ("runs retry", "/runs/{run_id}/retry"),
    "POST /runs/bulk": ("runs bulk", "/runs/bulk"),
    "POST /preview": ("preview", Not("changes nothing; the editor and /start/schedule show it")),
    "POST /calendars": ("calendars create", "/calendars/new"),
    "PUT /calendars/{calendar_id}": ("calendars replace", "/calendars/{calendar_id}/edit"),
    "PATCH /calendars/{calendar_id}": ("calendars replace", "/calendars/{calendar_id}/edit"),
    "DELETE /calendars/{calendar_id}": ("calendars delete", "/calendars/{calendar_id}/delete"),
    "POST /calendars/ics": ("calendars create", "/calendars/new"),
    "POST /freezes": ("freeze on", "/freezes/create"),
    "POST /freezes/preview": ("freeze on", PREVIEW),
    "DELETE /freezes/{freeze_id}": (Not("the same as lift"), Not("the same as lift")),
    "POST /freezes/{freeze_id}/lift": ("freeze off", "/freezes/{freeze_id}/lift"),
    "PUT /job-types/{job_type}": ("job-types", "/settings/types/{job_type}"),
    "PATCH /hosts/{host_id}": ("hosts change", "/settings/hosts/{host_id}"),
    "DELETE /hosts/{host_id}": ("hosts delete", "/settings/hosts/{host_id}/delete"),
    "POST /hosts/{host_id}/instances": ("hosts add-server", "/settings/hosts/{host_id}/instances"),
    "PATCH /hosts/{host_id}/instances/{instance_id}": (
        "hosts move-server",
        "/settings/hosts/{host_id}/instances/{instance_id}",
    ),
    "DELETE /hosts/{host_id}/instances/{instance_id}": (
        "hosts remove-server",
        "/settings/hosts/{host_id}/instances/{instance_id}/remove",
    ),
    "POST /keys": ("keys create", "/settings/keys"),
    "PATCH /keys/{key_id}": (
        Not("a narrower key is made by `keys create`"),
        Not("a narrower key is made under Settings"),
    ),
    "DELETE /keys/{key_id}": (SAME_AS_REVOKE, SAME_AS_REVOKE),
    "POST /keys/{key_id}/revoke": ("keys revoke", "/settings/keys/{key_id}/revoke"),
    "PUT /budgets": ("budgets set", "/settings/budgets"),
    "POST /runs/{run_id}/usage": (BY_THE_WORK, BY_THE_WORK),
    "PUT /limits": ("limits set", "/settings/limits"),
    "DELETE /limits": ("limits remove", "/settings/limits/remove"),
    "POST /rooms": ("rooms create", "/rooms/create"),
    "PATCH /rooms/{room_id}": ("rooms webhook", "/rooms/{room_id}/webhook"),
    "DELETE /rooms/{room_id}": ("rooms delete", "/rooms/{room_id}/delete"),
    "POST /rooms/{room_id}/messages": ("rooms send", "/rooms/{room_id}/send"),
    "POST /rooms/{room_id}/redeliver": ("rooms redeliver", "/rooms/{room_id}/redeliver"),
    "POST /members": ("members add", "/settings/members/create"),
    "PATCH /members/{member_id}": ("members change", "/settings/members/{member_id}"),
    "DELETE /members/{member_id}": ("members remove", "/settings/members/{member_id}/remove"),
    "POST /members/{member_id}/invite": ("members invite", "/settings/members/{member_id}/invite"),
    "POST /invites/accept": ("members join", "/join"),
    "PATCH /defaults": ("defaults set", "/settings/defaults"),
    "POST /secrets": ("secrets set", "/settings/secrets"),
    "PUT /secrets/{secret_id}": ("secrets set", "/settings/secrets"),
    "PATCH /secrets/{secret_id}": ("secrets give", Not("agents and their secrets are given by name")),
    "DELETE /secrets/{secret_id}": ("secrets delete", "/settings/secrets/{secret_id}/delete"),
    "POST /master-key/rotate": ("secrets rotate", Not("the new key lies in a file of the server")),
    "POST /channels": ("channels create", "/settings/channels/new"),
    "PUT /channels/{channel_id}": ("channels replace", "/settings/channels/{channel_id}"),
    "DELETE /channels/{channel_id}": ("channels delete", "/settings/channels/{channel_id}/delete"),
    "POST /channels/{channel_id}/enable": ("channels enable", "/settings/channels/{channel_id}/enable"),
    "POST /channels/{channel_id}/disable": ("channels disable", "/settings/channels/{channel_id}/disable"),
    "POST /channels/{channel_id}/test": ("notify test", "/settings/channels/{channel_id}/test"),
    "POST /notification-rules": ("notify rules create", "/settings/rules/new"),
    "PUT /notification-rules/{rule_id}": ("notify rules replace", "/settings/rules/{rule_id}"),
    "DELETE /notification-rules/{rule_id}": ("notify rules delete", "/settings/rules/{rule_id}/delete"),
    "POST /incidents/{incident_id}/acknowledge": ("incidents ack", "/incidents/{incident_id}/acknowledge"),
    "POST /incidents/{incident_id}/mute": ("incidents mute", "/incidents/{incident_id}/mute"),
    "POST /incidents/{incident_id}/unmute": ("incidents unmute", "/incidents/{incident_id}/unmute"),
    "POST /incidents/{incident_id}/snooze": ("incidents snooze", "/incidents/{incident_id}/snooze"),
    "POST /incidents/{incident_id}/close": ("incidents close", "/incidents/{incident_id}/close"),
    "PUT /incidents/{incident_id}/note": ("incidents note", "/incidents/{incident_id}/note"),
    "POST /deliveries/{delivery_id}/replay": ("notify replay", "/settings/deliveries/{delivery_id}/replay"),
    "POST /webhooks": ("webhooks create", "/settings/webhooks/create"),
    "PUT /webhooks/{webhook_id}": ("webhooks set", "/settings/webhooks/{webhook_id}"),
    "DELETE /webhooks/{webhook_id}": ("webhooks delete", "/settings/webhooks/{webhook_id}/delete"),
    "POST /webhooks/{webhook_id}/rotate": ("webhooks rotate", "/settings/webhooks/{webhook_id}/rotate"),
    "POST /workspaces": ("workspaces create", "/settings/workspaces/create"),
    "PATCH /workspaces/{workspace}": ("workspaces change", "/settings/workspaces/{slug}"),
    "DELETE /workspaces/{workspace}": ("workspaces archive", "/settings/workspaces/{slug}/archive"),
}
WORKERS = "/api/v1/worker/"  # the protocol of workers: programs of ours, no people


@cache
def mutating() -> set[str]:
    """Not at import: every process of a test run imports this, and the description takes seconds."""
    return {
        f"{method.upper()} {path.removeprefix('/api/v1')}"
        for method, path, _ in operations(description())
        if method.upper() != "GET" and not path.startswith(WORKERS)
    }


def offered() -> list[tuple[str | Not, str | Not]]:
    return [row for operation, row in TABLE.items() if operation in mutating()]


def test_the_table_names_every_operation_that_changes_something() -> None:
    assert mutating() - TABLE.keys() == set(), "say where the command line and the console offer it"


def test_every_command_of_the_table_exists() -> None:
    known = dict(leaf_commands(typer.main.get_command(app), ()))
    assert {command for command, _ in offered() if isinstance(command, str)} - known.keys() == set()


def test_every_command_offers_the_dry_run_that_its_operation_has() -> None:
    known = dict(leaf_commands(typer.main.get_command(app), ()))
    lacking = set()
    for method, path, operation in operations(description()):
        command, _ = TABLE.get(f"{method.upper()} {path.removeprefix('/api/v1')}", (None, None))
        tries = any(each["name"] == "dry_run" for each in operation.get("parameters", ()))
        if tries and isinstance(command, str):
            flags = {flag for each in known[command].params for flag in each.opts}
            lacking |= set() if "--dry-run" in flags else {command}
    assert lacking == set()


def test_every_form_of_the_table_exists() -> None:
    known = {route.path for route in ROUTES if "POST" in (route.methods or ())}
    assert {form for _, form in offered() if isinstance(form, str)} - known == set()


def test_the_commands_and_methods_that_pages_name_exist() -> None:
    known = dict(leaf_commands(typer.main.get_command(app), ()))
    client = Client("http://127.0.0.1:1", "fol_none")
    wrong = []
    for template in sorted((files("foliot.web.console") / "templates").iterdir(), key=lambda each: each.name):
        text = template.read_text()
        for found in re.finditer(r"\bclient\.([a-z_]+)(?:\.([a-z_]+))?\(", text):
            noun = getattr(client, found[1], None)
            if noun is None or (found[2] and not hasattr(noun, found[2])):
                wrong.append((template.name, found[0]))
        for found in re.finditer(r"\bfoliot ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)*)", text):
            words = found[1].split()
            name = next((name for n in (3, 2, 1) if (name := " ".join(words[:n])) in known), None)
            takes_more = name is not None and any(
                each.param_type_name == "argument" for each in known[name].params
            )
            if name is None or (len(words) > len(name.split()) and not takes_more):
                wrong.append((template.name, found[0]))
    assert wrong == []


def leaf_commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The words of each command below this one, and the command."""
    if hasattr(command, "list_commands"):
        context = click.Context(command)
        for name in command.list_commands(context):
            if (found := command.get_command(context, name)) is not None:
                yield from leaf_commands(found, (*words, name))
    else:
        yield " ".join(words), command
