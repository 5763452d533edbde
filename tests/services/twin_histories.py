"""Play one generated history twice, the second time without a fast path, and compare all rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from random import SystemRandom
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from foliot.domain.access import Scope
from foliot.domain.outcomes import Cancelled, Failed, HandedBack, Outcome, Succeeded, TimedOut
from foliot.domain.policy import (
    Backoff,
    Breaker,
    BreakerAction,
    Limits,
    Misfire,
    MisfireRule,
    Overlap,
    OverlapRule,
    Retry,
)
from foliot.domain.run import RunError
from foliot.domain.schedule import Cron, Interval, IntervalMode, Once, Schedule
from foliot.services.scheduling.tick import _tick, tick
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.services.workers.limits import set_limit
from foliot.storage.queue.run_queue import Claimed
from foliot.testing.clock import NOON
from foliot.testing.fixtures import ANA
from tests.services.service_driver import ServiceDriver

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
TICK = timedelta(microseconds=1)
WHOLE, LARGE = "", 1_000_000  # a cap of the workspace that no history reaches
TABLES = ("timers", "runs", "ready", "waiting", "leases", "attempts", "jobs")
# Numbers that count statements or rows of a table, and differ between two ways to the same state.
UNCOMPARED = frozenset(("version", "position", "definition"))
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CLEAN = "DELETE FROM foliot.{}"


@dataclass(frozen=True, slots=True)
class Way:
    """How a history is played. Every way leaves the same rows."""

    plans_alone: bool = False  # every timer by itself, not on the fast path of firing
    decides_alone: bool = False  # every success by itself, not on the fast path of settling
    reports_alone: bool = False  # every report in a transaction of its own
    is_capped: bool = False  # claims pass a limit


@dataclass(frozen=True, slots=True)
class Step:
    """Time passes, what is due is fired, what is ready is claimed, and some runs end. None: that run goes on."""

    gap: timedelta
    outcomes: tuple[Outcome | None, ...]


@dataclass(frozen=True, slots=True)
class JobHistory:
    jobs: tuple[tuple[Schedule, dict[str, Any]], ...]
    steps: tuple[Step, ...]


class _Steady(SystemRandom):
    """Random ids, but waits of one length."""

    def random(self) -> float:
        return 0.5


@dataclass
class Player:
    driver: ServiceDriver
    held: dict[str, Claimed] = field(default_factory=dict)

    async def play(self, history: JobHistory, way: Way) -> dict[str, list[Any]]:
        """Play the history from an empty database and return the rows it leaves."""
        driver = self.driver
        self._clean()
        driver.clock.set(NOON)
        driver.database._chance = _Steady()
        for number, (schedule, spec) in enumerate(history.jobs):
            await driver.job(schedule, name=f"job {number}", **spec)
        if way.is_capped:
            await set_limit(driver.database, Scope(driver.workspace, ANA), WHOLE, LARGE)
        with _decided_alone() if way.decides_alone else _unchanged():
            for step in history.steps:
                await self._play_step(step, way)
        driver.balance()
        return self.rows()

    async def _play_step(self, step: Step, way: Way) -> None:
        driver = self.driver
        driver.clock.advance(step.gap)
        await advance_waiting_runs(driver.database)
        for _ in range(50):
            ticked = await (
                _tick(driver.database, 500, is_careful=True) if way.plans_alone else tick(driver.database)
            )
            if not ticked.looked_at:
                break
        labels = self._labels()
        self.held |= {labels[str(run.run_id)]: run for run in await driver.claim(100)}
        pairs = zip(sorted(self.held), step.outcomes, strict=False)
        ended = [(label, outcome) for label, outcome in pairs if outcome is not None]
        reports = []
        for label, outcome in ended:
            run = self.held.pop(label)
            reported = Report(run.run_id, run.job_id, run.fence, driver.worker, outcome, {"label": label})
            reports.append(reported)
        for batch in [[each] for each in reports] if way.reports_alone else [reports]:
            assert len(await report(driver.database, batch)) == len(batch)

    def rows(self) -> dict[str, list[Any]]:
        """Return all rows, with the names of jobs and the numbers of runs instead of ids."""
        labels, found = self._labels(), {}
        for table in TABLES:
            order = "job_id, position" if table in ("ready", "waiting") else "1"
            read = self.driver.sql(f"SELECT to_jsonb(t)::text FROM foliot.{table} AS t ORDER BY {order}")
            named = [_ID.sub(lambda uuid: labels.get(uuid[0], uuid[0]), text) for (text,) in read]
            found[table] = sorted(_compared(text) for text in named)
        return found

    def _labels(self) -> dict[str, str]:
        jobs = self.driver.sql("SELECT id::text, name FROM foliot.jobs")
        runs = self.driver.sql(
            "SELECT runs.id::text, name || ' run ' || lpad(number::text, 4, '0')"
            " FROM foliot.runs JOIN foliot.jobs ON jobs.id = job_id"
        )
        return dict([*jobs, *runs])

    def _clean(self) -> None:
        self.held.clear()
        for table in ("limits", "leases", "ready", "waiting", "attempts", "runs", "timers", "jobs"):
            self.driver.owner.execute(_CLEAN.format(table).encode())


def _compared(text: str) -> str:
    row = json.loads(text)
    return json.dumps({key: value for key, value in row.items() if key not in UNCOMPARED}, sort_keys=True)


@contextmanager
def _decided_alone() -> Iterator[None]:
    async def nothing(*_: object) -> set[Any]:
        return set()

    with patch("foliot.services.settlement.report.leases.settle_successes", nothing):
        yield


@contextmanager
def _unchanged() -> Iterator[None]:
    yield


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


SCHEDULES: tuple[Schedule, ...] = (
    Interval(MINUTE),
    Interval(MINUTE),
    Interval(5 * MINUTE),
    Interval(2 * MINUTE, mode=IntervalMode.FIXED_DELAY),
    Cron("* * * * *"),
    Cron("*/2 * * * *", timezone="America/New_York"),
    Once(NOON + 3 * MINUTE),
)
OUTCOMES: tuple[Outcome | None, ...] = (
    Succeeded(),
    Succeeded(),
    Succeeded(),
    Failed(RunError("boom", "It broke.")),
    Failed(RunError("boom", "It broke for good."), permanent=True),
    TimedOut(),
    Cancelled(),
    HandedBack(),
    None,
)
# Instants on a planned time, and just beside one.
INSTANTS = st.sampled_from([NOON + 2 * MINUTE + by for by in (-TICK, 0 * TICK, TICK, 3 * MINUTE)])
GAPS = st.sampled_from(
    [0 * SECOND, SECOND, 59 * SECOND, MINUTE, MINUTE, 61 * SECOND, 2 * MINUTE, 11 * MINUTE]
)
SPECS = st.fixed_dictionaries(
    {
        "overlap": st.builds(Overlap, st.sampled_from(OverlapRule), st.integers(1, 2)),
        "retry": st.sampled_from([
            Retry(0),
            Retry(2, Backoff.FIXED, base=30 * SECOND),
            Retry(1, Backoff.FIXED, base=MINUTE, past_next=True),
        ]),
    },
    optional={
        "start_at": INSTANTS,
        "end_at": INSTANTS,
        "max_runs": st.integers(1, 3),
        "misfire": st.builds(
            Misfire, st.sampled_from(MisfireRule), st.sampled_from([0 * SECOND, MINUTE, 10 * MINUTE]), st.just(2)
        ),
        "breaker": st.builds(Breaker, st.integers(1, 2), st.sampled_from(BreakerAction)),
        "limits": st.builds(Limits, start_deadline=_maybe(st.sampled_from([30 * SECOND, MINUTE]))),
        "concurrency_key": st.just("db"),
        "priority": st.integers(-1, 1),
    },
)  # fmt: skip
STEPS = st.builds(Step, GAPS, st.lists(st.sampled_from(OUTCOMES), max_size=5).map(tuple))


def histories() -> st.SearchStrategy[JobHistory]:
    jobs = st.lists(st.tuples(st.sampled_from(SCHEDULES), SPECS), min_size=1, max_size=4).map(tuple)
    return st.builds(JobHistory, jobs, st.lists(STEPS, min_size=2, max_size=8).map(tuple))
