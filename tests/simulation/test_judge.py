"""The judge is judged: every bug planted into a right history must be found, under the name of the promise it breaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.services.runs import history as run_history
from foliot.services.runs.statistics import workspace_stats
from foliot.storage.tx import Database
from tools.simulation.expectation import may_begin
from tools.simulation.invariants import InvariantBroken
from tools.simulation.readers import Forecast, Readers
from tools.simulation.run import Run

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(900)]

SOME = "(SELECT id FROM foliot.runs WHERE {} ORDER BY id LIMIT 1)"
STARTED = "started_at IS NOT NULL AND trigger = 'schedule' AND attempt_count = 1 AND status = 'succeeded'"
EXCLUSIVE = "job_id IN (SELECT job_id FROM foliot.timers WHERE spec NOT LIKE '%concurrent%')"
CALENDAR = (
    "job_id IN (SELECT id FROM foliot.jobs WHERE definition -> 'spec' -> 'schedule' ->> 'kind' = 'cron')"
)

ON_HOST = (
    "job_id IN (SELECT id FROM foliot.jobs WHERE definition -> 'spec' ? 'target'"
    " AND NOT COALESCE((definition -> 'spec' -> 'read_only')::boolean, false))"
)

PLANTED = {
    "a planned time with two records": (
        "I2",
        f"""DROP INDEX foliot.runs_one_per_planned_time;
            CREATE TEMP TABLE twin ON COMMIT DROP AS SELECT * FROM foliot.runs WHERE id = {SOME.format(STARTED)};
            UPDATE twin SET id = gen_random_uuid(); INSERT INTO foliot.runs SELECT * FROM twin""",
    ),
    "a record that is gone": (
        "I1",
        f"DELETE FROM foliot.runs WHERE id = {SOME.format(STARTED + ' AND ' + CALENDAR)}",
    ),
    "a record for a time that was not planned": (
        "I1",
        f"""UPDATE foliot.runs SET planned_for = planned_for - '7 min'::interval, planned_key = planned_key - '7 min'::interval
             WHERE id = {SOME.format(STARTED + " AND " + CALENDAR)}""",
    ),
    "a record under another wall-clock time": (
        "I1",
        f"UPDATE foliot.runs SET planned_key = planned_key + '1 second'::interval WHERE id = {SOME.format(STARTED + ' AND ' + CALENDAR)}",
    ),
    "a gap record that counts one too many": (
        "I1",
        f"UPDATE foliot.runs SET count = count + 1 WHERE id = {SOME.format('planned_until IS NOT NULL')}",
    ),
    "a timer that will miss its next planned time": (
        "I1",
        f"""UPDATE foliot.timers SET due_at = due_at + '1 day'::interval WHERE job_id =
            (SELECT job_id FROM foliot.timers WHERE {CALENDAR} AND status = 'active' AND due_at < 'infinity' LIMIT 1)""",
    ),
    "a run made before its time": (
        "I3",
        f"UPDATE foliot.runs SET created_at = planned_for - '1 second'::interval WHERE id = {SOME.format(STARTED)}",
    ),
    "an attempt started before its time": (
        "I3",
        f"UPDATE foliot.runs SET started_at = planned_for - '1 second'::interval WHERE id = {SOME.format(STARTED)}",
    ),
    "an attempt that reaches into the next": (
        "I5",
        f"""UPDATE foliot.runs SET finished_at = finished_at + '20 days'::interval WHERE id =
            {SOME.format(STARTED + " AND " + EXCLUSIVE)}""",
    ),
    "a change on a host that reaches into the next": (
        "I5 hosts",
        f"""UPDATE foliot.runs SET finished_at = finished_at + '20 days'::interval WHERE id =
            {SOME.format(STARTED + " AND " + ON_HOST)}""",
    ),
    "a run of a host that another worker has": (
        "hosts have",
        f"""INSERT INTO foliot.leases (workspace_id, run_id, job_id, worker_id, fence, leased_at, deadline_at, queue, type, priority,
                   available_at, planned_for, exclusive, timeout, trigger, attempts, retries, losses, started_at)
            SELECT workspace_id, id, job_id, worker_id, fence, started_at, started_at, 'default', 'simulated', 0, planned_for,
                   planned_for, false, '1 min', trigger, 1, 0, 0, started_at
              FROM foliot.runs WHERE id = {SOME.format(STARTED + " AND " + ON_HOST)}""",
    ),
    "a fence that falls": ("I6", "UPDATE foliot.attempts SET fence = 1 WHERE number = 2"),
    "attempts of one run that overlap": (
        "I6",
        "UPDATE foliot.attempts SET ended_at = ended_at + '20 days'::interval WHERE number = 1",
    ),
    "a dependent that ran before its upstream had ended": (
        "I7",
        "UPDATE foliot.runs SET created_at = created_at - '20 days'::interval WHERE trigger = 'dependency'",
    ),
    "a success that triggered nothing": ("I7", "DELETE FROM foliot.runs WHERE trigger = 'dependency'"),
    "a retry too many": (
        "I9",
        """INSERT INTO foliot.attempts SELECT workspace_id, run_id, number + 100 + n, 'failed', worker_id, fence + 100 + n, ended_at, ended_at
             FROM foliot.attempts, generate_series(1, 9) AS n WHERE number = 1""",
    ),
    "an end that was written anew": (
        "I10",
        f"UPDATE foliot.runs SET status = 'cancelled' WHERE id = {SOME.format(STARTED)}",
    ),
    "an open run that stands nowhere": (
        "open runs",
        f"UPDATE foliot.runs SET status = NULL, finished_at = NULL WHERE id = {SOME.format(STARTED)}",
    ),
    "a timer that believes in a live run": (
        "timers count",
        "UPDATE foliot.timers SET live = live + 1 WHERE job_id = (SELECT job_id FROM foliot.timers ORDER BY job_id LIMIT 1)",
    ),
    "a counter that is one off": (
        "counters",
        "UPDATE foliot.timers SET success_count = success_count + 1 WHERE job_id = (SELECT min(job_id::text)::uuid FROM foliot.timers)",
    ),
    "a day that counts one run too many": (
        "statistics",
        "UPDATE foliot.job_days SET runs = runs + 1 WHERE ctid = (SELECT ctid FROM foliot.job_days LIMIT 1)",
    ),
    "a day that was not added up": ("statistics", "DELETE FROM foliot.job_days"),
    "a due timer that the tick left behind": (
        "nothing due",
        "UPDATE foliot.timers SET due_at = cursor_at - '1 day'::interval WHERE status = 'active'",
    ),
    "a run that nobody takes": (
        "I14",
        f"""INSERT INTO foliot.ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, timeout, trigger)
            SELECT workspace_id, id, job_id, 'default', 'simulated', 0, planned_for, planned_for, false, '1 min', trigger
              FROM foliot.runs WHERE id = {SOME.format(STARTED)}""",
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
async def test_a_planted_bug_is_found(finished_run: Run, bug: str) -> None:
    promise, statement = PLANTED[bug]
    with finished_run.owner.transaction(force_rollback=True):
        finished_run.owner.execute(statement)
        found = list(finished_run.judge.violations(finished_run.now))
    assert any(complaint.startswith(promise) for complaint in found), found


async def test_a_right_history_is_not_complained_about(finished_run: Run) -> None:
    assert list(finished_run.judge.violations(finished_run.now)) == []


async def test_a_start_outside_its_window_is_found(finished_run: Run) -> None:
    guarded = [
        history for history in finished_run.driver.command_log.histories.values() if history.is_guarded
    ]
    hours = [finished_run.now + timedelta(hours=hour) for hour in range(24)]
    for history in guarded:
        answers = {may_begin(history, hour, hour) for hour in hours}
        assert answers == {True, False}


@pytest.fixture
async def readers(finished_run: Run) -> AsyncIterator[Readers]:
    async with Database(finished_run.driver.shared.url, clock=finished_run.driver.clock) as database:
        yield Readers(database, finished_run.owner, finished_run.driver.command_log)


async def test_readers_of_a_right_history_find_nothing(readers: Readers) -> None:
    await readers.check_everything()
    assert readers.checked > 10


async def test_a_page_that_drops_a_run_is_found(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    of_job = run_history.of_job

    async def short(*args: Any, **options: Any) -> Any:
        page = await of_job(*args, **options)
        return replace(page, items=page.items[1:] or page.items)

    monkeypatch.setattr(run_history, "of_job", short)
    with pytest.raises(InvariantBroken, match="pages"):
        await readers.check_everything()


async def test_figures_of_another_workspace_are_found(
    readers: Readers, finished_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    [(busiest,)] = finished_run.owner.execute(
        "SELECT workspace_id FROM foliot.runs GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
    ).fetchall()

    async def of_another(database: Database, scope: Scope, days: int) -> Any:
        return await workspace_stats(database, Scope(busiest), days)

    monkeypatch.setattr("tools.simulation.readers.workspace_stats", of_another)
    with pytest.raises(InvariantBroken, match="statistics"):
        await readers.check_everything()


async def test_a_promise_that_did_not_come_true_is_found(readers: Readers, finished_run: Run) -> None:
    log = finished_run.driver.command_log
    [(job_id, planned_for)] = finished_run.owner.execute(
        "SELECT job_id, planned_for FROM foliot.runs JOIN foliot.jobs ON jobs.id = job_id"
        " WHERE started_at IS NOT NULL AND trigger = 'schedule' AND job_id = ANY (%s) AND status_at < planned_for"
        " ORDER BY planned_for DESC LIMIT 1",
        [[each.id for each in log.histories.values() if each.spec.max_runs is None and not each.frozen]],
    ).fetchall()
    job = log.histories[job_id]
    right = Forecast(job, planned_for, planned_for, True, planned_for, job.commands)
    assert readers._find_broken_promise(right, finished_run.now) is None
    wrong = replace(right, will_run=False)
    assert "will not run, but ran" in (readers._find_broken_promise(wrong, finished_run.now) or "")
    assert readers._find_broken_promise(replace(wrong, commands=-1), finished_run.now) is None
