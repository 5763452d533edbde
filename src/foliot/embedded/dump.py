"""Take a database away in one file and put it back, on the embedded server or any other.

Roles are not in the file: they belong to the server, and migrations make them. Before a restore to a new server the
caller makes them; what is restored then belongs to whoever restores it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from foliot.domain.errors import Conflict, DatabaseUnavailable, Invalid
from foliot.embedded import clients
from foliot.embedded.clients import Clients
from foliot.embedded.durable import sync_folder
from foliot.embedded.failures import cannot_write, server_failed

HAS_TABLES = """
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
                  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e'))
"""
# `public` is made again as a new database has it, because a dump takes it for granted.
DROP_ALL = """
SET lock_timeout = '10s';
SET client_min_messages = warning;
DO $$
DECLARE space name;
BEGIN
    FOR space IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', space);
    END LOOP;
END $$;
CREATE SCHEMA public AUTHORIZATION pg_database_owner;
GRANT USAGE ON SCHEMA public TO PUBLIC;
"""


def dump(bindir: Path | None, url: str, target: Path) -> int:
    """Write the whole database to `target` and answer its size in bytes. `target` is complete or untouched."""
    tools = clients.connect(bindir, url, "pg_dump")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        draft.touch(mode=0o600, exist_ok=False)
        done = tools.run("pg_dump", "--format=custom", f"--file={draft}")
        if done.returncode:
            raise _dump_failed(done.stderr, target)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.rename(target)
        sync_folder(target.absolute().parent)
        return target.stat().st_size
    except OSError as error:
        raise cannot_write(target, error) from error
    finally:
        draft.unlink(missing_ok=True)


def restore(bindir: Path | None, url: str, source: Path, *, replace: bool = False) -> None:
    """Fill an empty database from `source`; with `replace`, in the place of what is there.

    One transaction: if anything fails, the database is as it was.
    """
    tools = clients.connect(bindir, url, "pg_restore")
    _check(tools, source)
    is_filled = tools.ask(HAS_TABLES) == "t"
    if is_filled and not replace:
        raise Conflict(
            f"The database {tools.ask('SELECT current_database()')} is not empty; restoring would mix two of them.",
            hint="To drop what is there and put the dump in its place, say --replace.",
        )
    said = tools.play(source, first=DROP_ALL if is_filled else "")
    if said is not None:
        raise _restore_failed(said, source)


def _check(tools: Clients, source: Path) -> None:
    """Read the table of contents first: a wrong file is refused before anything is touched."""
    if not source.is_file():
        raise Invalid(f"There is no dump {source}.", hint="Make one with `foliot db dump FILE`.")
    done = tools.run("pg_restore", "--list", source, connected=False)
    if done.returncode:
        raise Invalid(
            f"{source} is not a dump that pg_restore {tools.version} can read: {done.stderr.strip()}",
            hint="Use a file made by `foliot db dump`, whole, and programs at least as new as those that made it.",
        )


def _dump_failed(said: str, target: Path) -> DatabaseUnavailable:
    failure = server_failed("pg_dump failed; no file was written", said, target.absolute().parent)
    if "row-level security" in said:
        failure.hint = (
            "That login sees only some rows. Dump as a superuser or with a login that has BYPASSRLS."
        )
    return failure


def _restore_failed(said: str, source: Path) -> DatabaseUnavailable:
    failure = server_failed("The restore failed; the database is as it was", said, source.absolute().parent)
    if "role" in said and "does not exist" in said:
        failure.hint = "Foliot's roles must exist on that server first: run `foliot migrate` on it once, then restore with --replace."
    elif "lock timeout" in said:
        failure.hint = "The database is in use. Stop every Foliot that works on it, then restore again."
    return failure
