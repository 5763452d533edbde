"""The location of the server's files: inside the data directory or, where that cannot be, in a private folder elsewhere.

    <data dir>/postgres.json    0600: the owner's password and the folder elsewhere, if any
    <data dir>/postgres.log     the server's log
    <data dir>/postgres/        0700, owned by the account PostgreSQL runs as: data/, the socket and our mark

No permission outside these folders is ever changed, and no folder changes its owner that is not empty or marked as ours.

Why: docs/decisions/003-private-postgresql-files-and-owner.md
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded import privilege
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.failures import OTHER_WAYS, cannot_write
from foliot.embedded.files import sync_folder
from foliot.embedded.privilege import Account, name_of


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """The facts that one start passes to the next, in postgres.json."""

    elsewhere: Path | None  # the server's folder when it is not in the data directory
    password: str  # of the owner
    ready: bool  # a cluster has been made

    @staticmethod
    def path(data_dir: Path) -> Path:
        return data_dir / "postgres.json"

    @classmethod
    def load(cls, data_dir: Path) -> ClusterRecord | None:
        path = cls.path(data_dir)
        try:
            fields = json.loads(_read(path))
            elsewhere = fields["elsewhere"]
            return cls(Path(elsewhere) if elsewhere else None, str(fields["password"]), bool(fields["ready"]))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise cannot_write(path, error) from error
        except (ValueError, KeyError, TypeError):
            raise DatabaseUnavailable(
                f"{path} is damaged; it holds where the database is and its password.",
                hint="Restore it from a backup.",
            ) from None

    def home(self, data_dir: Path) -> Path:
        return self.elsewhere or data_dir / "postgres"

    def save(self, data_dir: Path) -> None:
        """Write it completely or not at all, even through a power cut: the password is nowhere else."""
        fields = {
            "elsewhere": str(self.elsewhere) if self.elsewhere else None,
            "password": self.password,
            "ready": self.ready,
        }
        path = self.path(data_dir)
        draft = path.with_suffix(".new")
        try:
            with os.fdopen(
                os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w"
            ) as file:
                json.dump(fields, file)
                file.flush()
                os.fsync(file.fileno())
            draft.rename(path)
            sync_folder(data_dir)
        except OSError as error:
            raise cannot_write(data_dir, error) from error


def _read(path: Path) -> str:
    """Check the open file, so that no other file can replace it between the check and the reading."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
        found = os.fstat(file.fileno())
        if os.geteuid() == 0 and (found.st_uid != 0 or found.st_mode & 0o022):
            raise DatabaseUnavailable(
                f"{path} was written by user {name_of(found.st_uid)} or may be changed by others, and this is root.",
                hint=f"If you trust what it says: chown root {path}; chmod 600 {path}",
            )
        return file.read()


LONGEST_SOCKET = 100  # bytes; the kernel's limit is 107
SOCKET = "/.s.PGSQL.65535"
MARK = "made-by-foliot"


