"""How hosts look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.output import pluralize
from foliot.cli.tables import BAD, GOOD, QUIET, SOON, cell, columns, facts
from foliot.cli.times import relative
from foliot.wire.hosts import HostOut

MOST_JOBS = 10  # named
_STYLES = {"online": GOOD, "stale": SOON, "offline": BAD}


def host_list(hosts: Sequence[HostOut], now: datetime) -> RenderableType:
    if not hosts:
        return Text("No hosts. `foliot host` on a machine makes it one.")
    rows = [
        (
            cell(each.name),
            cell(each.status, _STYLES[each.status]),
            cell(relative(each.last_seen_at - now), QUIET),
            cell(each.running),
            cell(", ".join(one.name for one in each.instances) or "-"),
            cell(_labels(each.labels) or "-", QUIET),
        )
        for each in hosts
    ]
    headers = ("HOST", "STATUS", "LAST SEEN", "RUNNING", "SERVERS", "LABELS")
    return columns(headers, rows, wraps=("SERVERS", "LABELS"), drops=("LABELS",))


def host_page(host: HostOut, now: datetime) -> RenderableType:
    return facts(
        (
            ("host", host.name),
            ("id", str(host.id)),
            ("status", f"{host.status}, last seen {relative(host.last_seen_at - now)}"),
            ("servers", ", ".join(one.name for one in host.instances) or "none"),
            ("does", ", ".join(host.types) or "nothing while it is away"),
            (
                "running",
                f"{pluralize(host.running, 'run')} now; at once {host.max_mutations} that change, {host.max_reads} that read",
            ),
            ("jobs", _jobs(host)),
            ("labels", _labels(host.labels) or "none"),
            ("since", relative(host.created_at - now)),
            ("version", host.version or "unknown"),
        )
    )


def _jobs(host: HostOut) -> str | None:
    """Those that must run there."""
    if host.jobs is None:
        return None
    named = ", ".join(each.name for each in host.jobs[:MOST_JOBS])
    return f"{named} and more" if len(host.jobs) > MOST_JOBS else named or "none are bound to it"


def _labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in labels.items())
