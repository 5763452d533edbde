"""One file holds the whole database; putting it back is all or nothing."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from foliot.domain.errors import Conflict, DatabaseUnavailable, Invalid, NotFound
from foliot.embedded import binaries, clients
from foliot.embedded import clients as embedded_clients
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.dump import dump, restore
from foliot.embedded.server import EmbeddedServer, start

Run = Callable[..., EmbeddedServer]
Ask = Callable[..., Any]
FILL = """
    CREATE SCHEMA foliot;
    CREATE TABLE foliot.migrations (number int PRIMARY KEY);
    CREATE TABLE foliot.jobs (id int PRIMARY KEY, name text NOT NULL, at timestamptz DEFAULT '2027-01-01Z');
    INSERT INTO foliot.jobs SELECT n, 'job ' || n || E' \\t\\\\. é' FROM generate_series(1, 1000) n;
    CREATE TABLE foliot.runs (job int REFERENCES foliot.jobs, body bytea);
    INSERT INTO foliot.runs SELECT n, sha256(n::text::bytea) FROM generate_series(1, 1000) n;
    ALTER TABLE foliot.jobs ENABLE ROW LEVEL SECURITY;
    ALTER TABLE foliot.jobs FORCE ROW LEVEL SECURITY;
    GRANT USAGE ON SCHEMA foliot TO foliot_app;
    GRANT SELECT ON foliot.jobs TO foliot_app;
    CREATE POLICY own ON foliot.jobs TO foliot_app USING (id < 10);
"""
DIGEST = """
    SELECT md5(string_agg(j::text || r::text, ',' ORDER BY j.id)) FROM foliot.jobs j JOIN foliot.runs r ON r.job = j.id
