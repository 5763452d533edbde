"""Names, flags and errors of the settings that the command line needs before it loads pydantic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREFIX = "FOLIOT_"
FILE_SUFFIX = "_FILE"  # FOLIOT_API_KEY_FILE names the file that holds FOLIOT_API_KEY
ADDRESS_FILE = "address"  # in the data directory: the server's URL, while it listens
ROLES = ("api", "scheduler", "worker", "watcher")
OUTPUTS = ("table", "json", "jsonl", "csv")  # formats of the command line


@dataclass(frozen=True, slots=True)
class Flag:
    """A setting that has a command-line flag: its default, its description and its unit."""

    default: Any
    about: str
    unit: str | None = None


FLAGS = {
    "config": Flag(None, "File to read settings from. Default: foliot.toml in the current folder."),
    "data_dir": Flag(
        Path(".foliot"),
        "Folder of the private PostgreSQL and of admin.key; made for this user alone. "
        "The default is relative to the current folder.",
    ),
    "host": Flag("127.0.0.1", "Address that HTTP listens on."),
    "port": Flag(8700, "Port that HTTP listens on; 0 takes a free one and prints it."),
    "pg_bindir": Flag(
        None, "Folder of the PostgreSQL programs. Default: those of foliot[local], else those installed."
    ),
    "log_format": Flag("auto", "How log lines look; auto is human on a terminal, json elsewhere."),
    "log_level": Flag("info", "The least important log lines to keep."),
    "shutdown_grace": Flag(
        3, "How long requests under way may go on after SIGTERM or SIGINT.", unit="seconds"
    ),
    "roles": Flag(
        ROLES,
        "What this `foliot serve` does, separated by commas: answer the API, fire due jobs and sweep, execute runs, report runs that nobody started. "
        "A split needs database_url, which the nodes share.",
    ),
    "api_processes": Flag(
        1,
        "How many processes answer HTTP requests. Each counts rates and streams alone.",
    ),
    "app": Flag(
        None,
        "App whose decorated functions the worker runs, as module:app; each start updates its jobs to match its code.",
    ),
}


def flag_name(setting: str) -> str:
    return "--" + setting.replace("_", "-")


@dataclass(frozen=True, slots=True)
class SettingProblem:
    message: str
    hint: str | None = None


class SettingsError(Exception):
    """A setting has a name or a value that Foliot does not know. All problems are reported at once."""

    code = "setting.invalid"

    def __init__(self, problems: tuple[SettingProblem, ...]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


def without_password(url: str) -> str:
    """Return the address with every password in it masked."""
    return _IN_QUERY.sub(r"\1********", _IN_USER_INFO.sub(r"\1********\3", url))


def passwords_in(url: str) -> list[str]:
    """Return the passwords in an address, as written."""
    return [match[2] for pattern in (_IN_USER_INFO, _IN_QUERY) for match in pattern.finditer(url)]


# The last @ ends the password: people forget to escape the ones inside.
_IN_USER_INFO = re.compile(r"(://[^:/@]*:)(.*)(@[^@]*$)")
_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)([^&#]*)")
