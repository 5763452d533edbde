"""Every setting, once. The fields of `Settings` are the table from which environment names, keys of
`foliot.toml`, command-line flags and docs/reference/settings.md are made. This room reads no environment
by itself: `load` is given one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

PREFIX = "FOLIOT_"
FILE_SUFFIX = "_FILE"


class Kind(Protocol):
    """How one kind of value is read from text (environment, flag) or TOML. `must_be` completes "it must be …"."""

    @property
    def must_be(self) -> str: ...

    def read(self, raw: object, base: Path) -> Any:
        """The value, or ValueError. `base` is the folder that relative paths start from."""


@dataclass(frozen=True, slots=True)
class Text:
    must_be: str = "text"

    def read(self, raw: object, base: Path) -> str:
        if not isinstance(raw, str):
            raise ValueError  # noqa: TRY004  # one exception says "not that", whatever TOML held
        return raw


@dataclass(frozen=True, slots=True)
class Folder:
    must_be: str = "a path"

    def read(self, raw: object, base: Path) -> Path:
        if not isinstance(raw, str) or "\0" in raw:
            raise ValueError
        try:
            return base / Path(raw).expanduser()
        except RuntimeError as unknown_user:
            raise ValueError from unknown_user


@dataclass(frozen=True, slots=True)
class WholeNumber:
    low: int
    high: int

    @property
    def must_be(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def read(self, raw: object, base: Path) -> int:
        if isinstance(raw, str) and raw.isascii() and raw.isdigit() and len(raw) < 20:
            raw = int(raw)
        if not isinstance(raw, int) or isinstance(raw, bool) or not self.low <= raw <= self.high:
            raise ValueError
        return raw


@dataclass(frozen=True, slots=True)
class OneOf:
    words: tuple[str, ...]

    @property
    def must_be(self) -> str:
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def read(self, raw: object, base: Path) -> str:
        if not isinstance(raw, str) or raw.lower() not in self.words:
            raise ValueError
        return raw.lower()


@dataclass(frozen=True, slots=True)
class Url:
    schemes: tuple[str, ...]

    @property
    def must_be(self) -> str:
        return f"an address that starts with {' or '.join(f'{scheme}://' for scheme in self.schemes)}"

    def read(self, raw: object, base: Path) -> str:
        if not isinstance(raw, str) or not raw.startswith(tuple(f"{scheme}://" for scheme in self.schemes)):
            raise ValueError
        return raw


@dataclass(frozen=True, slots=True)
class PostgresUrl(Url):
    """As libpq reads it. What it would misread is refused here, because its errors quote pieces of the password."""

    schemes: tuple[str, ...] = ("postgresql", "postgres")

    @property
    def must_be(self) -> str:
        return (
            "an address such as postgresql://user:password@host:5432/database, "
            "in whose password % is written %25, @ %40, / %2F and a blank %20"
        )

    def read(self, raw: object, base: Path) -> str:
        url = Url.read(self, raw, base)  # super() does not survive slots
        if not url.isprintable() or " " in url or _BROKEN_ESCAPE.search(url):
            raise ValueError
        front, _, path = url.partition("://")[2].partition("/")
        hosts = front.partition("@")[2] if "@" in front else front
        hosts = hosts.partition("?")[0]
        if "@" in hosts + path.partition("?")[0] or not all(map(_HOST.fullmatch, hosts.split(","))):
            raise ValueError
        return url


@dataclass(frozen=True, slots=True)
class Networks:
    must_be: str = "networks such as 10.0.0.0/8, divided by commas"

    def read(self, raw: object, base: Path) -> tuple[str, ...]:
        parts = raw.split(",") if isinstance(raw, str) else raw
        if not isinstance(parts, list):
            raise ValueError  # noqa: TRY004
        return tuple(str(ip_network(part.strip())) for part in parts if part.strip())


@dataclass(frozen=True, slots=True)
class Queues:
    must_be: str = "names of queues divided by commas, or * for all of them"

    def read(self, raw: object, base: Path) -> tuple[str, ...]:
        parts = raw.split(",") if isinstance(raw, str) else raw
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise ValueError
        names = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
        if not names or ("*" in names and len(names) > 1):
            raise ValueError
        return names


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    name: str
    kind: Kind
    default: Any
    about: str
    unit: str | None
    secret: bool
    in_toml: bool

    @property
    def env(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str | None:
        """Secrets have none: other users of a machine can read command lines."""
        return None if self.secret else "--" + self.name.replace("_", "-")


def as_row(
    kind: Kind, about: str, *, unit: str | None = None, secret: bool = False, in_toml: bool = True
) -> dict[str, Any]:
    return {"kind": kind, "about": about, "unit": unit, "secret": secret, "in_toml": in_toml}


POSTGRES = PostgresUrl()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings with their values; `origins` says where each came from."""

    config: Path | None = field(
        default=None,
        metadata=as_row(
            Folder(), "File to read settings from. Default: foliot.toml in the current folder.", in_toml=False
        ),
    )
    data_dir: Path = field(
        default=Path(".foliot"),
        metadata=as_row(
            Folder(),
            "Folder of the private PostgreSQL and of admin.key; made for this user alone. "
            "The default is relative to the current folder.",
        ),
    )
    host: str = field(default="127.0.0.1", metadata=as_row(Text(), "Address that HTTP listens on."))
    port: int = field(
        default=8700,
        metadata=as_row(
            WholeNumber(0, 65535), "Port that HTTP listens on; 0 takes a free one and prints it."
        ),
    )
    database_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "PostgreSQL 15 or newer to work on. Without it Foliot runs its own under data_dir.",
            secret=True,
        ),
    )
    migrate_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "The same database as its owner, for migrations; not needed while there are none to apply. Default: "
            "database_url, which weakens the separation of workspaces where it owns the tables.",
            secret=True,
        ),
    )
    listen_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "The same database with no pooler between, for LISTEN: hints that make runs start at once. "
            "Default: database_url.",
            secret=True,
        ),
    )
    test_database_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "PostgreSQL that the test suite runs on instead of its own. Only ./dev test reads it.",
            secret=True,
        ),
    )
    api_url: str = field(
        default="http://127.0.0.1:8700",
        metadata=as_row(
            Url(("http", "https")),
            "Foliot server that clients on this machine speak to. Not used yet: there is no API.",
        ),
    )
    api_key: str | None = field(
        default=None,
        metadata=as_row(
            Text(),
            "Key that clients send. Default: the one in data_dir/admin.key. Not used yet.",
            secret=True,
        ),
    )
    master_key: str | None = field(
        default=None,
        metadata=as_row(
            Text(),
            "Key that encrypts stored secrets. Default: data_dir/master.key. Not used yet.",
            secret=True,
        ),
    )
    egress_allow: tuple[str, ...] = field(
        default=(),
        metadata=as_row(
            Networks(),
            "Networks beyond the public internet that http jobs and webhooks may reach. "
            "Not used yet: http jobs may reach every network that the server can.",
        ),
    )
    pg_bindir: Path | None = field(
        default=None,
        metadata=as_row(
            Folder(),
            "Folder of the PostgreSQL programs. Default: those of foliot[local], else those installed.",
        ),
    )
    log_format: str = field(
        default="auto",
        metadata=as_row(
            OneOf(("auto", "human", "json")),
            "How log lines look; auto is human on a terminal, json elsewhere.",
        ),
    )
    log_level: str = field(
        default="info",
        metadata=as_row(
            OneOf(("debug", "info", "warning", "error")), "The least important log lines to keep."
        ),
    )
    shutdown_grace: int = field(
        default=3,
        metadata=as_row(
            WholeNumber(0, 10),
            "How long requests under way may go on after SIGTERM or SIGINT.",
            unit="seconds",
        ),
    )
    worker_concurrency: int = field(
        default=10,
        metadata=as_row(
            WholeNumber(0, 10_000),
            "How many runs the worker of `foliot serve` does at once; 0 starts none.",
        ),
    )
    worker_queues: tuple[str, ...] = field(
        default=("*",),
        metadata=as_row(
            Queues(),
            "Queues that the worker of `foliot serve` serves, divided by commas; * serves them all.",
        ),
    )
    worker_grace: int = field(
        default=5,
        metadata=as_row(
            WholeNumber(0, 7),
            "How long runs under way may go on after SIGTERM or SIGINT; then they are handed back and repeated.",
            unit="seconds",
        ),
    )
    worker_lease: int = field(
        default=30,
        metadata=as_row(
            WholeNumber(2, 3600),
            "How long a worker may be silent before its runs are given to others.",
            unit="seconds",
        ),
    )
    origins: Mapping[str, str] = field(default_factory=dict)

    def secrets(self) -> tuple[str, ...]:
        """The values that may never be printed: whole, and the password inside an address."""
        values = [getattr(self, row.name) for row in TABLE if row.secret]
        whole = [value for value in values if value is not None]
        inside = [found for value in whole for found in passwords_in(value)]
        return (*whole, *inside, *(unquote(each) for each in inside))


