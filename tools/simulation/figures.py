"""The figures of a simulation: counts, outcomes, speed, and a hash of the whole history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from tools.simulation.world import Size

# Without ids and numbers, and as a sum, which needs no order: equal histories have equal sums.
_HISTORY = """
SELECT sum(hashtextextended(concat_ws('|', jobs.name, planned_key, fold, runs.schedule_rev, trigger, runs.status, skip_reason,
                                      planned_for, planned_until, count, runs.created_at, started_at, finished_at, attempt_count,
                                      runs.error ->> 'code'), 0)) AS hash
  FROM foliot.runs JOIN foliot.jobs ON jobs.id = runs.job_id
"""
_ENDS = """
SELECT COALESCE(status || COALESCE(' (' || skip_reason || ')', ''), 'open'), count(*),
       sum(CASE WHEN planned_until IS NULL THEN 1 ELSE COALESCE(count, 10000) END)
  FROM foliot.runs GROUP BY 1 ORDER BY 1
"""


_WRAP = 1 << 96


@dataclass(frozen=True, slots=True)
class Figures:
    size: Size
    records: Mapping[str, int]  # by how they ended
    occurrences: int  # planned times and other causes, those inside gap records counted one by one
    attempts: int
    happenings: Mapping[str, int]  # actions and faults of nodes
    checks: int
    history: str
    seconds: float

    def lines(self) -> list[str]:
        size = self.size
        total = sum(self.records.values())
        speed = self.occurrences / self.seconds
        ends = [f"  {name:<28} {number:>12,}" for name, number in self.records.items()]
        happenings = [f"  {name:<28} {number:>12,}" for name, number in sorted(self.happenings.items())]
        return [
            f"{size.workspaces} workspaces x {size.jobs} jobs x {size.days} days, seed {size.seed}, mix {size.mix.value}",
            f"occurrences {self.occurrences:,}, records {total:,}, attempts {self.attempts:,}",
            *ends,
            "what happened",
            *happenings,
            f"invariants checked {self.checks:,} times, none broken",
            f"{self.seconds:,.1f} s: {speed:,.0f} occurrences/s, {size.days * 86_400 / self.seconds:,.0f} times as fast as life",
            f"history {self.history}",
        ]


def merged(size: Size, slices: Sequence[Figures], seconds: float) -> Figures:
    """Merge the figures of slices by sums, the history too, so the order does not matter."""
    records, happenings = Counter[str](), Counter[str]()
    for each in slices:
        records.update(each.records)
        happenings.update(each.happenings)
    return Figures(
        size=size,
        records=dict(sorted(records.items())),
        occurrences=sum(each.occurrences for each in slices),
        attempts=sum(each.attempts for each in slices),
        happenings=happenings,
        checks=sum(each.checks for each in slices),
        history=f"{sum(int(each.history, 16) for each in slices) % _WRAP:024x}",
        seconds=seconds,
    )


def so_far(owner: psycopg.Connection[Any]) -> int:
    """Return the occurrences so far, by the counters of the timers, without reading all runs."""
    row = owner.execute("SELECT COALESCE(sum(fire_count + skip_count), 0) FROM foliot.timers").fetchone()
    assert row is not None
    return int(row[0])


def history_of(owner: psycopg.Connection[Any]) -> str:
    row = owner.execute(_HISTORY).fetchone()
    assert row is not None
    return f"{int(row[0] or 0) % _WRAP:024x}"


def figures(
    owner: psycopg.Connection[Any], size: Size, happenings: Mapping[str, int], checks: int, seconds: float
) -> Figures:
    rows = owner.execute(_ENDS).fetchall()
    attempts = owner.execute("SELECT COALESCE(sum(attempt_count), 0) FROM foliot.runs").fetchone()
    assert attempts is not None
    return Figures(
        size=size,
        records={name: number for name, number, _ in rows},
        occurrences=int(sum(occurrences for _, _, occurrences in rows)),
        attempts=int(attempts[0]),
        happenings=happenings,
        checks=checks,
        history=history_of(owner),
        seconds=seconds,
    )
