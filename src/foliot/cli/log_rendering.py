"""How the lines of a run look."""

from __future__ import annotations

from rich.text import Text

from foliot.cli.tables import BAD, QUIET, cell
from foliot.cli.times import load_zone
from foliot.wire.logs import LogLineOut

_STYLES = {"stderr": BAD, "system": QUIET}


def log_line(line: LogLineOut, zone: str | None) -> Text:
    """As it was written; with a zone, behind the time there."""
    text = cell(line.text.rstrip("\n"), _STYLES.get(line.stream, ""))
    if zone is None:
        return text
    return Text.assemble((f"{line.at.astimezone(load_zone(zone)):%H:%M:%S.%f}"[:-3] + "  ", QUIET), text)
