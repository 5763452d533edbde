"""Load an app and bring its jobs up to date, straight through the services: a worker has a database and no key.

Why: docs/decisions/805-jobs-managed-by-code.md
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any
from uuid import UUID

from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError

from foliot.clock import SystemClock
from foliot.domain.access import Actor, Scope
from foliot.domain.definition import Definition
from foliot.domain.errors import Conflict, FoliotError, Invalid, Unavailable
from foliot.domain.ids import JobId
from foliot.handlers.dependencies import DEFAULT_EGRESS_POLICY, EgressPolicy
from foliot.sdk import errors as sdk
from foliot.sdk.app.application import Foliot
from foliot.sdk.app.options import AppDefinitionError
from foliot.sdk.asynchronous.sync import sync
from foliot.sdk.sync.entries import app_entries
from foliot.sdk.sync.plan import SyncResult
from foliot.services import Database
from foliot.services.identity import workspaces
from foliot.services.identity.installation import DEFAULT_WORKSPACE
from foliot.services.identity.workspaces import Workspace
from foliot.services.jobs import calendars, job_edits, job_search, jobs
from foliot.services.jobs.jobs import JobDraft
from foliot.web.mapping.definitions import DefinitionContext, definition_from, schedule_from
from foliot.web.mapping.handler_config import config_schema
from foliot.web.mapping.job_patch import enabled_in, replace_fields
from foliot.web.mapping.jobs import job_out, schedule_out
from foliot.wire.jobs import JobIn, JobOut
from foliot.wire.schedules import ScheduleIn
from foliot.wire.shape import FieldProblem, pointer

A_PAGE = 200
_SCHEDULE: TypeAdapter[ScheduleIn] = TypeAdapter(ScheduleIn)


@dataclass(frozen=True, slots=True)
class JobSync:
    database: Database
    workspace: Workspace
    by: Actor
    reach: EgressPolicy = DEFAULT_EGRESS_POLICY
    # Of the app's own types, newer than those that workers have described.
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    async def jobs(self) -> list[JobOut]:
        page = await job_search.jobs(self.database, Scope(self.workspace.id), limit=A_PAGE)
        found = list(page.items)
        while page.next_cursor is not None:
            page = await job_search.jobs(
                self.database, Scope(self.workspace.id), cursor=page.next_cursor, limit=A_PAGE
            )
            found += page.items
        return [job_out(each) for each in found]

    async def calendars(self) -> Mapping[UUID, str]:
        found: dict[UUID, str] = {}
        page = await calendars.page(self.database, self.workspace.id, limit=A_PAGE)
        found |= {each.id: each.calendar.name for each in page.items}
        while page.next_cursor is not None:
            page = await calendars.page(self.database, self.workspace.id, page.next_cursor, A_PAGE)
            found |= {each.id: each.calendar.name for each in page.items}
        return found

    async def resolve_schedule(self, schedule: Mapping[str, Any]) -> Mapping[str, Any]:
        read = _SCHEDULE.validate_python(dict(schedule))
        try:
            whole = schedule_from(read, SystemClock().now(), self.workspace.default_timezone)
        except FoliotError as error:
            raise _client_error(error) from error
        return schedule_out(whole).model_dump(mode="json")

    async def create(self, job: Mapping[str, Any]) -> JobOut:
        try:
            wanted = JobIn.model_validate(dict(job))
            scope = Scope(self.workspace.id, self.by)

            async def define(draft: JobDraft) -> Definition:
                ground = DefinitionContext(
                    SystemClock().now(),
                    self.workspace.default_timezone,
                    await draft.resolve_owner(scope, wanted.owner, None),
                    schema=await self._schema(draft, wanted.type),
                    reach=self.reach,
                    workspace=self.workspace.slug,
                    defaults=await draft.load_defaults(),
                )
                return definition_from(wanted, ground)

            made = await jobs.create(self.database, scope, define, enabled=wanted.enabled)
            return job_out(made.job)
        except ValidationError as error:
            raise _invalid_job(error.errors(include_url=False)) from error
        except FoliotError as error:
            raise _client_error(error) from error

    async def replace(self, job: JobOut, wanted: Mapping[str, Any], note: str) -> JobOut:

        async def define(draft: JobDraft) -> Definition:
            assert draft.before is not None
            was = draft.before.definition
            written = replace_fields(job_out(draft.before), wanted)
            ground = DefinitionContext(
                SystemClock().now(),
                self.workspace.default_timezone,
                await draft.resolve_owner(scope, written.job.owner, None),
                was,
                written.keeps_schedule,
                await self._schema(draft, written.job.type),
                self.reach,
                self.workspace.slug,
                await draft.load_defaults(),
            )
            return definition_from(written.job, ground)

        scope = Scope(self.workspace.id, self.by, expected_revision=job.revision)
        try:
            edited = await job_edits.edit(
                self.database,
                scope,
                JobId(job.id),
                define,
                note=note,
                enabled=enabled_in(wanted),
                force=True,
            )
            return job_out(edited.job)
        except RequestValidationError as error:
            raise _invalid_job(error.errors()) from error
        except FoliotError as error:
            raise _client_error(error) from error

    async def _schema(self, draft: JobDraft, kind: str) -> Mapping[str, Any] | None:
        return self.schemas.get(kind) or await config_schema(draft, kind)


def _client_error(error: FoliotError) -> sdk.FoliotApiError:
    """Translate an error as the API would for a client."""
    kinds: dict[type[FoliotError], type[sdk.FoliotApiError]] = {
        Unavailable: sdk.Unavailable,
        Conflict: sdk.Conflict,
    }
    kind = next((there for here, there in kinds.items() if isinstance(error, here)), sdk.Invalid)
    wrong = error.parts or ((error,) if error.pointer else ())
    problems = tuple(
        FieldProblem(pointer=each.pointer or "", message=each.message, hint=each.hint) for each in wrong
    )
    return kind(error.message, code=error.code, hint=error.hint, errors=problems)


def _invalid_job(found: Sequence[Any]) -> sdk.Invalid:
    problems = "; ".join(f"{pointer(each['loc'])}: {each['msg']}" for each in found)
    return sdk.Invalid(f"This is no job: {problems}", code="invalid")


async def create_from_sql(
    database: Database,
    workspace: Workspace,
    by: Actor,
    job: Mapping[str, Any],
    reach: EgressPolicy = DEFAULT_EGRESS_POLICY,
) -> JobId:
    """Create a job that a program has inserted with SQL."""
    if workspace.archived_at is not None:
        raise Invalid("This workspace is archived.")
    try:
        return JobId((await JobSync(database, workspace, by, reach).create(job)).id)
    except sdk.Unavailable as error:
        raise Unavailable(error.message, hint=error.hint) from error
    except sdk.FoliotApiError as error:
        wrong = "; ".join(f"{each.pointer}: {each.message}" for each in error.errors) or error.message
        raise Invalid(wrong, hint=error.hint) from error


log = logging.getLogger(__name__)


WHERE = "Modules are looked for in the current folder, PYTHONPATH and what is installed."


def check_app_exists(address: str) -> None:
    """Raise Invalid where there is no such module. Its code is not run: that is for the worker."""
    package = _split(address)[0].partition(".")[0]
    places = [*sys.path, os.getcwd()]  # noqa: PTH109
    if package not in sys.builtin_module_names and PathFinder.find_spec(package, places) is None:
        raise Invalid(f"{address} cannot be loaded: there is no module named {package}.", hint=WHERE)


def load_app(address: str) -> Foliot:
    """Load the app that `module:app` names, or raise Invalid."""
    module, name = _split(address)
    try:
        found = getattr(import_module(module), name, None)
    except AppDefinitionError as error:
        raise Invalid(f"{address} cannot be loaded: {error.message}", hint=error.hint) from error
    except Exception as error:
        raise Invalid(
            f"{address} cannot be loaded: {type(error).__name__}: {error}",
            hint=WHERE,
        ) from error
    if not isinstance(found, Foliot):
        raise Invalid(
            f"{module} has no app called {name}.", hint=f'There, {name} = Foliot("…") must stand at the top.'
        )
    return found


async def sync_app(
    database: Database, app: Foliot, reach: EgressPolicy = DEFAULT_EGRESS_POLICY
) -> SyncResult:
    """Update the stored jobs to match the app. Several workers may do so at once."""
    try:
        entries = app_entries(app)
    except AppDefinitionError as error:
        raise Invalid(error.message, hint=error.hint) from error
    workspace = await workspaces.get(database, app.workspace or DEFAULT_WORKSPACE)
    try:
        own = {each.name: each.schema() for each in app.handlers}
        books = JobSync(database, workspace, Actor(f"app:{app.name}"), reach, own)
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


def _split(address: str) -> tuple[str, str]:
    module, _, name = address.partition(":")
    if not module or not name:
        raise Invalid(f"{address!r} names no app.", hint="Write it as module:app, such as shop.jobs:app.")
    return module, name
