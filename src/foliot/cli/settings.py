"""`foliot settings`: every setting, its value, and where the value came from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from foliot.cli import options
from foliot.cli.output import print_out, table

if TYPE_CHECKING:
    from foliot.settings import Settings


def settings(
    config: options.Config = None,
    data_dir: options.DataDir = None,
    output: options.Output = options.TextFormat.TEXT,
) -> None:
    """Show every setting, its value and its origin. Keys and passwords stay hidden."""
    from foliot.settings import TABLE, format_value  # pydantic, which `foliot --help` does not load

    found = options.settings(config=config, data_dir=data_dir)
    if output is options.TextFormat.JSON:
        print_out(json.dumps(as_objects(found), indent=2))
        return
    print_out(
        table(
            ("SETTING", "VALUE", "FROM"),
            [(row.env, format_value(row, found) or "-", found.origins[row.name]) for row in TABLE],
        )
    )


def as_objects(found: Settings) -> list[dict[str, str]]:
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
