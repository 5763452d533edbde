"""Generate docs/explanation/lifecycles.md from the transition tables, so that the page cannot fall behind them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from foliot.domain.lifecycle import (
    ATTEMPT_MOVES,
    JOB_MOVES,
    RUN_MOVES,
    AttemptEvent,
    AttemptStatus,
    JobEvent,
    JobStatus,
    RunEvent,
    RunStatus,
)

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)

_HEAD = """\
# Lifecycles

One function, `advance` in `foliot.domain.lifecycle`, changes the status of jobs, runs and attempts.
This page is generated from its tables. To generate it again after a change:

```sh
.venv/bin/python -c "from tools.lifecycle_page import page; print(page(), end='')" > docs/explanation/lifecycles.md
```

A status without an outgoing move is final: a finished run never changes, and "retry" makes a new run.
A move that is not in the table is refused (409); the refusal names the possible moves.
"""


def page() -> str:
    parts = [
        _HEAD,
        _chapter("Jobs", JOB_MOVES, list(JobStatus), list(JobEvent)),
        _chapter("Runs", RUN_MOVES, list(RunStatus), list(RunEvent)),
        _chapter("Attempts", ATTEMPT_MOVES, list(AttemptStatus), list(AttemptEvent)),
    ]
    return "\n".join(parts)


def _chapter(title: str, moves: Mapping[tuple[S, E], S], statuses: list[S], events: list[E]) -> str:
    return f"## {title}\n\n{_diagram(moves, statuses)}\n\n{_table(moves, statuses, events)}\n"


def _diagram(moves: Mapping[tuple[S, E], S], statuses: list[S]) -> str:
    final = [status for status in statuses if all(start is not status for start, _ in moves)]
    arrows = [f"    {start.value} --> {end.value}: {event.value}" for (start, event), end in moves.items()]
    ends = [f"    {status.value} --> [*]" for status in final]
    return "\n".join(["```mermaid", "stateDiagram-v2", *arrows, *ends, "```"])


def _table(moves: Mapping[tuple[S, E], S], statuses: list[S], events: list[E]) -> str:
    head = [
        "| from | " + " | ".join(event.value for event in events) + " |",
        "|---" * (len(events) + 1) + "|",
    ]
    rows = [
        f"| **{status.value}** | " + " | ".join(_cell(moves, status, event) for event in events) + " |"
        for status in statuses
    ]
    return "\n".join(head + rows)


def _cell(moves: Mapping[tuple[S, E], S], status: S, event: E) -> str:
    after = moves.get((status, event))
    return "" if after is None else after.value
