"""How workers, queues and types of jobs look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.tables import BAD, GOOD, QUIET, SOON, STRONG, cell, columns, stacked
from foliot.cli.times import relative
from foliot.wire.fleet import JobTypeOut, QueueOut, WorkerOut

_STYLES = {"alive": GOOD, "draining": SOON, "lost": BAD}


def worker_list(workers: Sequence[WorkerOut], now: datetime) -> RenderableType:
    if not workers:
        return Text("No workers.")
    rows = [
        (
            cell(each.name),
            cell(each.status, _STYLES[each.status]),
            cell(f"{each.running} of {each.capacity}"),
            cell(f"host {each.host}" if each.host else ", ".join(each.queues) or "-"),
            cell(", ".join(each.types)),
            cell(relative(each.since - now), QUIET),
            cell(relative(each.last_heartbeat_at - now), QUIET),
            cell(each.version, QUIET),
        )
        for each in workers
    ]
    headers = ("WORKER", "STATUS", "RUNNING", "QUEUES", "TYPES", "SINCE", "LAST SEEN", "VERSION")
    return columns(headers, rows, wraps=("QUEUES", "TYPES"), drops=("VERSION", "SINCE"))


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


def type_list(types: Sequence[JobTypeOut]) -> RenderableType:
    if not types:
        return Text("No types.")
    rows = [
        (
            cell(each.name),
            cell(each.workers, "" if each.active else BAD),
            cell("switched off" if not each.enabled else each.description or "known to workers only"),
        )
        for each in types
    ]
    return columns(("TYPE", "WORKERS", "WHAT"), rows, wraps=("WHAT",))


def type_page(found: JobTypeOut) -> RenderableType:
    """Field by field, as its schema tells them."""
    schema = found.config_schema
    fields = {} if schema is None else schema.get("properties", {})
    needed = set() if schema is None else set(schema.get("required", ()))
    rows = [
        (
            cell(name),
            cell("needed" if name in needed else _default(field), "" if name in needed else QUIET),
            cell(_takes(field)),
            cell(field.get("description", "")),
        )
        for name, field in fields.items()
    ]
    head = Text.assemble((found.name, STRONG), f": {cell(found.description or 'no description').plain}")
    if not found.enabled:
        why = f": {cell(found.disabled_reason).plain}" if found.disabled_reason else "."
        head.append(f" Switched off here{why}", BAD)
    if not rows:
        return stacked(
            head, Text("What its config takes is not known." if schema is None else "It takes no config.")
        )
    return stacked(head, columns(("CONFIG", "DEFAULT", "TAKES", "WHAT"), rows, wraps=("WHAT", "TAKES")))


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    return "-" if default is None else str(default)


def _takes(field: dict[str, Any]) -> str:
    """The words of JSON Schema, as far as they are short."""
    if "enum" in field:
        return " | ".join(str(each) for each in field["enum"])
    several = field.get("anyOf") or field.get("oneOf") or [field]
    words = [str(each.get("type", "value")) for each in several if each.get("type") != "null"]
    return " or ".join(dict.fromkeys(words))
