"""Counts of runs over time and by error, from a bounded scan."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.access import Scope
from foliot.domain.filters import read_query
from foliot.domain.filters.fields import RUNS
from foliot.domain.ids import WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Retry
from foliot.domain.run import RunError
from foliot.services.runs import history
from foliot.storage.runs import run_search
from foliot.storage.runs.run_search import RunFilter
from foliot.storage.tx import Database
from foliot.testing.clock import NOON, ManualClock
from tests.services.builders import HOURLY, advance_and_tick, claim_runs, create_job, report_runs

HOUR = timedelta(hours=1)
NO_RETRY = Retry(max=0)
MESSAGES = (
    "Could not connect to 10.0.0.7 after 3 tries",
    "order 0192f0c1-2b3a-7c4d-8e5f-60718293a4b5 not found at 0xDEADbeef",
    "  commit abcdef0123456789 of ABCDEF0123456789ab_x failed\t",
    "ÄRGER mit Ümläut №\uff15 und \u0661\u0662 \u2003",
    "x" * 600 + "7",
    "",
)


def found(text: str) -> RunFilter:
    return RunFilter(read_query(text, RUNS, NOON + 9 * HOUR))


async def fail_once(database: Database, clock: ManualClock, error: RunError) -> None:
    await advance_and_tick(database, clock, HOUR)
    await report_runs(database, await claim_runs(database), Failed(error))


@pytest.mark.parametrize("message", MESSAGES)
async def test_the_database_and_the_process_compute_one_fingerprint(
    database: Database, clock: ManualClock, workspace: WorkspaceId, message: str
) -> None:
    await create_job(database, workspace, HOURLY, retry=NO_RETRY)
    error = RunError("boom", message)
    await fail_once(database, clock, error)
    [group] = (await history.summarize(database, Scope(workspace))).errors
    assert group.fingerprint == error.fingerprint


async def test_the_same_error_of_two_jobs_is_one_group_and_the_filter_finds_its_runs(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    for name in ("a", "b"):
        await create_job(database, workspace, HOURLY, name=name, retry=NO_RETRY)
    await fail_once(database, clock, RunError("boom", "port 1 is closed"))
    await fail_once(database, clock, RunError("boom", "port 2 is closed"))
    await fail_once(database, clock, RunError("boom", "something else"))
    summary = await history.summarize(database, Scope(workspace))
    assert [(group.runs, group.jobs, group.newest.message) for group in summary.errors] == [
        (4, 2, "port 2 is closed"),
        (2, 2, "something else"),
    ]
    same, other = summary.errors
    assert (same.first_at, same.last_at) == (NOON + HOUR, NOON + 2 * HOUR)
    for text, runs in (
        (f"error:{same.fingerprint}", 4),
        (f"error:{other.fingerprint}", 2),
        ("error:boom", 6),
    ):
        page = await history.of_workspace(database, Scope(workspace), found(text))
        assert len(page.items) == runs, text
    assert (
        await history.summarize(database, Scope(workspace), found(f"-error:{same.fingerprint}"))
    ).runs == 2


async def test_buckets_count_by_planned_time_within_the_range(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    await create_job(database, workspace, HOURLY, retry=NO_RETRY)
    await fail_once(database, clock, RunError("boom", "first"))
    for _ in range(3):
        await advance_and_tick(database, clock, HOUR)
        await report_runs(database, await claim_runs(database))
    summary = await history.summarize(database, Scope(workspace), buckets=24)
    assert [(each.at, dict(each.runs)) for each in summary.buckets] == [
        (NOON + HOUR, {RunStatus.FAILED: 1}),
        (NOON + 2 * HOUR, {RunStatus.SUCCEEDED: 1}),
        (NOON + 3 * HOUR, {RunStatus.SUCCEEDED: 1}),
        (NOON + 4 * HOUR, {RunStatus.SUCCEEDED: 1}),
    ]
    assert (summary.runs, summary.counted_since, summary.until) == (4, None, NOON + 4 * HOUR)
    since = (NOON + 3 * HOUR).isoformat().replace("+00:00", "Z")
    later = await history.summarize(database, Scope(workspace), found(f"since:{since}"))
    assert (later.runs, later.since, later.errors) == (2, NOON + 3 * HOUR, ())


async def test_an_empty_workspace_has_an_empty_summary(database: Database, workspace: WorkspaceId) -> None:
    summary = await history.summarize(database, Scope(workspace))
    assert (summary.runs, summary.buckets, summary.errors) == (0, (), ())


async def test_a_summary_says_where_its_scan_stopped(
    database: Database, clock: ManualClock, workspace: WorkspaceId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_search, "MOST_SCANNED", 2)
    await create_job(database, workspace, HOURLY)
    for _ in range(3):
        await advance_and_tick(database, clock, HOUR)
        await report_runs(database, await claim_runs(database))
    summary = await history.summarize(database, Scope(workspace))
    assert (summary.runs, summary.counted_since) == (2, NOON + 2 * HOUR)
