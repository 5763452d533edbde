"""Settings from where people write them: flags, environment, foliot.toml. This room reads no environment by itself: `load` is given one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from foliot.settings.kinds import Url
from foliot.settings.passwords import without_password
from foliot.settings.rows import PREFIX, Setting
from foliot.settings.table import BY_NAME, TABLE, Settings

FILE_SUFFIX = "_FILE"
# What a command finds in its environment; it may call `foliot` itself.
OF_A_RUN = frozenset(
    f"{PREFIX}{name}" for name in ("RUN_ID", "ATTEMPT", "FENCE", "PLANNED_FOR", "JOB", "TRIGGER")
)
_KUBERNETES = re.compile(r"FOLIOT_(SERVICE_(HOST|PORT)|PORT_\d+_(TCP|UDP)).*")


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
    if isinstance(value, bool):
        return "yes" if value else "no"
    if row.secret and isinstance(row.kind, Url):
        return without_password(value)
    return "********" if row.secret else str(value)


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
        elif name not in OF_A_RUN:
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
