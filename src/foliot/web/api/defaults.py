"""/defaults: the values that jobs of the workspace get for fields that they leave out."""

from __future__ import annotations

from typing import Any

from foliot.domain.policy import Limits
from foliot.services.hints import Hint
from foliot.services.jobs import defaults
from foliot.services.jobs.defaults import DefaultChanges, WorkspaceDefaults
from foliot.web.api.params import Db
from foliot.web.api.writes import Writing
from foliot.web.auth import Admin, Viewer
from foliot.web.mapping.definitions import FieldErrors, retention_from, retry_from
from foliot.web.mapping.jobs import retention_out, retry_out
from foliot.web.routes import WITH_BODY, api_router
from foliot.wire.defaults import DefaultsOut, DefaultsPatch

routes = api_router("workspaces")


@routes.get("/defaults")
async def get_defaults(caller: Viewer, db: Db) -> DefaultsOut:
    """Return the defaults of retry, timeout, retention and zone, and who sets each."""
    return _out(await defaults.get(db, caller.workspace_id))


@routes.patch("/defaults", responses=WITH_BODY)
async def change_defaults(changes: DefaultsPatch, caller: Admin, write: Writing) -> DefaultsOut:
    """Change the defaults of the workspace. Jobs that leave a field out get its new value, as a new revision; `inherited` of a job names
    these fields. The zone counts for schedules that are written from now on.
    """
    wanted = DefaultChanges(_values(changes), changes.timezone)
    return await write.apply_or_preview(
        lambda db: defaults.change(db, caller.scope, wanted),
        _out,
        lambda changed: _out(changed, dry_run=True),
        Hint.KEYS,  # the zone is remembered with the key
    )


def _values(changes: DefaultsPatch) -> dict[str, Any]:
    """Return the fields that are given, as values of the domain; null stays None."""
    errors = FieldErrors()
    values: dict[str, Any] = {}
    given = changes.model_fields_set
    timeout, retry, retention = changes.timeout, changes.retry, changes.retention
    if "timeout" in given:
        values["timeout"] = None if timeout is None else errors.take(lambda: Limits(timeout).timeout)
    if "retry" in given:
        values["retry"] = None if retry is None else errors.take(lambda: retry_from(retry))
    if "retention" in given:
        values["retention"] = None if retention is None else errors.take(lambda: retention_from(retention))
    if errors.found:
        errors.tell()
    return values


def _out(found: WorkspaceDefaults, *, dry_run: bool = False) -> DefaultsOut:
    values = found.values
    return DefaultsOut.model_validate(
        {
            "dry_run": dry_run,
            "retry": retry_out(values.retry),
            "timeout": values.timeout,
            "retention": retention_out(values.retention),
            "timezone": found.timezone,
            "origins": values.origins(),
        }
    )
