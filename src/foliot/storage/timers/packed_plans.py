"""Pack the columns that a fast-path fire writes, so that all jobs that share a plan share its bytes."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from foliot.domain.definition import Rules
from foliot.domain.run_plan import NewRun, SharedPlan
from foliot.storage.arrays import (
    Packer,
    booleans,
    durations,
    instant_piece,
    instants,
    pieces,
    raw_instant,
    raw_wall_time,
    smallint_piece,
    smallints,
    texts,
    wall_times,
)

_QUEUE_COLUMNS: dict[str, Packer] = {
    "queue": texts, "type": texts, "priority": smallints, "exclusive": booleans, "concurrency_key": texts, "timeout": durations,
}  # fmt: skip
COLUMNS: dict[str, Packer] = {
    "due_at": instants, "planned_for": instants, "available_at": instants, "planned_key": wall_times, "fold": smallints,
    **_QUEUE_COLUMNS,
}  # fmt: skip
MICROSECOND = timedelta(microseconds=1)  # the unit of raw instants
_TIMES = len(COLUMNS) - len(_QUEUE_COLUMNS)
_TYPE = list(COLUMNS).index("type")
_NO_FOLD = smallint_piece(0)


class PackedPlan(NamedTuple):
    """A shared plan as bytes. Instants are raw: microseconds as PostgreSQL counts them."""

    due_at: int
    late_after: int
    following_at: int
    columns: tuple[bytes, ...]  # as `COLUMNS` names them

    @property
    def type(self) -> bytes:
        return self.columns[_TYPE]

    def is_on_time(self, now: int) -> bool:
        """Return whether the plan holds at `now`: its planned time is due, not late, and the only one."""
        return self.due_at <= now <= self.late_after and now < self.following_at

    def relative_to(self, cursor: int) -> PackedPlan:
        """Return the same with instants counted from the cursor, and without the columns of times."""
        return PackedPlan(
            self.due_at - cursor,
            self.late_after - cursor,
            self.following_at - cursor,
            self.columns[_TIMES:],
        )

    def at(self, cursor: int) -> PackedPlan:
        """Return a relative plan of an interval at another cursor. An interval names its planned times by UTC instants."""
        due_at, following_at = cursor + self.due_at, cursor + self.following_at
        due, following = instant_piece(due_at), instant_piece(following_at)
        times = (following, due, due, due, _NO_FOLD)
        return PackedPlan(due_at, cursor + self.late_after, following_at, times + self.columns)


def pack_plan(rules: Rules, shared: SharedPlan) -> PackedPlan:
    spec, (run,) = rules.spec, shared.plan.records
    assert isinstance(run, NewRun)
    planned = run.planned
    due_at, following_at = raw_instant(shared.due_at), raw_instant(shared.following_at)
    times = (
        instant_piece(following_at), instant_piece(raw_instant(planned.planned_for)), instant_piece(due_at),
        instant_piece(raw_wall_time(planned.local)), smallint_piece(planned.fold),
    )  # fmt: skip
    queue = _queue_columns(
        spec.queue, spec.type, spec.priority, rules.is_exclusive, spec.concurrency_key, spec.limits.timeout
    )
    return PackedPlan(due_at, raw_instant(shared.late_after), following_at, times + queue)


@lru_cache(maxsize=1_024)
def _queue_columns(*values: Any) -> tuple[bytes, ...]:
    return pieces(_QUEUE_COLUMNS, values)
