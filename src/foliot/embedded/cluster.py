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


def prepare(place: ClusterLocation, binaries: Binaries) -> ClusterLocation:
    """A cluster of the right version is there afterwards."""
    written_by = place.cluster / "PG_VERSION"
    if not written_by.exists():
        _create(place, binaries)
    elif (major := int(written_by.read_text().split(".")[0])) != binaries.major:
        raise _other_version(place, binaries, major)
    return place if place.record.ready else place.mark_ready()


def _create(place: ClusterLocation, binaries: Binaries) -> None:
    """Under another name until it is whole, so that a start killed halfway is simply begun again."""
    draft = place.home / "data.new"
    password = place.home / "password.new"
    try:
        orphans.clear(draft)
        shutil.rmtree(draft, ignore_errors=True)
        password.unlink(missing_ok=True)
        _write_password(password, place)
        made = run_as(place.account, *_initdb(binaries, draft, password))
        if made.returncode:
            raise server_failed(
                "PostgreSQL could not make a new database (initdb failed)", made.stdout, place.home
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
        made = run_as(place.account, *single, text=f"CREATE DATABASE {DATABASE}\n")
        if made.returncode:
            raise server_failed(f"PostgreSQL could not make the database {DATABASE}", made.stdout, place.home)
        sync_file_system(
            place.home
        )  # once for all 1,300 files: file by file this takes seconds on a slow disk
        draft.rename(place.cluster)
        sync_folder(place.home)
    except OSError as error:
        raise cannot_write(place.home, error) from error
    finally:
        password.unlink(missing_ok=True)
        shutil.rmtree(draft, ignore_errors=True)  # a full disk gets its room back


def _initdb(binaries: Binaries, draft: Path, password: Path) -> tuple[str | Path, ...]:
    locale: tuple[str, ...] = ("--locale=C",)
    if binaries.major >= BUILTIN_LOCALES:
        locale = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    return (
        binaries / "initdb", "-D", draft, "-U", OWNER, "-A", "scram-sha-256", f"--pwfile={password}",
        "-E", "UTF8", *locale, "--data-checksums", "--no-instructions", "--no-sync",
    )  # fmt: skip


def _write_password(path: Path, place: ClusterLocation) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(opened, "w") as file:
        if place.account.is_lent:
            os.fchown(opened, place.account.uid, place.account.gid)
        file.write(f"{place.record.password}\n")


def _other_version(place: ClusterLocation, binaries: Binaries, major: int) -> DatabaseUnavailable:
    usual = Path(f"/usr/lib/postgresql/{major}/bin")
    old = next((found.bindir for found in installed("postgres") if found.major == major), usual)
    kept, dumped = f"{place.home}-{major}", place.data_dir / f"from-{major}.dump"
    here = f"FOLIOT_DATA_DIR={shlex.quote(str(place.data_dir))}"
    with_old = f"FOLIOT_PG_BINDIR={shlex.quote(str(old))}"
    commands = (
        f"{with_old} {here} foliot db dump {shlex.quote(str(dumped))}",
        f"mv {shlex.quote(str(place.home))} {shlex.quote(kept)}",
        f"mv {shlex.quote(str(ClusterRecord.path(place.data_dir)))} {shlex.quote(kept)}/",
        f"{here} foliot db restore {shlex.quote(str(dumped))}",
    )
    return DatabaseUnavailable(
        f"The database in {place.home} was written by PostgreSQL {major}; the programs in {binaries.bindir} are version {binaries.version}.",
        hint=f"Nothing was changed. To stay with version {major}, set {with_old}. "
        f"To move to version {binaries.major} (needs the programs of both):\n"
        + "\n".join(f"    {line}" for line in commands),
    )
