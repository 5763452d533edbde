"""Compare the ledger with the witness: what the database says happened, and what the jobs themselves wrote down."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.chaos.postgres import Postgres

CLOCK_SLACK = 0.05  # seconds
UNKNOWN_LEASE = (
    12.0  # seconds that a run may be leased without a line of the witness, while nothing is broken
)
ON_TIME = 2.0  # seconds
STOPS_WITHIN = 5.0  # seconds after a stopped process goes on

EVERY_PLANNED_TIME = """
SELECT jobs.name, sum(COALESCE(runs.count, 1)), count(DISTINCT planned_for),
       (extract(epoch FROM max(COALESCE(planned_until, planned_for)) - min(planned_for))
         / extract(epoch FROM (jobs.definition #>> '{spec,schedule,every}')::interval)) + 1, sum(1)
  FROM foliot.runs JOIN foliot.jobs ON jobs.id = runs.job_id GROUP BY jobs.name, jobs.definition"""


@dataclass(frozen=True, slots=True)
class Line:
    what: str
    run: str
    attempt: int
    fence: int
    at: float
    planned: float
    pid: int


class Witness:
    def __init__(self, sink: Path) -> None:
        self._sink = sink

    def lines(self) -> list[Line]:
        text = self._sink.read_text() if self._sink.exists() else ""
        found = []
        for line in text.splitlines():
            what, run, attempt, fence, at, planned, pid = line.split()
            found.append(Line(what, run, int(attempt), int(fence), float(at), float(planned), int(pid)))
        return found


class Happened(NamedTuple):
    fault: str
    began: float
    ended: float
    may_overlap: bool  # attempts of one run may, for as long as a stopped process needs to learn that its lease is over


def fault_at(at: float, happened: Sequence[Happened]) -> Happened | None:
    """Return the last fault that had begun."""
    return max((each for each in happened if each.began <= at), key=lambda each: each.began, default=None)


def overlapping(lines: Iterable[Line], happened: Sequence[Happened]) -> list[str]:
    """An attempt that still works when the next one of its run has begun."""
    spans: dict[str, dict[int, list[float]]] = defaultdict(dict)
    for line in lines:
        span = spans[line.run].setdefault(line.fence, [line.at, line.at])
        span[0], span[1] = min(span[0], line.at), max(span[1], line.at)
    wrong = []
    for run, fences in spans.items():
        in_order = [fences[fence] for fence in sorted(fences)]
        for (_, ended), (began, _) in itertools.pairwise(in_order):
            fault = fault_at(ended, happened)
            if ended > began + CLOCK_SLACK and not (
                fault is not None and fault.may_overlap and ended < fault.ended + STOPS_WITHIN
            ):
                during = (
                    "before any fault"
                    if fault is None
                    else f"{ended - fault.began:.1f} s after the begin of {fault.fault}"
                )
                wrong.append(
                    f"run {run}: an attempt worked {ended - began:.2f} s after the next had begun, {during}"
                )
    return wrong


def doubled(lines: Iterable[Line]) -> list[str]:
    seen: set[tuple[str, int]] = set()
    wrong = []
    for line in lines:
        if line.what in ("began", "command"):
            if (line.run, line.fence) in seen:
                wrong.append(f"run {line.run}: two executions under fence {line.fence}")
            seen.add((line.run, line.fence))
    return wrong


def early(lines: Iterable[Line]) -> list[str]:
    return [
        f"run {line.run} began {line.planned - line.at:.3f} s before its planned time"
        for line in lines
        if line.planned and line.at < line.planned - CLOCK_SLACK
    ]


def unknown_leases(server: Postgres, lines: Iterable[Line], limit: float = UNKNOWN_LEASE) -> list[str]:
    """Runs that a worker has leased for long and nobody executes."""
    executed = {(line.run, line.fence) for line in lines}
    held = server.rows(
        "SELECT run_id::text, fence, extract(epoch FROM clock_timestamp() - leased_at) FROM foliot.leases"
        " WHERE clock_timestamp() - leased_at > %s * interval '1 second'",
        (limit,),
    )
    return [
        f"run {run} is leased for {age:.0f} s and no worker executes it"
        for run, fence, age in held
        if (run, fence) not in executed
    ]


def recovered_after(lines: Iterable[Line], mended_at: float) -> float | None:
    """Return how long after the end of a fault the first run began on time."""
    on_time = [
        line.at - mended_at
        for line in lines
        if line.what == "began" and line.at >= mended_at and line.at - line.planned < ON_TIME
    ]
    return min(on_time, default=None)


def books(server: Postgres, lines: list[Line]) -> list[str]:
    """Everything that must hold in the end, when all jobs have ended."""
    wrong = [
        f"{name}: {records} records of {distinct} planned times; {float(expected):g} were to be"
        for name, records, distinct, expected, rows in server.rows(EVERY_PLANNED_TIME)
        if records != expected or distinct != rows
    ]
    succeeded: set[str] = {
        row[0] for row in server.rows("SELECT id::text FROM foliot.runs WHERE status = 'succeeded'")
    }
    unseen = succeeded - {line.run for line in lines if line.what in ("ended", "command")}
    wrong += [f"run {run} succeeded and nobody saw it" for run in sorted(unseen)]
    if left := server.rows("SELECT count(*) FROM foliot.leases")[0][0]:
        wrong.append(f"{left} leases are left")
    other: list[Any] = server.rows(
        "SELECT status, error::text, count(*) FROM foliot.runs"
        " WHERE status NOT IN ('succeeded', 'skipped', 'interrupted') OR status IS NULL GROUP BY 1, 2"
    )
    return wrong + [f"{count} runs ended as {status}: {error}" for status, error, count in other]
