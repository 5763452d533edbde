"""Read the settings with pydantic-settings: a flag wins over the environment, that over foliot.toml, that over the default."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from foliot.settings.declarations import FILE_SUFFIX, FLAGS, PREFIX, SettingProblem, SettingsError
from foliot.settings.model import BY_NAME, TABLE, Setting, Settings
from foliot.settings.value_types import PATH

# Variables that a command finds in its environment; it may call `foliot` itself.
RUN_VARIABLES = frozenset(
    f"{PREFIX}{name}" for name in ("RUN_ID", "ATTEMPT", "FENCE", "PLANNED_FOR", "JOB", "TRIGGER")
)
_KUBERNETES = re.compile(r"FOLIOT_(SERVICE_(HOST|PORT)|PORT_\d+_(TCP|UDP)).*")


class _SettingsReader(Settings, BaseSettings):
    """`load` passes the sources: nothing here reads the environment of the process by itself."""

    model_config = SettingsConfigDict(validate_default=False)


class _Source:
    """The values of one source, and the name of the source for each of them."""

    def __init__(self, base: Path) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self._base = base  # relative paths start here

    def add(self, name: str, value: Any, origin: str) -> None:
        self.values[name] = value
        self.origins[name] = origin

    def for_pydantic(self) -> InitSettingsSource:
        given = {
            name: self._absolute(value) if BY_NAME[name].type is PATH else value
            for name, value in self.values.items()
        }
        return InitSettingsSource(_SettingsReader, given)

    def _absolute(self, raw: Any) -> Any:
        try:
            return str(self._base / Path(raw).expanduser())
        except (TypeError, RuntimeError):  # validation refuses it with the right sentence
            return raw


def load(environ: Mapping[str, str], flags: Mapping[str, str | None], cwd: Path) -> Settings:
    """Read the settings, or raise SettingsError with every problem. `flags` maps setting names to the text typed."""
    problems: list[SettingProblem] = []
    named = flags.get("config") or environ.get(PREFIX + "CONFIG")
    config = cwd / Path(named or "foliot.toml").expanduser()
    toml = _read_toml(config, must_exist=bool(named), problems=problems)
    environment = _read_environment(environ, cwd, problems)
    typed = _Source(cwd)
    for name, text in flags.items():
        if text is not None:
            typed.add(name, text, BY_NAME[name].flag or name)

    defaults = _Source(cwd)
    defaults.values = {"data_dir": str(FLAGS["data_dir"].default)}
    if config.is_file():
        defaults.values["config"] = str(config)
    by_priority = (toml, environment, typed)  # the last wins
    origins = dict.fromkeys(BY_NAME, "default")
    for source in by_priority:
        origins |= source.origins
    sources = [source.for_pydantic() for source in (typed, environment, toml, defaults)]
    sources.append(InitSettingsSource(_SettingsReader, {"origins": origins}))
    try:
        settings = _SettingsReader(_build_sources=(tuple(sources), {}))  # type: ignore[call-arg]  # mypy sees the fields only
    except ValidationError as error:
        wrong = {each["loc"][0] for each in error.errors(include_url=False, include_context=False)}
        given = {name: value for source in by_priority for name, value in source.values.items()}
        problems += [
            _invalid_value(BY_NAME[name], given[name], origins[name]) for name in given if name in wrong
        ]
    if problems:
        raise SettingsError(tuple(problems))
    return settings


def _read_environment(environ: Mapping[str, str], cwd: Path, problems: list[SettingProblem]) -> _Source:
    """Read every FOLIOT_* variable, and the files that FOLIOT_*_FILE names. An empty value counts as not set."""
    source = _Source(cwd)
    by_env = {row.env: row for row in TABLE}
    by_file = {row.env + FILE_SUFFIX: row for row in TABLE if row.secret}
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
    return source


def _read_toml(path: Path, *, must_exist: bool, problems: list[SettingProblem]) -> _Source:
    source = _Source(path.parent)
    try:
        if not path.exists():
            if must_exist:
                hint = "FOLIOT_CONFIG or --config names it."
                problems.append(SettingProblem(f"There is no file {path}.", hint))
            return source
        with path.open("rb"):  # pydantic-settings skips a folder of that name without a word
            content = TomlConfigSettingsSource(_SettingsReader, path).toml_data
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problems.append(SettingProblem(f"{path} cannot be read: {error}"))
        return source
    keys = [row.name for row in TABLE if row.in_toml]
    for key, value in content.items():
        if key in keys:
            source.add(key, value, path.name)
        else:
            problems.append(_unknown_name(key, f"a key of {path.name}", keys))
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
