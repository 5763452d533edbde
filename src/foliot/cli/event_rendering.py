"""How an event looks: one line."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from foliot.cli.tables import BAD, GOOD, QUIET, SOON, cell
from foliot.cli.times import load_zone
from foliot.wire.events import EventOut

WIDEST_KIND = 19  # `freeze.turned_on` and the longest that are common
_STYLES = {
    "succeeded": GOOD,
    "failed": BAD,
    "timed_out": BAD,
    "interrupted": BAD,
    "started": SOON,
    "retrying": SOON,
    "paused": SOON,
}


def event_line(event: EventOut, who: Mapping[str, str], zone: str) -> Text:
    """When, what, of which, and what there is to say of it."""
    what = event.kind.partition(".")[2]
    about = event.job_name or (str(event.object_id) if event.object_id else "")
    if event.number is not None:
        about += f"#{event.number}"
    details = [each for each in (event.skip_reason, event.error_code) if each]
    if event.attempt is not None and event.attempt > 1:
        details.append(f"attempt {event.attempt}")
    if event.actor:
        details.append(f"by {who.get(event.actor, event.actor)}")
    return Text.assemble(
        (f"{event.at.astimezone(load_zone(zone)):%H:%M:%S}  ", QUIET),
        (cell(event.kind).plain.ljust(WIDEST_KIND), _STYLES.get(what, "")),
        cell(about),
        (f"  ({cell(', '.join(details)).plain})" if details else "", QUIET),
    )
