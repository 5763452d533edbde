"""Two nodes see a new installation at the same moment: one key is made."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
from psycopg import AsyncConnection

from foliot.services.identity import installation
from foliot.storage.tx import Database
from tests.race.lock_waits import wait_until_blocked


async def test_of_many_first_starts_one_makes_the_key(login_url: str, owner: psycopg.Connection[Any]) -> None:
    async with Database(login_url) as left, Database(login_url) as right:
        made = await asyncio.gather(
            *(installation.first_start(node, tzdata_version="2026.6") for node in (left, right) * 4)
        )
    assert len([key for key in made if key]) == 1
    assert owner.execute("SELECT count(*) FROM foliot.api_keys").fetchone() == (1,)
    assert owner.execute("SELECT count(*) FROM foliot.workspaces").fetchone() == (1,)


async def test_a_first_start_waits_for_the_one_before_it(
    database: Database, two_connections: tuple[AsyncConnection[Any], AsyncConnection[Any]]
) -> None:
    """The row of the installation is the lock: its holder is waited for, and its work is seen."""
    inside, watcher = two_connections
    await inside.execute("SELECT FROM foliot.installation FOR UPDATE")
    late = asyncio.create_task(installation.first_start(database, tzdata_version="2026.6"))
    await wait_until_blocked(watcher)
    await inside.execute(
        "INSERT INTO foliot.principals (id, kind, name, role, created_at)"
        " VALUES (gen_random_uuid(), 'system', 'admin', 'admin', clock_timestamp())"
    )
    await inside.commit()
    assert await late is None


async def test_two_new_admin_keys_at_once_share_one_administrator(
    login_url: str, owner: psycopg.Connection[Any]
) -> None:
    async with Database(login_url) as left, Database(login_url) as right:
        made = await asyncio.gather(*(installation.create_admin_key(node, "ops") for node in (left, right)))
    assert len({key.principal_id for key in made}) == 1
    assert len({key.secret for key in made}) == 2
