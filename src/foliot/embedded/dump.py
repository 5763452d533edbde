"""Dump Foliot's part of a database into one file and restore it, on the embedded server or any other.

Roles are not in the file: they belong to the server, and migrations create them. The caller creates them before a restore to a new
server. The restored tables belong to the owner of the tables that they replace or else of the database: a superuser that
restores must not keep them from the login that migrates.

Why: docs/decisions/004-dump-and-restore.md
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from foliot.domain.errors import Conflict, DatabaseUnavailable, FoliotError, Invalid, NotFound
from foliot.embedded import clients
from foliot.embedded.clients import Clients
from foliot.embedded.failures import DISK_FULL, disk_full, server_failed
from foliot.embedded.files import sync_folder

SCHEMA = "foliot"  # ours alone; other schemas of the database stay unchanged
IS_THERE = f"SELECT to_regclass('{SCHEMA}.migrations') IS NOT NULL"
IS_FILLED = f"SELECT to_regnamespace('{SCHEMA}') IS NOT NULL"
DROP = f"""
SET lock_timeout = '10s';
SET client_min_messages = warning;
DROP SCHEMA {SCHEMA} CASCADE;
"""
# The owner that the restored tables must have; empty where that is the login itself, or where it may not give them away.
OWNER = f"""
SELECT coalesce(quote_ident(owner.rolname), '')
  FROM pg_roles AS me
  LEFT JOIN pg_roles AS owner ON owner.oid <> me.oid AND owner.oid = coalesce(
       (SELECT nspowner FROM pg_namespace WHERE nspname = '{SCHEMA}'),
       (SELECT datdba FROM pg_database WHERE datname = current_database()))
 WHERE me.rolname = current_user AND me.rolsuper
"""  # noqa: S608  # a constant
# Sequences of columns follow their tables, and types of tables too.
GIVE = f"""
DO $give$
DECLARE
  command text;
BEGIN
  FOR command IN
    SELECT 'ALTER SCHEMA {SCHEMA}'
    UNION ALL
    SELECT format('ALTER TABLE %s', c.oid::regclass) FROM pg_class AS c
     WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
       AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i') AND c.relkind = 'S')
    UNION ALL
    SELECT format('ALTER ROUTINE %s', p.oid::regprocedure) FROM pg_proc AS p
     WHERE p.pronamespace = '{SCHEMA}'::regnamespace
    UNION ALL
    SELECT format('ALTER TYPE %s', t.oid::regtype) FROM pg_type AS t
     WHERE t.typnamespace = '{SCHEMA}'::regnamespace AND t.typtype IN ('e', 'd')
  LOOP
    EXECUTE command || ' OWNER TO {{owner}}';
  END LOOP;
END $give$;
"""  # noqa: S608  # a constant
OUR_TABLE = re.compile(rf"^\d+; \d+ \d+ TABLE DATA {SCHEMA} migrations ", re.MULTILINE)


def dump(bindir: Path | None, url: str, target: Path) -> int:
    """Write Foliot's schema to `target` and return the size in bytes. `target` is complete or untouched."""
    if not target.absolute().parent.is_dir() or target.is_dir():
        raise Invalid(
            f"The dump cannot be written to {target}: {'that is a folder' if target.is_dir() else 'its folder does not exist'}.",
            hint="Name a file in a folder that exists.",
        )
    tools = clients.connect(bindir, url, "pg_dump")
    if tools.ask(IS_THERE) != "t":
        raise NotFound(
            f"There is no Foliot in the database {tools.ask('SELECT current_database()')}; there is nothing to dump.",
            hint="Check FOLIOT_DATABASE_URL; `foliot migrate` would make one.",
        )
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        draft.touch(mode=0o600, exist_ok=False)
        done = tools.run("pg_dump", "--format=custom", f"--schema={SCHEMA}", f"--file={draft}")
        if done.returncode:
            raise _dump_failed(done.stderr, target)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.rename(target)
        sync_folder(target.absolute().parent)
        return target.stat().st_size
    except OSError as error:
        raise _cannot_keep(target, error) from error
    finally:
        draft.unlink(missing_ok=True)


def restore(bindir: Path | None, url: str, source: Path, *, replace: bool = False) -> None:
    """Restore `source` into a database without Foliot; with `replace`, drop the Foliot that is there.

    One transaction: if anything fails, the database is unchanged.
    """
    tools = clients.connect(bindir, url, "pg_restore")
    _check(tools, source)
    is_filled = tools.ask(IS_FILLED) == "t"
    if is_filled and not replace:
        raise Conflict(
            f"The database {tools.ask('SELECT current_database()')} has a Foliot already; restoring would mix two of them.",
            hint="Use --replace to delete Foliot's data there and restore the dump in its place.",
        )
    owner = tools.ask(OWNER)
    last = GIVE.format(owner=owner.replace("'", "''")) if owner else ""
    said = tools.run_restore(source, first=DROP if is_filled else "", last=last)
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
    if not OUR_TABLE.search(done.stdout):
        raise Invalid(
            f"{source} is a dump of something else: Foliot's tables are not in it.",
            hint="Use a file made by `foliot db dump`.",
        )


def _cannot_keep(target: Path, error: OSError) -> FoliotError:
    if error.errno in DISK_FULL:
        return disk_full(target, error.strerror or "no space left")
    return Invalid(
        f"The dump cannot be written to {target}: {error.strerror or error}.",
        hint="Name a file in a folder that you may write to.",
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
