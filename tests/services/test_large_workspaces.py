"""Where a workspace is large, its agenda and its next run are found along the timers, and its jobs are not counted at every create."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import QuotaExceeded
from foliot.domain.ids import WorkspaceId
from foliot.domain.quotas import Quotas
from foliot.domain.schedule import Cron, Interval, Manual
from foliot.services.identity import quota_steps
from foliot.services.jobs import agenda, job_status, jobs
from foliot.services.runs import statistics
from foliot.storage.jobs import agenda as stored
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST
from tests.services.builders import Owner, create_job, make_definition

pytestmark = pytest.mark.anyio


async def test_both_ways_to_the_agenda_tell_the_same(
    database: Database, workspace: WorkspaceId, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour in range(4):
        await create_job(database, workspace, Cron(f"0 {hour} * * *"))
    await create_job(database, workspace, Interval(timedelta(minutes=20)))
    await create_job(database, workspace, Manual())
    await create_job(database, workspace, Cron("30 1 * * *"), start_at=clock.now() + timedelta(hours=3))
    paused = await create_job(database, workspace, Cron("0 5 * * *"))
    await job_status.pause(database, Scope(workspace, TEST), paused, until=clock.now() + timedelta(hours=2))
    through_jobs = await agenda.load_agenda(database, Scope(workspace))
    next_through_jobs = (await statistics.workspace_stats(database, Scope(workspace))).now.next_due_at
    monkeypatch.setattr(stored, "LEAST", 1)
    assert await agenda.load_agenda(database, Scope(workspace)) == through_jobs
    assert len(through_jobs.items) > 5
    assert (await statistics.workspace_stats(database, Scope(workspace))).now.next_due_at == next_through_jobs


async def test_what_runs_next_is_found_behind_many_that_start_first(
    database: Database, workspace: WorkspaceId, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "LEAST", 1)
    monkeypatch.setattr(stored, "FIRST_DUE", 2)
    for minutes in (1, 2, 3):
        starts = clock.now() + timedelta(minutes=minutes)
        await create_job(database, workspace, Cron("0 0 1 6 *"), start_at=starts)
    await create_job(database, workspace, Interval(timedelta(hours=1)))
    found = (await statistics.workspace_stats(database, Scope(workspace))).now.next_due_at
    assert found == clock.now() + timedelta(hours=1)


async def test_jobs_are_counted_once_in_a_while_and_the_quota_still_holds(
    database: Database, workspace: WorkspaceId, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_steps, "NEAR", 3)
    monkeypatch.setattr(quota_steps, "WORTH_REMEMBERING", 2)
    by = replace(TEST, quotas=Quotas(jobs=12))
    for _ in range(12):
        await jobs.create(database, Scope(workspace, by), make_definition(Manual()))
    with pytest.raises(QuotaExceeded):
        await jobs.create(database, Scope(workspace, by), make_definition(Manual()))
    assert owner.execute("SELECT count(*) FROM foliot.jobs").fetchone() == (12,)


async def test_what_another_node_made_since_the_count_counts(
    database: Database, workspace: WorkspaceId, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    monkeypatch.setattr(quota_steps, "NEAR", 2)
    monkeypatch.setattr(quota_steps, "WORTH_REMEMBERING", 4)
    by = replace(TEST, quotas=Quotas(jobs=14))
    for _ in range(6):
        await jobs.create(database, Scope(workspace, by), make_definition(Manual()))
    clock.advance(timedelta(minutes=1))
    for _ in range(8):  # without a quota, nothing is counted or remembered
        await jobs.create(database, Scope(workspace, TEST), make_definition(Manual()))
    with pytest.raises(QuotaExceeded):
        await jobs.create(database, Scope(workspace, by), make_definition(Manual()))
