"""First start, lost keys, valid and invalid keys, and the hold after a restore."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from foliot.domain.access import ApiKey, KeyHolder, MemberRole, PrincipalKind
from foliot.domain.errors import Conflict
from foliot.domain.ids import WorkspaceId
from foliot.services.identity import installation
from foliot.services.identity.authentication import Authenticator
from foliot.storage.installation import MissedChoice
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock

Owner = psycopg.Connection[Any]
STRANGER = ApiKey.make(bytes(31)).secret


async def start(database: Database) -> installation.AdminKey:
    made = await installation.first_start(database, tzdata_version="2026.6")
    assert made is not None
    return made


async def holder_of(database: Database, presented: str) -> KeyHolder | None:
    """Who comes in with this key, asked anew."""
    authenticator = Authenticator(database)
    caller = await authenticator.enter(presented, None)
    await authenticator.close()
    return None if caller is None else caller.holder


async def test_the_first_start_makes_a_workspace_and_an_administrator(
    database: Database, owner: Owner, clock: ManualClock
) -> None:
    first = await start(database)
    holder = await holder_of(database, first.secret)
    assert holder is not None
    assert holder.principal.is_system
    assert (holder.principal.kind, holder.principal.role) == (PrincipalKind.SYSTEM, MemberRole.ADMIN)
    assert (holder.key_id, holder.principal.id) == (first.key_id, first.principal_id)
    assert owner.execute("SELECT slug, created_at FROM foliot.workspaces").fetchall() == [
        ("default", clock.now())
    ]
    assert (await installation.state(database)).tzdata_version == "2026.6"
    assert owner.execute("SELECT action, actor FROM foliot.audit").fetchall() == [("key.created", "operator")]


async def test_a_second_start_makes_nothing(database: Database, owner: Owner) -> None:
    await start(database)
    assert await installation.first_start(database, tzdata_version="2027.1") is None
    assert owner.execute("SELECT count(*) FROM foliot.api_keys").fetchone() == (1,)
    assert (await installation.state(database)).tzdata_version == "2026.6"


async def test_a_first_start_that_cannot_keep_the_key_leaves_nothing_behind(
    database: Database, owner: Owner
) -> None:
    def full(secret: str) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await installation.first_start(database, tzdata_version="2026.6", keep=full)
    assert owner.execute("SELECT count(*) FROM foliot.principals").fetchone() == (0,)
    kept: list[str] = []
    made = await installation.first_start(database, tzdata_version="2026.6", keep=kept.append)
    assert made is not None
    assert kept == [made.secret]


async def test_the_database_holds_no_usable_key(database: Database, owner: Owner) -> None:
    first = await start(database)
    secret = first.secret.split("_")[2]
    for (table,) in owner.execute(
        "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind = 'r'"
    ):
        text = owner.execute(f"SELECT string_agg(t::text, ' ') FROM {table} AS t").fetchone()
        assert text is not None
        assert secret not in (text[0] or "")
    assert first.secret not in repr(first)


async def test_a_lost_key_is_replaced_and_the_old_one_goes_on(database: Database) -> None:
    first = await start(database)
    second = await installation.create_admin_key(database)
    other = await installation.create_admin_key(database, "night shift")
    assert second.principal_id == first.principal_id != other.principal_id
    for key in (first, second, other):
        assert await holder_of(database, key.secret)


async def test_an_administrator_switched_off_comes_back_with_a_new_key(
    database: Database, owner: Owner
) -> None:
    first = await start(database)
    owner.execute("UPDATE foliot.principals SET active = false")
    assert await holder_of(database, first.secret) is None
    assert await holder_of(database, (await installation.create_admin_key(database)).secret)


@pytest.mark.parametrize(
    "presented", ["", "fol_", "Bearer x", STRANGER, STRANGER[:-1] + "x", "\x00", "fol_\ud800"]
)
async def test_what_is_not_a_known_key_finds_nobody(database: Database, presented: str) -> None:
    await start(database)
    assert await holder_of(database, presented) is None


async def test_a_revoked_or_expired_key_finds_nobody(
    database: Database, owner: Owner, clock: ManualClock
) -> None:
    first = await start(database)
    owner.execute("UPDATE foliot.api_keys SET expires_at = %s", [clock.now() + timedelta(hours=1)])
    assert await holder_of(database, first.secret)
    clock.advance(timedelta(hours=1))
    assert await holder_of(database, first.secret) is None
    owner.execute("UPDATE foliot.api_keys SET expires_at = NULL, revoked_at = %s", [clock.now()])
    assert await holder_of(database, first.secret) is None


async def test_a_key_of_an_archived_workspace_finds_nobody(
    database: Database, owner: Owner, clock: ManualClock
) -> None:
    workspace, principal, key = WorkspaceId(uuid4()), uuid4(), ApiKey.make(b"\x07" * 31)
    owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'acme', 'Acme', %s)",
        [workspace, clock.now()],
    )
    owner.execute(
        "INSERT INTO foliot.principals (workspace_id, id, kind, name, role, created_at) VALUES (%s, %s, 'agent', 'robin', 'editor', %s)",
        [workspace, principal, clock.now()],
    )
    owner.execute(
        "INSERT INTO foliot.api_keys (workspace_id, id, principal_id, name, prefix, key_hash, scopes, created_at)"
        " VALUES (%s, %s, %s, 'k', %s, %s, '{worker}', %s)",
        [workspace, uuid4(), principal, key.prefix, key.hash, clock.now()],
    )
    holder = await holder_of(database, key.secret)
    assert holder is not None
    assert (holder.principal.workspace_id, holder.principal.name, holder.scopes) == (
        workspace,
        "robin",
        frozenset({"worker"}),
    )
    owner.execute("UPDATE foliot.workspaces SET archived_at = %s", [clock.now()])
    assert await holder_of(database, key.secret) is None


async def test_the_last_use_is_noted_at_most_once_a_minute(
    database: Database, owner: Owner, clock: ManualClock
) -> None:
    first, noted = await start(database), []
    for pause in (0, 30, 40):
        clock.advance(timedelta(seconds=pause))
        await holder_of(database, first.secret)
        noted.append(owner.execute("SELECT last_used_at FROM foliot.api_keys").fetchone())
    assert noted[0] == noted[1] == (clock.now() - timedelta(seconds=70),)
    assert noted[2] == (clock.now(),)


@pytest.mark.parametrize("choice", list(MissedChoice))
async def test_a_restored_installation_is_held_until_someone_chooses(
    database: Database, owner: Owner, clock: ManualClock, choice: MissedChoice
) -> None:
    await installation.hold_after_restore(database, "restored from a dump of 2027-01-01")
    held = await installation.state(database)
    assert held.is_held
    assert (held.held_at, held.held_reason, held.missed_choice) == (
        clock.now(),
        "restored from a dump of 2027-01-01",
        None,
    )
    await installation.release_hold(database, choice)
    free = await installation.state(database)
    assert (free.is_held, free.held_reason, free.missed_choice) == (False, None, choice)
    actions = owner.execute("SELECT action FROM foliot.audit ORDER BY id").fetchall()
    assert sorted(actions) == [("installation.held",), ("installation.released",)]


async def test_nothing_held_cannot_be_released(database: Database) -> None:
    with pytest.raises(Conflict, match="Nothing is held"):
        await installation.release_hold(database, MissedChoice.SKIP)
