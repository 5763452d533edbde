"""Apps: found by name, and their jobs brought up to date by the worker that loads them, straight in the database."""

from __future__ import annotations

import logging
from importlib import import_module

from foliot.domain.access import Actor
from foliot.domain.errors import Invalid, Unavailable
from foliot.handlers.egress_policy import NO_REACH, Reach
from foliot.sdk import errors as sdk
from foliot.sdk.app.application import Foliot
from foliot.sdk.app.errors import Misdefined
from foliot.sdk.asynchronous.sync import sync
from foliot.sdk.sync.entries import app_entries
from foliot.sdk.sync.result import Synced
from foliot.services.identity import workspaces
from foliot.services.identity.installation import DEFAULT_WORKSPACE
from foliot.storage.tx import Database
from foliot.wiring.job_sync import ServiceBooks

log = logging.getLogger(__name__)


def load_app(address: str) -> Foliot:
    """`module:app`. Raises Invalid that says what is wrong with it."""
    module, _, name = address.partition(":")
    if not module or not name:
        raise Invalid(f"{address!r} names no app.", hint="Write it as module:app, such as shop.jobs:app.")
    try:
        found = getattr(import_module(module), name, None)
    except Misdefined as error:
        raise Invalid(f"{address} cannot be loaded: {error.message}", hint=error.hint) from error
    except Exception as error:
        raise Invalid(
            f"{address} cannot be loaded: {type(error).__name__}: {error}",
            hint="Modules are looked for in the current folder, PYTHONPATH and what is installed.",
        ) from error
    if not isinstance(found, Foliot):
        raise Invalid(
            f"{module} has no app called {name}.", hint=f'There, {name} = Foliot("…") must stand at the top.'
        )
    return found


async def bring_up_to_date(database: Database, app: Foliot, reach: Reach = NO_REACH) -> Synced:
    """Makes the stored jobs what the app says, and tells what came of it. Safe where several workers do so at once."""
    try:
        entries = app_entries(app)
    except Misdefined as error:
        raise Invalid(error.message, hint=error.hint) from error
    workspace = await workspaces.get(database, app.workspace or DEFAULT_WORKSPACE)
    try:
        own = {each.name: each.schema() for each in app.handlers}
        books = ServiceBooks(database, workspace, Actor(f"app:{app.name}"), reach, own)
        done = await sync(books, app.name, entries)
    except sdk.Unavailable as error:
        raise Unavailable(error.message, hint=error.hint) from error
    except sdk.FoliotApiError as error:
        raise Invalid(error.message, hint=error.hint) from error
    log.info(
        "app.synced",
        extra={
            "app": app.name,
            "workspace": workspace.slug,
            "made": done.created,
            "changed": done.changed,
            "same": len(done.same),
        },
    )
    if done.gone:
        log.warning("app.jobs_not_in_code", extra={"app": app.name, "jobs": done.gone})
    for name, why in done.refused.items():
        log.error("app.job_refused", extra={"app": app.name, "job": name, "reason": why})
    return done
