"""The files of the database: made once, complete or not at all, and never opened by another major version.

Why: docs/decisions/002-private-postgresql-own-launcher.md
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded import orphans
from foliot.embedded.binaries import Binaries, installed
from foliot.embedded.config import DATABASE, OWNER
from foliot.embedded.failures import cannot_write, server_failed
from foliot.embedded.files import sync_file_system, sync_folder
from foliot.embedded.locations import ClusterLocation, ClusterRecord
from foliot.embedded.privilege import run_as

BUILTIN_LOCALES = 17  # the first version whose own C.UTF-8 knows upper and lower case beyond ASCII


def prepare(location: ClusterLocation, binaries: Binaries) -> ClusterLocation:
    """Create the cluster if it is missing, and refuse one of another major version."""
    written_by = location.cluster / "PG_VERSION"
    if not written_by.exists():
        _create(location, binaries)
    elif (major := int(written_by.read_text().split(".")[0])) != binaries.major:
        raise _other_version(location, binaries, major)
    return location if location.record.ready else location.mark_ready()


def _create(location: ClusterLocation, binaries: Binaries) -> None:
    """Create it under another name until it is complete: a start that is killed halfway starts again."""
    draft = location.home / "data.new"
    password = location.home / "password.new"
    try:
        orphans.clear(draft)
        shutil.rmtree(draft, ignore_errors=True)
        password.unlink(missing_ok=True)
        _write_password(password, location)
        made = run_as(location.account, *_initdb(binaries, draft, password))
        if made.returncode:
            raise server_failed(
                "PostgreSQL could not make a new database (initdb failed)", made.stdout, location.home
            )
        single = (
            binaries / "postgres",
            "--single",
            "-D",
            draft,
            "-c",
            "exit_on_error=on",
            "-c",
            "fsync=off",
            "postgres",
        )
        made = run_as(location.account, *single, text=f"CREATE DATABASE {DATABASE}\n")
        if made.returncode:
            raise server_failed(
                f"PostgreSQL could not make the database {DATABASE}", made.stdout, location.home
            )
        sync_file_system(
            location.home
        )  # once for all 1,300 files: one by one they take seconds on a slow disk
        draft.rename(location.cluster)
        sync_folder(location.home)
    except OSError as error:
        raise cannot_write(location.home, error) from error
    finally:
        password.unlink(missing_ok=True)
        shutil.rmtree(draft, ignore_errors=True)  # frees space on a full disk


def _initdb(binaries: Binaries, draft: Path, password: Path) -> tuple[str | Path, ...]:
    locale: tuple[str, ...] = ("--locale=C",)
    if binaries.major >= BUILTIN_LOCALES:
        locale = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    return (
        binaries / "initdb", "-D", draft, "-U", OWNER, "-A", "scram-sha-256", f"--pwfile={password}",
        "-E", "UTF8", *locale, "--data-checksums", "--no-instructions", "--no-sync",
    )  # fmt: skip


def _write_password(path: Path, location: ClusterLocation) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(opened, "w") as file:
        if location.account.is_lent:
            os.fchown(opened, location.account.uid, location.account.gid)
        file.write(f"{location.record.password}\n")


def _other_version(location: ClusterLocation, binaries: Binaries, major: int) -> DatabaseUnavailable:
    usual = Path(f"/usr/lib/postgresql/{major}/bin")
    old = next((found.bindir for found in installed("postgres") if found.major == major), usual)
    kept, dumped = f"{location.home}-{major}", location.data_dir / f"from-{major}.dump"
    here = f"FOLIOT_DATA_DIR={shlex.quote(str(location.data_dir))}"
    with_old = f"FOLIOT_PG_BINDIR={shlex.quote(str(old))}"
    commands = (
        f"{with_old} {here} foliot db dump {shlex.quote(str(dumped))}",
        f"mv {shlex.quote(str(location.home))} {shlex.quote(kept)}",
        f"mv {shlex.quote(str(ClusterRecord.path(location.data_dir)))} {shlex.quote(kept)}/",
        f"{here} foliot db restore {shlex.quote(str(dumped))}",
    )
    return DatabaseUnavailable(
        f"The database in {location.home} was written by PostgreSQL {major}; the programs in {binaries.bindir} are version {binaries.version}.",
        hint=f"Nothing was changed. To stay with version {major}, set {with_old}. "
        f"To move to version {binaries.major} (needs the programs of both):\n"
        + "\n".join(f"    {line}" for line in commands),
    )