"""


def test_a_dump_restores_to_the_same_rows_rights_and_policies(
    filled: EmbeddedServer, other: EmbeddedServer, ask: Ask, folder: Path
) -> None:
    file = folder / "foliot.dump"
    size = dump(None, filled.owner_url, file)
    assert size == file.stat().st_size > 10_000
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in folder.glob("*dump*")] == ["foliot.dump"]
    restore(None, other.owner_url, file)
    assert ask(other, DIGEST) == ask(filled, DIGEST)
    assert ask(other, "SELECT relforcerowsecurity FROM pg_class WHERE oid = 'foliot.jobs'::regclass") is True
    with psycopg.connect(other.owner_url) as app:
        app.execute("SET ROLE foliot_app")
        assert app.execute("SELECT count(*) FROM foliot.jobs").fetchone() == (9,)


def test_a_filled_database_is_refused_unless_it_is_to_be_replaced(
    filled: EmbeddedServer, ask: Ask, folder: Path
) -> None:
    dump(None, filled.owner_url, folder / "before.dump")
    before = ask(filled, DIGEST)
    ask(filled, "ALTER DATABASE foliot SET work_mem = '5MB'")
    ask(filled, "DELETE FROM foliot.runs")
    ask(filled, "CREATE TABLE foliot.newer (id int)")
    with pytest.raises(Conflict, match="foliot has a Foliot already") as refused:
        restore(None, filled.owner_url, folder / "before.dump")
    assert "--replace" in str(refused.value.hint)
    restore(None, filled.owner_url, folder / "before.dump", replace=True)
    assert ask(filled, DIGEST) == before
    assert ask(filled, "SELECT to_regclass('foliot.newer')") is None
    assert ask(filled, "SHOW work_mem") == "5MB"


def test_a_dump_cut_off_in_the_middle_changes_nothing(filled: EmbeddedServer, ask: Ask, folder: Path) -> None:
    file = folder / "cut.dump"
    size = dump(None, filled.owner_url, file)
    with file.open("r+b") as whole:
        whole.truncate(size - 3000)
    before = ask(filled, DIGEST)
    with pytest.raises(DatabaseUnavailable, match="the database is as it was"):
        restore(None, filled.owner_url, file, replace=True)
    assert ask(filled, DIGEST) == before


def test_a_restore_that_the_server_refuses_changes_nothing(
    filled: EmbeddedServer, ask: Ask, folder: Path
) -> None:
    dump(None, filled.owner_url, folder / "roles.dump")
    before = ask(filled, DIGEST)
    ask(filled, "DROP OWNED BY foliot_app; DROP ROLE foliot_app")
    with pytest.raises(DatabaseUnavailable, match='role "foliot_app" does not exist') as refused:
        restore(None, filled.owner_url, folder / "roles.dump", replace=True)
    assert "foliot migrate" in str(refused.value.hint)
    assert ask(filled, DIGEST) == before


def test_what_is_no_dump_is_refused_before_anything_is_touched(filled: EmbeddedServer, folder: Path) -> None:
    (folder / "letter.txt").write_text("dear all")
    with pytest.raises(Invalid, match="is not a dump"):
        restore(None, filled.owner_url, folder / "letter.txt", replace=True)
    with pytest.raises(Invalid, match="There is no dump"):
        restore(None, filled.owner_url, folder / "absent", replace=True)


def test_a_dump_moves_between_major_versions(
    filled: EmbeddedServer, run: Run, ask: Ask, folder: Path, bindir: Path
) -> None:
    with run(data_dir=folder / "version", bindir=bindir) as there:
        dump(None, filled.owner_url, folder / "one.dump")
        ask(there, "CREATE ROLE foliot_app")
        restore(None, there.owner_url, folder / "one.dump")
        dump(bindir, there.owner_url, folder / "two.dump")
        restore(None, filled.owner_url, folder / "two.dump", replace=True)
        assert ask(filled, DIGEST) == ask(there, DIGEST)


def test_a_login_that_sees_some_rows_only_may_not_dump(
    filled: EmbeddedServer, ask: Ask, folder: Path
) -> None:
    ask(
        filled,
        "CREATE ROLE clerk LOGIN PASSWORD 'secret' IN ROLE foliot_app; GRANT USAGE ON SCHEMA foliot TO clerk",
    )
    ask(filled, "GRANT SELECT ON ALL TABLES IN SCHEMA foliot TO clerk")
    with pytest.raises(DatabaseUnavailable, match="pg_dump failed") as refused:
        dump(None, filled.url("clerk", "secret"), folder / "some.dump")
    assert "BYPASSRLS" in str(refused.value.hint)
    assert list(folder.glob("*dump*")) == []


def test_an_older_dump_stays_until_the_new_one_is_whole(filled: EmbeddedServer, folder: Path) -> None:
    (folder / "kept.dump").write_text("last week's")
    with pytest.raises(DatabaseUnavailable, match="does not answer"):
        dump(None, filled.url("foliot_owner", "wrong"), folder / "kept.dump")
    assert (folder / "kept.dump").read_text() == "last week's"


def test_a_path_that_takes_no_dump_is_named_as_what_it_is(filled: EmbeddedServer, folder: Path) -> None:
    with pytest.raises(Invalid, match=r"x\.dump: its folder does not exist"):
        dump(None, filled.owner_url, folder / "no-such-folder" / "x.dump")
    with pytest.raises(Invalid, match="that is a folder"):
        dump(None, filled.owner_url, folder)


def test_what_others_keep_in_the_database_is_neither_dumped_nor_dropped(
    filled: EmbeddedServer, other: EmbeddedServer, ask: Ask, folder: Path
) -> None:
    ask(
        filled,
        "CREATE SCHEMA shop; CREATE TABLE shop.orders AS SELECT 1; CREATE TABLE public.notes AS SELECT 2",
    )
    dump(None, filled.owner_url, folder / "ours.dump")
    restore(None, filled.owner_url, folder / "ours.dump", replace=True)
    assert ask(filled, "SELECT count(*) FROM shop.orders, public.notes") == 1
    ask(other, "CREATE TABLE public.notes AS SELECT 3 AS kept")
    restore(None, other.owner_url, folder / "ours.dump")
    assert ask(other, "SELECT kept FROM public.notes") == 3
    assert ask(other, "SELECT to_regclass('shop.orders')") is None


def test_a_database_without_foliot_is_not_dumped(other: EmbeddedServer, folder: Path) -> None:
    with pytest.raises(NotFound, match="no Foliot in the database"):
        dump(None, other.owner_url, folder / "nothing.dump")
    assert list(folder.glob("*dump*")) == []


def test_a_dump_of_something_else_is_refused_before_anything_is_touched(
    filled: EmbeddedServer, ask: Ask, folder: Path
) -> None:
    ask(filled, "CREATE TABLE public.migrations AS SELECT 1")
    tools = clients.connect(None, filled.owner_url, "pg_dump")
    tools.run("pg_dump", "--format=custom", "--schema=public", f"--file={folder / 'theirs.dump'}")
    before = ask(filled, DIGEST)
    with pytest.raises(Invalid, match="Foliot's tables are not in it"):
        restore(None, filled.owner_url, folder / "theirs.dump", replace=True)
    assert ask(filled, DIGEST) == before


def test_no_password_is_shown_to_other_users_of_the_machine(
    filled: EmbeddedServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    spy = subprocess.Popen.__init__

    def watch(self: subprocess.Popen[Any], argv: Any, *args: Any, **more: Any) -> None:
        seen.extend(map(str, argv))
        spy(self, argv, *args, **more)

    monkeypatch.setattr(subprocess.Popen, "__init__", watch)
    dump(None, filled.owner_url, folder / "quiet.dump")
    restore(None, filled.owner_url, folder / "quiet.dump", replace=True)
    password = embedded_clients.parse(filled.owner_url).password
    assert password
    assert seen
    assert not any(password in word for word in seen)


@pytest.mark.parametrize(
    ("url", "text", "password"),
    [
        ("postgresql://me:p%40s@h:1/db?sslmode=require", "postgresql://me@h:1/db?sslmode=require", "p@s"),
        ("postgres://me@h1,h2:2/db", "postgres://me@h1,h2:2/db", None),
        ("postgresql://h/db?password=x%26y&user=me", "postgresql://h/db?user=me", "x&y"),
        ("postgresql:///db?host=/run/pg&password=x", "postgresql:///db?host=/run/pg", "x"),
        ("postgresql://:only@h/db", "postgresql://@h/db", "only"),
        (r"host=h password='it\'s \\ me' dbname='a b'", "host=h dbname='a b'", r"it's \ me"),
        ("host = h user=me", "host=h user=me", None),
    ],
)
def test_the_password_is_taken_out_of_any_kind_of_address(url: str, text: str, password: str | None) -> None:
    assert embedded_clients.parse(url) == embedded_clients.ClientAddress(text, password)


def test_clients_of_the_right_version_are_found_for_any_server(bindir: Path) -> None:
    for program in ("psql", "pg_dump", "pg_restore"):
        assert (binaries.find_client(program, bindir, binaries.OLDEST) / program).is_file()


@pytest.fixture
def filled(run: Run, ask: Ask) -> EmbeddedServer:
    server = run()
    ask(server, "CREATE ROLE foliot_app")
    ask(server, FILL)
    return server


@pytest.fixture
def other(template: Path, config: EmbeddedConfig, ask: Ask, folder: Path) -> Iterator[EmbeddedServer]:
    """A new server whose roles the caller has made."""
    with start(replace(config, data_dir=folder / "other")) as server:
        ask(server, "CREATE ROLE foliot_app")
        yield server


def test_a_superusers_restore_gives_the_tables_to_their_owner(
    filled: EmbeddedServer, ask: Ask, folder: Path
) -> None:
    """They used to stay the superuser's, and the login that migrates could not alter them."""
    ask(filled, "CREATE ROLE keeper LOGIN")
    ask(filled, "CREATE SEQUENCE foliot.numbers")
    ask(filled, "CREATE TYPE foliot.mood AS ENUM ('calm')")
    ask(filled, "CREATE FUNCTION foliot.one() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    ask(filled, "ALTER TABLE foliot.jobs ADD COLUMN serial bigint GENERATED ALWAYS AS IDENTITY")
    dump(None, filled.owner_url, folder / "before.dump")
    ask(filled, "ALTER SCHEMA foliot OWNER TO keeper")
    restore(None, filled.owner_url, folder / "before.dump", replace=True)
    others = """
        SELECT count(*) FROM (
          SELECT nspowner AS owner FROM pg_namespace WHERE nspname = 'foliot'
          UNION ALL SELECT relowner FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind IN ('r', 'S')
          UNION ALL SELECT proowner FROM pg_proc WHERE pronamespace = 'foliot'::regnamespace
          UNION ALL SELECT typowner FROM pg_type WHERE typnamespace = 'foliot'::regnamespace AND typtype = 'e'
        ) AS found WHERE owner <> 'keeper'::regrole
    """
    assert ask(filled, others) == 0