TABLE: tuple[Setting, ...] = tuple(
    Setting(name=each.name, default=each.default, **each.metadata)
    for each in fields(Settings)
    if each.metadata
)
BY_NAME: Mapping[str, Setting] = {row.name: row for row in TABLE}


@dataclass(frozen=True, slots=True)
class Problem:
    message: str
    hint: str | None = None


class SettingsError(Exception):
    """A setting has a name or a value that Foliot does not know. All problems are told at once."""

    code = "setting.invalid"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


def load(environ: Mapping[str, str], flags: Mapping[str, str | None], cwd: Path) -> Settings:
    """Flag, then environment, then foliot.toml, then default. `flags` maps setting names to what was typed."""
    problems: list[Problem] = []
    given: dict[str, tuple[object, str, Path]] = {}  # name -> raw value, where from, base of relative paths
    named = flags.get("config") or environ.get(PREFIX + "CONFIG")
    config = cwd / Path(named or "foliot.toml").expanduser()
    for name, value in _from_toml(config, must_exist=bool(named), problems=problems):
        given[name] = (value, config.name, config.parent)
    for name, text, where in _from_environment(environ, cwd, problems):
        given[name] = (text, where, cwd)
    for name, typed in flags.items():
        if typed is not None:
            given[name] = (typed, BY_NAME[name].flag or name, cwd)

    values: dict[str, Any] = {
        "data_dir": cwd / Settings.data_dir,
        "config": config if config.is_file() else None,
    }
    for name, (raw, where, base) in given.items():
        row = BY_NAME[name]
        try:
            values[name] = row.kind.read(raw, base)
        except (ValueError, AttributeError):
            problems.append(_wrong_value(row, raw, where))
    if problems:
        raise SettingsError(tuple(problems))
    origins = {row.name: given[row.name][1] if row.name in given else "default" for row in TABLE}
    return Settings(**values, origins=origins)


