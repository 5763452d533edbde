"""Nodes that start at the same moment: on one database, and on two databases of one server."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from secrets import token_hex
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from foliot.storage.migrate import Migration, migrate, packaged
from foliot.storage.roles import Login, ensure_login
from foliot.storage.server import RetryPeriod
from foliot.testing.database import LOGIN, Databases

LABELS = [migration.label for migration in packaged()]
CHILD = textwrap.dedent("""
    import sys
    from foliot.storage.migrate import migrate
    from foliot.testing.database import LOGIN
    sys.stdin.read()  # the starting gun: the other end closes
    print(*migrate(sys.argv[1], login=LOGIN).applied)
""")


def race(*urls: str) -> list[list[str]]:
    """One process for each URL, all released together; what each of them applied."""
    nodes = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for url in urls
    ]
    for node in nodes:
        assert node.stdin is not None
        node.stdin.close()
    answers = []
    for node in nodes:
        assert node.stdout is not None
        with node.stdout as output:
            answers.append(output.read().split())
        assert node.wait(timeout=60) == 0
    return answers


def test_of_several_nodes_each_migration_is_applied_by_one(empty_url: str) -> None:
    answers = race(empty_url, empty_url, empty_url)
    assert sorted(label for answer in answers for label in answer) == LABELS
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT count(*) FROM foliot.migrations").fetchone() == (len(LABELS),)


def test_two_databases_of_one_server_migrate_at_once(server: Databases) -> None:
    with server.fresh(migrated=False) as one, server.fresh(migrated=False) as other:
        assert race(one, other) == [LABELS, LABELS]


def test_a_node_waits_for_the_one_that_is_migrating(empty_url: str) -> None:
    """One is inside and held up there; the other asks for the lock again and again, and finds nothing left to do."""
    gate = 4711
    slow = [
        *packaged(),
        Migration(
            len(LABELS) + 1, "gated", f"SELECT pg_advisory_xact_lock({gate}); CREATE TABLE gated (id int)"
        ),
    ]
    answers: list[tuple[str, ...]] = []

    def node() -> None:
        answers.append(migrate(empty_url, login=LOGIN, migrations=slow, patience=60).applied)

    migrate(empty_url, login=LOGIN)
    with psycopg.connect(empty_url) as lock_holder:
        lock_holder.execute("SELECT pg_advisory_xact_lock(%s)", [gate])
        nodes = [threading.Thread(target=node) for _ in range(2)]
        for thread in nodes:
            thread.start()
        until_someone_waits_for(gate, lock_holder)
        assert answers == []
        lock_holder.rollback()
        for thread in nodes:
            thread.join(timeout=60)
    assert sorted(answers) == [(), (slow[-1].label,)]


def test_one_login_made_from_many_sides_is_made_once(server: Databases) -> None:
    """Logins belong to the server: collisions there have many names, and none may reach the caller."""
    login, failures = Login(f"foliot_test_{token_hex(6)}", "secret"), []
    with server.fresh() as one, server.fresh() as other:

        def make(url: str) -> None:
            try:
                for _ in range(5):
                    ensure_login(url, login)
            except Exception as error:  # noqa: BLE001  # whatever it is, the test must see it
                failures.append(error)

        makers = [threading.Thread(target=make, args=[url]) for url in (one, other) * 3]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join(timeout=60)
        assert failures == []
    with psycopg.connect(server.admin_url, autocommit=True) as admin:
        admin.execute(SQL("DROP ROLE {}").format(Identifier(login.name)))


def until_someone_waits_for(gate: int, connection: psycopg.Connection[Any]) -> None:
    waiting = RetryPeriod(30)
    question = "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
    while connection.execute(question, [gate]).fetchone() != (True,):
        assert waiting.again()
