"""Flags made from the table of settings, and the settings of one command."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.settings import FLAGS, flag_name

if TYPE_CHECKING:
    from foliot.settings import Settings


def flag(name: str) -> Any:
    """The flag of a setting. It takes text as typed: `settings.load` judges it, as it does the environment."""
    row = FLAGS[name]
    usual = ",".join(row.default) if isinstance(row.default, tuple) else row.default
    default = "" if usual in (None, "") else f" [default: {usual}]"
    unit = f" In {row.unit}." if row.unit else ""
    return typer.Option(
        flag_name(name), help=row.about + unit + default, metavar=name.upper(), show_default=False
    )


Config = Annotated[str | None, flag("config")]
DataDir = Annotated[str | None, flag("data_dir")]
Host = Annotated[str | None, flag("host")]
Port = Annotated[str | None, flag("port")]
PgBindir = Annotated[str | None, flag("pg_bindir")]
LogFormat = Annotated[str | None, flag("log_format")]
LogLevel = Annotated[str | None, flag("log_level")]
Roles = Annotated[str | None, flag("roles")]
App = Annotated[str | None, flag("app")]
ShutdownGrace = Annotated[str | None, flag("shutdown_grace")]


class TextFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


Output = Annotated[TextFormat, typer.Option("-o", "--output", help="How to print it.")]


def settings(**flags: str | None) -> Settings:
    from foliot.settings import load  # pydantic, which `foliot --help` does not load

    return load(os.environ, flags, Path.cwd())
