"""Simulated readers: they ask for explanations, pages of history and figures, and compare the answers with the ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from foliot.domain.access import Scope
from foliot.domain.explain.records import Verdict
from foliot.domain.schedule import is_chained, planned_after
from foliot.services.runs import explain, history
from foliot.services.runs.statistics import workspace_stats
from foliot.storage.tx import Database
from tools.simulation.command_log import CommandLog, JobHistory
from tools.simulation.invariants import InvariantBroken

ASKED = 3  # planned times of a job, at the end of a day
MOST_JOBS = 60  # whose times are asked for, or whose pages are read
PAGE = 7
MOST_DAYS = 3_660
# Reasons that are known before a planned time comes. A window or a calendar may also close before a worker comes.
KNOWN_BEFORE = frozenset({"paused", "frozen", "operator", "dst_gap", "type_disabled"})
CLOSED = frozenset({"window", "blackout"})
_RECORD = """
SELECT status, skip_reason, started_at FROM foliot.runs
 WHERE job_id = %s AND trigger = 'schedule' AND planned_for <= %s AND COALESCE(planned_until, planned_for) >= %s
 ORDER BY planned_until NULLS FIRST LIMIT 1
"""
_FIGURES = """
SELECT count(*), count(*) FILTER (WHERE status <> 'skipped' AND attempt_count > 0), count(*) FILTER (WHERE status = 'succeeded'),
       count(*) FILTER (WHERE status IN ('failed', 'timed_out', 'interrupted') AND attempt_count > 0),
       COALESCE(sum(CASE WHEN status <> 'skipped' THEN 0 WHEN planned_until IS NULL THEN 1 ELSE COALESCE(count, 10000) END), 0)
  FROM foliot.runs WHERE workspace_id = %s AND status IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What explain said of a planned time before it came, and how many commands the job had got by then."""

    job: JobHistory
    planned_for: datetime
    due_at: datetime
    will_run: bool
    asked_at: datetime
    commands: int


class Readers:
    def __init__(self, database: Database, owner: psycopg.Connection[Any], command_log: CommandLog) -> None:
        self._database = database
        self._owner = owner
        self._command_log = command_log
        self._forecasts: list[Forecast] = []
        self.checked = 0

    async def end_day(self, now: datetime) -> None:
        """Compare what was forecast a day ago with what happened, and ask for the next times."""
        for each in self._forecasts:
            if message := self._find_broken_promise(each, now):
                raise InvariantBroken(message)
        self._forecasts = [each async for each in self._ask(now)]

    async def check_everything(self) -> None:
        for job in _some(list(self._command_log.histories.values())):
            await self._check_pages(job)
        for workspace_id in {job.workspace_id for job in self._command_log.histories.values()}:
            self.checked += 1
            found = (await workspace_stats(self._database, Scope(workspace_id), MOST_DAYS)).totals
            figures = (found.records, found.runs, found.successes, found.failures, found.skips)
            counted = self._owner.execute(_FIGURES, [workspace_id]).fetchone()
            if figures != counted:
                raise InvariantBroken(f"statistics: {figures} where the records are {counted}")

    async def _ask(self, now: datetime) -> AsyncIterator[Forecast]:
        for job in _some(list(self._command_log.histories.values())):
            timetable, after = job.periods[-1].timetable, now
            for _ in range(0 if is_chained(timetable.schedule) else ASKED):
                planned = planned_after(timetable, after)
                if planned is None:
                    break
                after = planned.planned_for
                said = await explain.explain_instant(self._database, Scope(job.workspace_id), job.id, after)
                verdict = said.explanation.verdict
                if verdict in (Verdict.WILL_RUN, Verdict.WILL_NOT_RUN):  # what will wait may do either
                    is_run = verdict is Verdict.WILL_RUN
                    yield Forecast(job, after, planned.due_at, is_run, now, job.commands)

    def _find_broken_promise(self, said: Forecast, now: datetime) -> str | None:
        """Return what explain promised wrongly. What a command or a breaker has changed since is not its fault."""
        job, ticks = said.job, self._command_log.ticks
        row = self._owner.execute("SELECT status_at FROM foliot.jobs WHERE id = %s", [job.id]).fetchone()
        is_changed = row is None or row[0] > said.asked_at or job.commands > said.commands
        if is_changed or said.due_at > now or not ticks or said.due_at > ticks[-1]:
            return None
        self.checked += 1
        found = self._owner.execute(_RECORD, [job.id, said.planned_for, said.planned_for]).fetchone()
        status, reason, started_at = found or (None, None, None)
        when = f"{job.name} at {said.planned_for}, asked at {said.asked_at}"
        known = KNOWN_BEFORE if job.is_guarded else KNOWN_BEFORE | CLOSED
        if said.will_run and status == "skipped" and reason in known:
            return f"explain: it will run, but was skipped ({reason}): {when}"
        is_open_question = job.spec.max_runs is not None or job.is_frozen(said.due_at)
        if not said.will_run and started_at is not None and not is_open_question:
            return f"explain: it will not run, but ran: {when}"
        return None

    async def _check_pages(self, job: JobHistory) -> None:
        """The pages of a history hold each run once, by planned time."""
        self.checked += 1
        seen: list[Any] = []
        cursor: str | None = None
        while not seen or cursor is not None:
            page = await history.of_job(
                self._database, Scope(job.workspace_id), job.id, cursor=cursor, limit=PAGE
            )
            seen += [run.id for run in page.items]
            cursor = page.next_cursor
            if not page.items:
                break
        rows = self._owner.execute(
            "SELECT id FROM foliot.runs WHERE job_id = %s ORDER BY planned_for DESC, id DESC", [job.id]
        ).fetchall()
        if seen != [run_id for (run_id,) in rows]:
            raise InvariantBroken(
                f"pages of {job.name} show {len(seen)} runs of {len(rows)}, or in another order"
            )


def _some(jobs: Sequence[JobHistory]) -> Iterator[JobHistory]:
    """Yield jobs from the whole world, evenly."""
    yield from jobs[:: max(1, len(jobs) // MOST_JOBS)]
