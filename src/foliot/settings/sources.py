"""Read the settings: a flag wins over the environment, that over foliot.toml, that over the default.

Why: docs/decisions/007-settings-are-declared-once.md
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from foliot.settings.client import ClientSettings
from foliot.settings.declarations import FILE_SUFFIX, FLAGS, PREFIX, SettingProblem, SettingsError
from foliot.settings.fields import ORIGINS, Setting, rows_of
from foliot.settings.value_types import PATH

if TYPE_CHECKING:
    from foliot.settings.model import Settings

Model = TypeVar("Model", bound=ClientSettings)

# Variables that a command finds in its environment; it may call `foliot` itself.
RUN_VARIABLES = frozenset(
    f"{PREFIX}{name}" for name in ("RUN_ID", "ATTEMPT", "FENCE", "PLANNED_FOR", "JOB", "TRIGGER")
)
_KUBERNETES = re.compile(r"FOLIOT_(SERVICE_(HOST|PORT)|PORT_\d+_(TCP|UDP)).*")


def _roles(enabled: str) -> str | None:
    """A node that must not schedule answers the API only."""
    return "api" if enabled.strip().lower() in {"false", "0", "no", "off"} else None


def _in_seconds(minutes: str) -> str:
    return ",".join(str(int(part) * 60) if part.strip().isdecimal() else part for part in minutes.split(","))


# Variables of other systems, read while their dialect is on and the setting itself is not given: dialect, setting, their value in ours.
ALIASES: Mapping[str, tuple[str, str, Callable[[str], str | None]]] = {
    "SCHEDULER_ENABLED": ("scheduled-jobs", "roles", _roles),
    "SCHEDULER_TIMEZONE": ("scheduled-jobs", "default_timezone", str),
    "SCHEDULER_MAX_RETRIES": ("scheduled-jobs", "default_retries", str),
    "SCHEDULER_RETRY_DELAYS": ("scheduled-jobs", "default_retry_delays", _in_seconds),
    "SCHEDULER_LOCK_TTL": ("scheduled-jobs", "max_timeout", str),
    "SCHEDULER_NOTIFY_EMAIL": ("scheduled-jobs", "notify_email", str),
    "SCHEDULER_NOTIFY_WHATSAPP": ("scheduled-jobs", "notify_whatsapp", str),
    "SCHEDULED_JOBS_ENABLED": ("actions", "roles", _roles),
    "SCHEDULED_JOBS_MAX_CONCURRENT": ("actions", "worker_concurrency", str),
}


class _Source:
    """The values of one source, and the name of the source for each of them."""

    def __init__(self, base: Path) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self._base = base  # relative paths start here

    def add(self, name: str, value: Any, origin: str) -> None:
        self.values[name] = value
        self.origins[name] = origin

    def with_absolute_paths(self, rows: Mapping[str, Setting]) -> dict[str, Any]:
        return {
            name: self._absolute(value) if rows[name].type is PATH else value
            for name, value in self.values.items()
        }

    def _absolute(self, raw: Any) -> Any:
        try:
            return str(self._base / Path(raw).expanduser())
        except (TypeError, RuntimeError):  # validation refuses it with the right sentence
            return raw


def load(environ: Mapping[str, str], flags: Mapping[str, str | None], cwd: Path) -> Settings:
    """Read all settings, or raise SettingsError with every problem. `flags` maps setting names to the text typed."""
    from foliot.settings.model import Settings  # noqa: PLC0415  # a client does not need it

    return _load(Settings, environ, flags, cwd)


def load_client(environ: Mapping[str, str], cwd: Path) -> ClientSettings:
    """Read the settings of a client. Those of the server are neither read nor checked."""
    rows = rows_of(ClientSettings)
    names = {row.env for row in rows.values()} | {
        row.env + FILE_SUFFIX for row in rows.values() if row.secret
    }
    return _load(ClientSettings, {name: environ[name] for name in names & environ.keys()}, {}, cwd)


def _load(
    model: type[Model], environ: Mapping[str, str], flags: Mapping[str, str | None], cwd: Path
) -> Model:
    rows = rows_of(model)
    problems: list[SettingProblem] = []
    named = flags.get("config") or environ.get(PREFIX + "CONFIG")
    config = cwd / Path(named or "foliot.toml").expanduser()
    toml = _read_toml(config, rows, must_exist=bool(named), problems=problems)
    environment = _read_environment(environ, rows, cwd, problems)
    typed = _Source(cwd)
    for name, text in flags.items():
        if text is not None:
            typed.add(name, text, rows[name].flag or name)

    defaults = _Source(cwd)
    defaults.values = {"data_dir": str(FLAGS["data_dir"].default)}
    if config.is_file():
        defaults.values["config"] = str(config)
    given: dict[str, Any] = {}
    values: dict[str, Any] = {}
    origins = dict.fromkeys(rows, "default")
    for source in (defaults, toml, environment, typed):  # the last wins
        values |= source.with_absolute_paths(rows)
        origins |= source.origins
        given |= source.values if source is not defaults else {}
    try:
        settings = model.model_validate({**values, ORIGINS: origins})
    except ValidationError as error:
        wrong = {each["loc"][0] for each in error.errors(include_url=False, include_context=False)}
        problems += [
            _invalid_value(rows[name], given[name], origins[name]) for name in given if name in wrong
        ]
    if problems:
        raise SettingsError(tuple(problems))
    return settings


def _read_environment(
    environ: Mapping[str, str], rows: Mapping[str, Setting], cwd: Path, problems: list[SettingProblem]
) -> _Source:
    """Read every FOLIOT_* variable, and the files that FOLIOT_*_FILE names. An empty value counts as not set."""
    source = _Source(cwd)
    by_env = {row.env: row for row in rows.values()}
    by_file = {row.env + FILE_SUFFIX: row for row in rows.values() if row.secret}
    for name in sorted(name for name, value in environ.items() if name.startswith(PREFIX) and value):
        if row := by_env.get(name):
            source.add(row.name, environ[name], f"{name} from the environment")
        elif row := by_file.get(name):
            if environ.get(row.env):
                problems.append(SettingProblem(f"{row.env} and {name} are both set.", "Keep one of them."))
                continue
            try:
                content = (cwd / environ[name]).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not text"
                message = f"{name} names {environ[name]!r}, which cannot be read: {reason}."
                problems.append(SettingProblem(message))
                continue
            source.add(row.name, content, f"the file that {name} names")
        elif name not in RUN_VARIABLES:
            problems.append(_unknown_name(name, "a setting of Foliot", (*by_env, *by_file)))
    dialects = str(source.values.get("dialects", "")).lower()
    for name, (dialect, setting, read) in ALIASES.items():
        is_read = dialect in dialects and setting in rows and setting not in source.values
        if is_read and environ.get(name) and (value := read(environ[name])) is not None:
            source.add(setting, value, f"{name} from the environment")
    return source


def _read_toml(
    path: Path, rows: Mapping[str, Setting], *, must_exist: bool, problems: list[SettingProblem]
) -> _Source:
    source = _Source(path.parent)
    try:
        if not path.exists():
            if must_exist:
                hint = "FOLIOT_CONFIG or --config names it."
                problems.append(SettingProblem(f"There is no file {path}.", hint))
            return source
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problems.append(SettingProblem(f"{path} cannot be read: {error}"))
        return source
    unknown: list[str] = []
    for key, value in content.items():
        if key in rows and rows[key].in_toml:
            source.add(key, value, path.name)
        else:
            unknown.append(key)
    if unknown:
        from foliot.settings.model import TABLE  # noqa: PLC0415  # a client reads few settings and knows the others by name

        known = [row.name for row in TABLE if row.in_toml]
        problems += [
            _unknown_name(key, f"a key of {path.name}", known) for key in unknown if key not in known
        ]
    return source


def _unknown_name(name: str, what: str, known: Iterable[str]) -> SettingProblem:
    if _KUBERNETES.fullmatch(name):
        hint = "Kubernetes adds such names for a service called foliot: set enableServiceLinks: false in the pod."
    elif near := get_close_matches(name.upper(), [each.upper() for each in known], 1, 0.75):
        hint = f"Did you mean {next(each for each in known if each.upper() == near[0])}?"
    else:
        hint = "`foliot settings` lists them all."
    return SettingProblem(f"{name} is not {what}.", hint)


def _invalid_value(row: Setting, raw: object, origin: str) -> SettingProblem:
    named = origin if row.env in origin or origin == row.flag else f"{row.name} in {origin}"
    got = "a value that is not shown here" if row.secret else repr(raw)
    hint = None
    if isinstance(raw, str) and raw.startswith("tcp://"):
        hint = "Kubernetes sets this for a service called foliot: set enableServiceLinks: false in the pod."
    return SettingProblem(f"{named} is {got}; it must be {row.type.must_be}.", hint)
