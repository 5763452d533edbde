"""How workers and queues look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.looks import BAD, GOOD, QUIET, SOON, cell, columns, stacked
from foliot.cli.times import relative
from foliot.wire.fleet import QueueOut, WorkerOut

_STYLES = {"alive": GOOD, "draining": SOON, "lost": BAD}


def worker_list(workers: Sequence[WorkerOut], now: datetime) -> RenderableType:
    if not workers:
        return Text("No workers.")
    rows = [
        (
            cell(each.name),
            cell(each.status, _STYLES[each.status]),
            cell(f"{each.running} of {each.capacity}"),
            cell(", ".join(each.queues) or "all"),
            cell(", ".join(each.types)),
            cell(relative(each.since - now), QUIET),
            cell(relative(each.last_heartbeat_at - now), QUIET),
            cell(each.version, QUIET),
        )
        for each in workers
    ]
    headers = ("WORKER", "STATUS", "RUNNING", "QUEUES", "TYPES", "SINCE", "LAST SEEN", "VERSION")
    return columns(headers, rows, wraps=("QUEUES", "TYPES"))


def queue_list(queues: Sequence[QueueOut], now: datetime) -> RenderableType:
    if not queues:
        return Text("No queues.")
    rows = [
        (
            cell(each.name),
            cell(each.ready),
            cell(each.waiting),
            cell(each.running),
            cell(relative(each.oldest_ready_at - now) if each.oldest_ready_at else "-"),
            cell(each.workers, BAD if each.workers == 0 and each.ready else ""),
        )
        for each in queues
    ]
    warnings = [cell(f"{each.name}: {told}", SOON) for each in queues for told in each.warnings]
    return stacked(columns(("QUEUE", "READY", "WAITING", "RUNNING", "OLDEST", "WORKERS"), rows), *warnings)
