"""`foliot profiles`: the servers that --profile knows."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from foliot.cli.output import print_out
from foliot.cli.settings import Output, TextFormat
from foliot.cli.tables import Column, Table, render, terminal

EXAMPLE = 'Example:\n  [staging]\n  url = "https://foliot.example"\n  key_file = "staging.key"'


def profiles(output: Output = TextFormat.TEXT) -> None:
    """List the profiles of ~/.config/foliot/profiles.toml, for --profile and FOLIOT_PROFILE."""
    from foliot.sdk.profiles import KEYS, profiles_path, read_profiles

    path = profiles_path(os.environ)
    sections = read_profiles(path)
    if output is TextFormat.JSON:
        print_out(json.dumps(sections, ensure_ascii=False, indent=2))
        return
    columns: list[Column[tuple[str, dict[str, Any]]]] = [
        Column("PROFILE", lambda row: row[0]),
        *(_column(key) for key in KEYS),
    ]
    table = Table(columns, list(sections.items()), empty=f"No profiles. {path} would hold them. {EXAMPLE}")
    print_out(render(table, *terminal(sys.stdout)))


def _column(key: str) -> Column[tuple[str, dict[str, Any]]]:
    return Column(key.upper().replace("_", " "), lambda row: str(row[1].get(key, "")), wrap=True)