def shown(row: Setting, settings: Settings) -> str:
    """A setting's value as a person may see it: no key, and no password inside an address."""
    value = getattr(settings, row.name)
    if value is None or value == ():
        return ""
    if isinstance(value, tuple):
        return ", ".join(value)
    if row.secret and isinstance(row.kind, Url):
        return without_password(value)
    return "********" if row.secret else str(value)


def without_password(url: str) -> str:
    return _IN_QUERY.sub(r"\1********", _PASSWORD.sub(r"\1********\3", url))


def passwords_in(url: str) -> list[str]:
    return [match[2] for pattern in (_PASSWORD, _IN_QUERY) for match in pattern.finditer(url)]


# The last @ ends the password: people forget to escape the ones inside.
_PASSWORD = re.compile(r"(://[^:/@]*:)(.*)(@[^@]*$)")
_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)([^&#]*)")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?")
_KUBERNETES = re.compile(r"FOLIOT_(SERVICE_(HOST|PORT)|PORT_\d+_(TCP|UDP)).*")


def _from_environment(
    environ: Mapping[str, str], cwd: Path, problems: list[Problem]
) -> Iterator[tuple[str, str, str]]:
    """(setting, text, where from) for each FOLIOT_* name; an empty value counts as not set."""
    by_env = {row.env: row for row in TABLE}
    by_file = {row.env + FILE_SUFFIX: row for row in TABLE if row.secret}
    for name in sorted(name for name, value in environ.items() if name.startswith(PREFIX) and value):
        if row := by_env.get(name):
            yield row.name, environ[name], f"{name} from the environment"
        elif row := by_file.get(name):
            if environ.get(row.env):
                problems.append(Problem(f"{row.env} and {name} are both set.", "Keep one of them."))
                continue
            try:
                content = (cwd / environ[name]).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not text"
                problems.append(Problem(f"{name} names {environ[name]!r}, which cannot be read: {reason}."))
                continue
            yield row.name, content, f"the file that {name} names"
        else:
            problems.append(_unknown(name, "a setting of Foliot", (*by_env, *by_file)))


def _from_toml(path: Path, *, must_exist: bool, problems: list[Problem]) -> Iterator[tuple[str, object]]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if must_exist:
            problems.append(Problem(f"There is no file {path}.", "FOLIOT_CONFIG or --config names it."))
        return
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problems.append(Problem(f"{path} cannot be read: {error}"))
        return
    keys = {row.name for row in TABLE if row.in_toml}
    for key, value in content.items():
        if key in keys:
            yield key, value
        else:
            problems.append(_unknown(key, f"a key of {path.name}", tuple(keys)))


def _unknown(name: str, what: str, known: tuple[str, ...]) -> Problem:
    if _KUBERNETES.fullmatch(name):
        hint = "Kubernetes adds such names for a service called foliot: set enableServiceLinks: false in the pod."
    elif near := get_close_matches(name.upper(), [each.upper() for each in known], 1, 0.75):
        hint = f"Did you mean {next(each for each in known if each.upper() == near[0])}?"
    else:
        hint = "`foliot settings` lists them all."
    return Problem(f"{name} is not {what}.", hint)


def _wrong_value(row: Setting, raw: object, where: str) -> Problem:
    named = where if row.env in where or where == row.flag else f"{row.name} in {where}"
    got = "a value that is not shown here" if row.secret else repr(raw)
    hint = None
    if isinstance(raw, str) and raw.startswith("tcp://"):
        hint = "Kubernetes sets this for a service called foliot: set enableServiceLinks: false in the pod."
    return Problem(f"{named} is {got}; it must be {row.kind.must_be}.", hint)