@dataclass(frozen=True, slots=True)
class ClusterLocation:
    data_dir: Path
    home: Path
    sockets: Path | None  # None where no folder has a short enough path: then TCP only
    account: Account
    record: ClusterRecord
    notes: tuple[str, ...] = ()

    @property
    def cluster(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.data_dir / "postgres.log"

    def mark_ready(self) -> ClusterLocation:
        """Record that the cluster exists: a missing one is an error from here on, not a first start."""
        ready = replace(self.record, ready=True)
        ready.save(self.data_dir)
        return replace(self, record=ready)


def locate_cluster(config: EmbeddedConfig) -> ClusterLocation:
    data_dir = config.data_dir.absolute()
    record = ClusterRecord.load(data_dir)
    if record is not None:
        _refuse_unknown_folder(config, data_dir, record)
    home = record.home(data_dir) if record else data_dir / "postgres"
    account = privilege.choose(config.user, home)
    if record is None:
        _refuse_foreign_files(data_dir, home)
        location = _first_location(config, data_dir, account)
    else:
        location = _known_location(data_dir, record, account)
    return _with_sockets(config, location)


def has_database(data_dir: Path) -> bool:
    """Return whether an earlier start made a database here, by its record."""
    record = ClusterRecord.load(data_dir)
    return record is not None and record.ready


def private_bases(config: EmbeddedConfig) -> Iterator[Path]:
    """Yield folders for files that cannot be in the data directory, best first, each safe from other users."""
    uid = os.geteuid()
    for base in _bases(config):
        try:
            base.parent.mkdir(parents=True, exist_ok=True)
            base.mkdir(mode=0o700)
            if uid == 0:
                base.chmod(0o711)  # the lent account must reach its own folder
        except FileExistsError:
            pass
        except OSError:
            continue
        if _is_safe(base, uid):
            yield base


def last_resorts(uid: int) -> tuple[Path, ...]:
    in_tmp = Path(f"/var/tmp/foliot-{uid}")  # noqa: S108  # _is_safe checks its owner
    return (Path("/var/lib/foliot"), in_tmp) if uid == 0 else (in_tmp,)


def _bases(config: EmbeddedConfig) -> tuple[Path, ...]:
    own = (config.state_home / "foliot",) if config.state_home else ()
    return (*own, *last_resorts(os.geteuid()))


def make_private(folder: Path, account: Account) -> None:
    """Make the folder 0700 and owned by `account`, also an existing one. Raise OSError for a link."""
    folder.mkdir(mode=0o700, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if account.is_lent:
            os.fchown(opened, account.uid, account.gid)
        os.fchmod(opened, 0o700)
    finally:
        os.close(opened)


def _first_location(config: EmbeddedConfig, data_dir: Path, account: Account) -> ClusterLocation:
    inside = data_dir / "postgres"
    record = ClusterRecord(elsewhere=None, password=secrets.token_urlsafe(32), ready=False)
    if _try(inside, account):
        notes: tuple[str, ...] = ()
    else:
        # A new name each time: after `rm -r` of the data directory, a start must not find the old database again.
        name = f"{data_dir.name.lstrip('.') or 'data'}-{secrets.token_hex(4)}"
        home = next((base / name for base in private_bases(config) if _try(base / name, account)), None)
        if home is None:
            raise DatabaseUnavailable(
                f"User {account.name}, whom PostgreSQL runs as, cannot use {data_dir}, and no private folder could be made elsewhere.",
                hint=OTHER_WAYS,
            )
        record = replace(record, elsewhere=home)
        notes = (_why_elsewhere(account, data_dir, home),)
    record.save(data_dir)
    return ClusterLocation(data_dir, record.home(data_dir), None, account, record, notes)


def _known_location(data_dir: Path, record: ClusterRecord, account: Account) -> ClusterLocation:
    home = record.home(data_dir)
    if not home.exists() and not record.ready:
        _try(home, account)  # the first start died before it made the folder
    try:
        found = home.lstat()
    except OSError:
        raise _gone(data_dir, home) from None
    if not stat.S_ISDIR(found.st_mode) or (found.st_uid != account.uid and not account.is_lent):
        raise _not_ours(
            home, f"it belongs to user {privilege.name_of(found.st_uid)}, and this is user {account.name}"
        )
    if account.is_lent and found.st_uid != account.uid:
        if not _is_ours(home):
            raise _not_ours(
                home, f"it belongs to user {privilege.name_of(found.st_uid)} and has no file {MARK}"
            )
        privilege.hand_over(home, account)
    if not privilege.may_use(account, home):
        raise DatabaseUnavailable(
            f"The database is in {home}, which user {account.name} can no longer reach.",
            hint="Put the folder back where it was, or give that user the right to pass through the folders above it.",
        )
    if record.ready and not (home / "data" / "PG_VERSION").exists():
        raise _gone(data_dir, home)
    notes = (_why_elsewhere(account, data_dir, home),) if record.elsewhere else ()
    return ClusterLocation(data_dir, home, None, account, record, notes)


def _with_sockets(config: EmbeddedConfig, location: ClusterLocation) -> ClusterLocation:
    if _fits(location.home):
        return replace(location, sockets=location.home)
    name = "socket-" + hashlib.sha256(os.fsencode(location.home)).hexdigest()[:12]
    for base in private_bases(config):
        if _fits(base / name) and _try(base / name, location.account):
            note = f"The database's socket is in {base / name}, because the path of {location.home} is too long for one."
            return replace(location, sockets=base / name, notes=(*location.notes, note))
    note = f"The database has no socket, because the path of {location.home} is too long for one; it is reached by TCP."
    return replace(location, notes=(*location.notes, note))


def _try(folder: Path, account: Account) -> bool:
    """Make the folder and return whether the account can use it; leave nothing behind if not."""
    existed = folder.exists()
    try:
        make_private(folder, account)
        usable = privilege.may_use(account, folder)
        if usable:
            _mark(folder)
    except OSError as error:
        if not account.is_lent:
            raise cannot_write(folder, error) from error
        usable = False  # such as a network file system where root may not give files away
    if not usable and not existed and folder.is_dir():
        folder.rmdir()
    return usable


def _is_safe(base: Path, uid: int) -> bool:
    """Check the folder: in a shared one like /var/tmp another user may have made it, or put a link there."""
    found = base.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o022


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) + len(SOCKET) <= LONGEST_SOCKET


def _refuse_foreign_files(data_dir: Path, home: Path) -> None:
    if (data_dir / "PG_VERSION").exists():
        raise _not_ours(data_dir, "it is the data directory of some PostgreSQL server")
    if home.is_symlink() or (home.exists() and not home.is_dir()):
        raise _not_ours(home, "it is not a folder that Foliot made")
    if (home / "data").exists():
        raise _not_ours(
            home, f"a database is there without {ClusterRecord.path(data_dir)}, which holds its password"
        )
    if home.exists() and not _is_ours(home):
        raise _not_ours(home, f"it is not empty and has no file {MARK}")


def _refuse_unknown_folder(config: EmbeddedConfig, data_dir: Path, record: ClusterRecord) -> None:
    """Refuse a recorded folder that Foliot did not make: root would give it away."""
    where = record.elsewhere
    if where is None or (where.name != ".." and (where.parent in _bases(config) or _was_base(where))):
        return
    raise _not_ours(
        where, f"{ClusterRecord.path(data_dir)} says that the database is there, where Foliot puts none"
    )


def _was_base(home: Path) -> bool:
    """Accept an earlier state home: it may have been another when the database was made."""
    base = home.parent
    return base.name == "foliot" and base.exists() and _is_safe(base, os.geteuid()) and (home / MARK).exists()


def _mark(folder: Path) -> None:
    with suppress(FileExistsError):
        os.close(os.open(folder / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))


def _is_ours(folder: Path) -> bool:
    """Return whether an earlier start made the folder, or it is empty."""
    return (folder / MARK).exists() or not any(folder.iterdir())


def _not_ours(path: Path, why: str) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"Foliot does not touch {path}: {why}.", hint=OTHER_WAYS)


def _gone(data_dir: Path, home: Path) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"The database of {data_dir} was in {home} and is no longer there.",
        hint=f"Bring that folder back. To start with an empty database instead, delete {ClusterRecord.path(data_dir)}.",
    )


def _why_elsewhere(account: Account, data_dir: Path, home: Path) -> str:
    return f"The database is in {home}, because user {account.name}, whom PostgreSQL runs as, cannot use {data_dir}."
