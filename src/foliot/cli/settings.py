"""`foliot settings` and `foliot profiles`, and the flags that commands on this machine derive from the table of settings."""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.output import dump_json, print_out
from foliot.cli.tables import Column, Table, render, terminal
from foliot.settings import FLAGS, flag_name

if TYPE_CHECKING:
    from foliot.settings import Settings

PROFILE_EXAMPLE = 'Example:\n  [staging]\n  url = "https://foliot.example"\n  key_file = "staging.key"'


def _flag(name: str) -> Any:
    """Return the flag of a setting. It takes any text: `load` validates it like the environment."""
    row = FLAGS[name]
    default = ",".join(row.default) if isinstance(row.default, tuple) else row.default
    suffix = "" if default in (None, "") else f" [default: {default}]"
    unit = f" In {row.unit}." if row.unit else ""
    return typer.Option(
        flag_name(name), help=row.about + unit + suffix, metavar=name.upper(), show_default=False
    )


Config = Annotated[str | None, _flag("config")]
DataDir = Annotated[str | None, _flag("data_dir")]
Host = Annotated[str | None, _flag("host")]
Port = Annotated[str | None, _flag("port")]
PgBindir = Annotated[str | None, _flag("pg_bindir")]
LogFormat = Annotated[str | None, _flag("log_format")]
LogLevel = Annotated[str | None, _flag("log_level")]
Roles = Annotated[str | None, _flag("roles")]
ApiProcesses = Annotated[str | None, _flag("api_processes")]
App = Annotated[str | None, _flag("app")]
ShutdownGrace = Annotated[str | None, _flag("shutdown_grace")]


class TextFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


Output = Annotated[TextFormat, typer.Option("-o", "--output", help="Output format.")]


def load_settings(**flags: str | None) -> Settings:
    """Load the settings from flags, environment, config file and defaults."""
    from foliot.settings import load  # pydantic, which `foliot --help` does not load

    return load(os.environ, flags, Path.cwd())


def settings(config: Config = None, data_dir: DataDir = None, output: Output = TextFormat.TEXT) -> None:
    """Show every setting, its value and where the value comes from. Keys and passwords stay hidden."""
    found = load_settings(config=config, data_dir=data_dir)
    if output is TextFormat.JSON:
        print_out(json.dumps(_to_objects(found), indent=2))
        return
    from foliot.settings import TABLE, format_value

    rows = [(row.env, format_value(row, found) or "-", found.origins[row.name]) for row in TABLE]
    columns: list[Column[tuple[str, str, str]]] = [
        Column("SETTING", lambda row: row[0]),
        Column("VALUE", lambda row: row[1], wrap=True),
        Column("FROM", lambda row: row[2]),
    ]
    print_out(render(Table(columns, rows), *terminal(sys.stdout)))


def _to_objects(found: Settings) -> list[dict[str, str]]:
    from foliot.settings import TABLE, format_value

    return [
        {
            "name": row.name,
            "env": row.env,
            "value": format_value(row, found),
            "origin": found.origins[row.name],
        }
        for row in TABLE
    ]


def profiles(output: Output = TextFormat.TEXT) -> None:
    """List the profiles of ~/.config/foliot/profiles.toml, for --profile and FOLIOT_PROFILE."""
    from foliot.sdk.profiles import KEYS, profiles_path, read_profiles

    path = profiles_path(os.environ)
    sections = read_profiles(path)
    if output is TextFormat.JSON:
        print_out(dump_json(sections, indent=2))
        return
    columns: list[Column[tuple[str, dict[str, Any]]]] = [
        Column("PROFILE", lambda row: row[0]),
        *(_column(key) for key in KEYS),
    ]
    table = Table(
        columns, list(sections.items()), empty=f"No profiles. {path} would hold them. {PROFILE_EXAMPLE}"
    )
    print_out(render(table, *terminal(sys.stdout)))


def _column(key: str) -> Column[tuple[str, dict[str, Any]]]:
    return Column(key.upper().replace("_", " "), lambda row: str(row[1].get(key, "")), wrap=True)
