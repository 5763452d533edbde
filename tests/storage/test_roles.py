"""The pool's login may act as the two roles and is nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from foliot.domain.errors import DatabaseUnavailable
from foliot.storage.migrate import migrate
from foliot.storage.roles import Login, ensure_login
from foliot.storage.server import inspect
from foliot.storage.tx import Database, Role

Owner = psycopg.Connection[Any]


@pytest.fixture
def name(owner: Owner) -> Iterator[str]:
    """A role name of this test's own: roles belong to the whole server. Made or not, it is gone afterwards."""
    chosen = f"foliot_test_{token_hex(6)}"
    yield chosen
    if owner.execute("SELECT FROM pg_roles WHERE rolname = %s", [chosen]).fetchone():
        owner.execute(SQL("DROP OWNED BY {0}").format(Identifier(chosen)))
        owner.execute(SQL("DROP ROLE {}").format(Identifier(chosen)))


async def can_serve(url: str) -> bool:
    async with Database(url) as database:
        async with database.tx(Role.APP):
            pass
        async with database.tx(Role.ENGINE):
            pass
    return True


async def test_a_login_is_made_and_made_again_with_a_new_password(
    owner_url: str, owner: Owner, name: str
) -> None:
    ensure_login(owner_url, Login(name, "first"))
    ensure_login(owner_url, Login(name, "second's"))
    row = owner.execute(
        "SELECT rolcanlogin, rolinherit, rolsuper, rolcreaterole, rolbypassrls FROM pg_roles WHERE rolname = %s",
        [name],
    ).fetchone()
    assert row == (True, False, False, False, False)
    verifier = owner.execute("SELECT rolpassword FROM pg_authid WHERE rolname = %s", [name]).fetchone()
    assert verifier is not None
    assert verifier[0].startswith("SCRAM-SHA-256$")
    url = make_conninfo(owner_url, user=name, password="second's")
    assert await can_serve(url)
    assert not inspect(url).one_login


async def test_an_existing_login_that_inherits_is_admitted_without_inheriting(
    owner_url: str, owner: Owner, name: str
) -> None:
    owner.execute(SQL("CREATE ROLE {} LOGIN INHERIT PASSWORD 'pw'").format(Identifier(name)))
    owner.execute(SQL("GRANT foliot_app TO {}").format(Identifier(name)))
    migrate(owner_url, login=Login(name))
    url = make_conninfo(owner_url, user=name, password="pw")
    assert await can_serve(url)
    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT FROM foliot.workspaces")


def test_a_login_that_does_not_exist_is_named_with_the_way_to_make_it(owner_url: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="There is no login nobody_here") as caught:
        migrate(owner_url, login=Login("nobody_here"))
    assert "CREATE ROLE" in str(caught.value.hint)


async def test_one_ordinary_login_can_own_and_serve(empty_url: str, owner: Owner, name: str) -> None:
    """The one-URL installation on a shared server: not a superuser, but the owner of its database."""
    owner.execute(SQL("CREATE ROLE {} LOGIN CREATEROLE PASSWORD 'pw'").format(Identifier(name)))
    for role in Role:  # made by another owner of this server, who shares the right to admit members
        owner.execute(SQL("GRANT {} TO {} WITH ADMIN OPTION").format(Identifier(role), Identifier(name)))
    with psycopg.connect(empty_url, autocommit=True) as admin:
        admin.execute(
            SQL("ALTER DATABASE {} OWNER TO {}").format(Identifier(admin.info.dbname), Identifier(name))
        )
        url = make_conninfo(empty_url, user=name, password="pw")
        assert migrate(url).applied
        assert migrate(url).applied == ()
        assert await can_serve(url)
        facts = inspect(url)
        assert facts.one_login
        assert any("once, not twice" in warning for warning in facts.warnings)
        admin.execute(SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(Identifier(name)))
        admin.execute(SQL("DROP OWNED BY {}").format(Identifier(name)))


def test_an_owner_who_may_not_manage_roles_reads_what_to_ask_for(
    owner_url: str, owner: Owner, name: str
) -> None:
    owner.execute(SQL("CREATE ROLE {} LOGIN PASSWORD 'pw'").format(Identifier(name)))
    with pytest.raises(DatabaseUnavailable, match="may not manage roles") as caught:
        ensure_login(make_conninfo(owner_url, user=name, password="pw"), Login("foliot_other", "secret"))
    assert "CREATE ROLE" in str(caught.value.hint)
    assert "SCRAM" not in str(caught.value.hint)


def test_a_login_keeps_its_password_out_of_sight() -> None:
    assert "hush" not in repr(Login("pool", "hush"))
