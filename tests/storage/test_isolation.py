"""What a workspace sees is its own, whatever the query; what nobody was asked for is nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from foliot.domain.ids import WorkspaceId
from foliot.storage.catalogue import GLOBAL
from foliot.storage.queries import SqlQuery
from foliot.storage.tx import Database, PoolSize, Role, Tx

Ids = Mapping[str, WorkspaceId]
Owner = psycopg.Connection[Any]
PRIVATE = ("workspaces", "principals", "api_keys", "audit")


def q(text: str) -> SqlQuery:
    return SqlQuery("test", text.encode())


async def visible(tx: Tx, table: str) -> int:
    row = await tx.fetch_one(q(f"SELECT count(*) AS n FROM {table}"))
    assert row is not None
    return int(row["n"])


async def test_without_a_workspace_no_table_shows_a_row(
    database: Database, owner: Owner, populated: Ids
) -> None:
    readable = owner.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind IN ('r', 'p')"
        " AND has_any_column_privilege('foliot_app', oid, 'SELECT')"
    ).fetchall()
    tables = {name for (name,) in readable} - (GLOBAL.keys() - {"workspaces"})
    assert tables >= set(PRIVATE)
    async with database.tx(Role.APP) as tx:
        assert {table: await visible(tx, table) for table in tables} == dict.fromkeys(tables, 0)


@pytest.mark.requirement("S4-12")
@pytest.mark.parametrize("table", PRIVATE)
async def test_a_workspace_sees_its_own_row_and_no_other(
    database: Database, populated: Ids, table: str
) -> None:
    async with database.tx(Role.APP, populated["acme"]) as tx:
        rows = await tx.fetch(q(f"SELECT * FROM {table}"))
    column = "id" if table == "workspaces" else "workspace_id"
    assert [row[column] for row in rows] == [populated["acme"]]


@pytest.mark.parametrize("table", PRIVATE[1:])
async def test_an_outsider_sees_nothing(database: Database, populated: Ids, table: str) -> None:
    async with database.tx(Role.APP, populated["outsider"]) as tx:
        assert await visible(tx, table) == 0
    async with database.tx(Role.APP, WorkspaceId(uuid4())) as tx:
        assert await visible(tx, table) == 0


@pytest.mark.parametrize("table", PRIVATE[1:])
async def test_a_system_transaction_sees_what_belongs_to_no_workspace(
    database: Database, populated: Ids, table: str
) -> None:
    async with database.tx(Role.APP, system=True) as tx:
        assert [row["workspace_id"] for row in await tx.fetch(q(f"SELECT workspace_id FROM {table}"))] == [
            None
        ]
        assert await visible(tx, "workspaces") == 3


SMUGGLED = {
    "a principal": """INSERT INTO principals (workspace_id, id, kind, name, role, created_at)
                      VALUES (%(other)s, gen_random_uuid(), 'user', 'spy', 'admin', %(now)s)""",
    "an administrator": """INSERT INTO principals (workspace_id, id, kind, name, role, created_at)
                           VALUES (NULL, gen_random_uuid(), 'user', 'spy', 'admin', %(now)s)""",
    "a key": """INSERT INTO api_keys (workspace_id, id, principal_id, name, prefix, key_hash, created_at)
                VALUES (%(other)s, gen_random_uuid(), (SELECT id FROM principals), 'k', 'abcdefgh', sha256('x'), %(now)s)""",
    "an audit entry": """INSERT INTO audit (workspace_id, id, at, actor, action, object_kind, object_id)
                         VALUES (%(other)s, gen_random_uuid(), %(now)s, 'a', 'a.b', 'k', 'x')""",
    "a workspace": """INSERT INTO workspaces (id, slug, name, created_at)
                      VALUES (gen_random_uuid(), 'mine', 'mine', %(now)s)""",
}


@pytest.mark.parametrize("statement", SMUGGLED.values(), ids=SMUGGLED.keys())
async def test_a_row_for_someone_else_is_refused(database: Database, populated: Ids, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        async with database.tx(Role.APP, populated["acme"]) as tx:
            await tx.execute(q(statement), {"other": populated["globex"], "now": tx.now})


async def test_a_change_does_not_reach_another_workspace(database: Database, populated: Ids) -> None:
    async with database.tx(Role.APP, populated["acme"]) as tx:
        assert await tx.execute(q("UPDATE principals SET name = 'changed'")) == 1
        assert (
            await tx.execute(
                q("UPDATE workspaces SET name = 'x' WHERE id = %(id)s"), {"id": populated["globex"]}
            )
            == 0
        )
    async with database.tx(Role.APP, populated["globex"]) as tx:
        assert [row["name"] for row in await tx.fetch(q("SELECT name FROM principals"))] == ["globex"]


@pytest.mark.parametrize("keyed_to", ["acme", None])
def test_a_key_cannot_belong_to_another_workspaces_principal(
    owner: Owner, populated: Ids, keyed_to: str | None
) -> None:
    """Even for the owner, and even where the key has no workspace at all."""
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        owner.execute(
            "INSERT INTO foliot.api_keys (workspace_id, id, principal_id, name, prefix, key_hash, created_at)"
            " SELECT %s, gen_random_uuid(), id, 'stolen', 'abcdefgh', sha256('stolen'), clock_timestamp()"
            " FROM foliot.principals WHERE workspace_id = %s",
            [populated[keyed_to] if keyed_to else None, populated["globex"]],
        )


async def test_a_pooled_connection_forgets_the_workspace(login_url: str, populated: Ids) -> None:
    async with Database(login_url, size=PoolSize(least=1, most=1)) as one:
        async with one.tx(Role.APP, populated["acme"], system=True, key_hash=b"x" * 32) as tx:
            pid = await tx.fetch_one(q("SELECT pg_backend_pid() AS pid"))
            assert await visible(tx, "principals") == 2
        async with one.tx(Role.APP) as tx:
            assert await tx.fetch_one(q("SELECT pg_backend_pid() AS pid")) == pid, (
                "the same connection, used again"
            )
            left = await tx.fetch_one(
                q("SELECT current_setting('foliot.workspace', true) AS w, current_setting('foliot.system', true) AS s,"
                  " current_setting('foliot.key_hash', true) AS k")
            )  # fmt: skip
            assert left == {"w": "", "s": "", "k": ""}
            assert [await visible(tx, table) for table in PRIVATE] == [0, 0, 0, 0]


async def test_a_presented_hash_shows_one_key_its_principal_and_its_workspace(
    database: Database, populated: Ids
) -> None:
    async with database.tx(Role.APP, key_hash=hashlib.sha256(b"acme").digest()) as tx:
        assert [row["name"] for row in await tx.fetch(q("SELECT name FROM api_keys"))] == ["acme"]
        assert [row["name"] for row in await tx.fetch(q("SELECT name FROM principals"))] == ["acme"]
        assert [row["name"] for row in await tx.fetch(q("SELECT name FROM workspaces"))] == ["acme"]
        assert await visible(tx, "audit") == 0


async def test_naming_a_hash_is_no_way_to_make_a_key(
    database: Database, owner: Owner, populated: Ids
) -> None:
    (principal,) = owner.execute("SELECT id FROM foliot.principals WHERE name = 'globex'").fetchone() or (
        None,
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        async with database.tx(Role.APP, key_hash=b"h" * 32) as tx:
            await tx.execute(
                q("INSERT INTO api_keys (workspace_id, id, principal_id, name, prefix, key_hash, created_at)"
                  " VALUES (%(w)s, gen_random_uuid(), %(p)s, 'k', 'abcdefgh', %(h)s, %(now)s)"),
                {"w": populated["globex"], "p": principal, "h": b"h" * 32, "now": tx.now},
            )  # fmt: skip


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize(
    "statement", ["UPDATE audit SET actor = 'nobody'", "DELETE FROM audit", "TRUNCATE audit"]
)
async def test_the_audit_only_grows(database: Database, populated: Ids, role: Role, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table audit"):
        async with database.tx(role, populated["acme"]) as tx:
            await tx.execute(q(statement))


async def test_the_engine_sees_every_workspace_and_nobodys_keys(database: Database, populated: Ids) -> None:
    async with database.tx(Role.ENGINE) as tx:
        assert await visible(tx, "workspaces") == 3
    for table in ("api_keys", "principals", "audit"):
        with pytest.raises(
            psycopg.errors.InsufficientPrivilege, match=f"permission denied for table {table}"
        ):
            async with database.tx(Role.ENGINE) as tx:
                await visible(tx, table)


async def test_the_engine_can_add_to_the_audit(database: Database, populated: Ids) -> None:
    async with database.tx(Role.ENGINE) as tx:
        added = await tx.execute(
            q("INSERT INTO audit (workspace_id, id, at, actor, action, object_kind, object_id)"
              " VALUES (%(w)s, gen_random_uuid(), %(now)s, 'engine', 'job.failed', 'job', 'x')"),
            {"w": populated["acme"], "now": tx.now},
        )  # fmt: skip
    assert added == 1
