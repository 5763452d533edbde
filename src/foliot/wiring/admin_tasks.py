"""One-off tasks of the command line on a database: migrate, dump, restore, release, create a key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from foliot.embedded import dump as dumps
from foliot.services.identity import installation
from foliot.services.scheduling import after_restore
from foliot.settings import Settings
from foliot.storage.installation import MissedChoice
from foliot.storage.roles import ensure_login
from foliot.storage.tx import Database
from foliot.wiring.database import (
    DatabaseHandle,
    configure_logging,
    lock_data_dir,
    migrate_and_inspect,
    open_database,
    open_or_join_database,
    require_database,
)

T = TypeVar("T")


def migrate(settings: Settings) -> tuple[str, ...]:
    configure_logging(settings, least="warning")
    with lock_data_dir(settings), open_database(settings) as handle:
        applied, _ = migrate_and_inspect(handle)
    return applied


def dump(settings: Settings, target: Path) -> None:
    configure_logging(settings, least="warning")
    require_database(settings)
    with open_or_join_database(settings) as handle:
        dumps.dump(_bindir(settings, handle), handle.owner_url, target)


def restore(settings: Settings, source: Path, *, replace: bool) -> None:
    """Restore a dump, migrate it to this version, and hold all jobs until the operator decides on missed times."""
    configure_logging(settings, least="warning")
    with lock_data_dir(settings), open_database(settings) as handle:
        if handle.login is not None:
            ensure_login(handle.owner_url, handle.login)  # a dump names roles, and a new server has none yet
        dumps.restore(_bindir(settings, handle), handle.owner_url, source, replace=replace)
        migrate_and_inspect(handle)
        _run(handle, lambda db: installation.hold_after_restore(db, f"restored from {source.name}"))


def release(settings: Settings, missed: str) -> None:
    configure_logging(settings, least="warning")
    require_database(settings)
    with open_or_join_database(settings) as handle:
        if not handle.is_joined:  # the running node has migrated it
            migrate_and_inspect(handle)
        _run(handle, lambda db: after_restore.release(db, MissedChoice(missed)))


def create_admin_key(settings: Settings, name: str) -> str:
    configure_logging(settings, least="warning")
    require_database(settings)
    with open_or_join_database(settings) as handle:
        if not handle.is_joined:  # the running node has migrated it
            migrate_and_inspect(handle)
        return _run(handle, lambda db: installation.create_admin_key(db, name)).secret


def _bindir(settings: Settings, handle: DatabaseHandle) -> Path | None:
    return handle.server.bindir if handle.server else handle.bindir or settings.pg_bindir


def _run(handle: DatabaseHandle, do: Callable[[Database], Awaitable[T]]) -> T:
    async def run() -> T:
        async with Database(handle.url) as db:
            return await do(db)

    return asyncio.run(run())
