"""The invariants that the database holds itself: a wrong row is refused, whatever wrote it."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors as pg

ONE, OTHER = UUID(int=1), UUID(int=2)
RUN = (
    "INSERT INTO foliot.runs (workspace_id, id, job_id, number, trigger, status, skip_reason, planned_for, planned_key,"
    " schedule_rev, created_at, finished_at, upstream_run_id) VALUES (%(workspace)s, %(id)s, %(job)s, 1, %(trigger)s, %(status)s,"
    " %(reason)s, '2027-01-01Z', '2027-01-01', 1, '2027-01-01Z', %(end)s, %(upstream)s)"
)
LEASE = (
    "INSERT INTO foliot.leases (workspace_id, run_id, job_id, worker_id, fence, leased_at, deadline_at, queue, type, priority,"
    " available_at, planned_for, exclusive, timeout, trigger, attempts, retries, losses, started_at)"
    " SELECT %s, gen_random_uuid(), %s, gen_random_uuid(), 1, now(), now(), 'default', 'http', 0, now(), now(), %s,"
    " '1 min', 'schedule', 1, 0, 0, now()"
)
END = "2027-01-01Z"


def insert_run(owner: psycopg.Connection[Any], **fields: Any) -> None:
    plain = {"workspace": ONE, "id": uuid4(), "job": ONE, "trigger": "manual", "status": None, "reason": None}
    owner.execute(RUN, {**plain, "end": None, "upstream": None, **fields})


def insert_job(owner: psycopg.Connection[Any], workspace: UUID, job: UUID) -> None:
    owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, %s, 'x', now()) ON CONFLICT DO NOTHING",
        [workspace, f"w{workspace.int}"],
    )
    owner.execute(
        "INSERT INTO foliot.jobs (workspace_id, id, name, type, queue, definition, status, status_at, created_by, created_at, updated_at)"
        " VALUES (%s, %s, 'x', 'http', 'default', '{}', 'active', now(), 'x', now(), now())",
        [workspace, job],
    )


@pytest.mark.parametrize("count", ["live", "waiting"])
def test_a_timer_counts_no_fewer_runs_than_none(owner: psycopg.Connection[Any], count: str) -> None:
    with pytest.raises(pg.CheckViolation, match="timers_counts_are_not_negative"):
        owner.execute(
            f"INSERT INTO foliot.timers (workspace_id, job_id, status, spec, schedule_rev, cursor_at, {count})"
            " VALUES (gen_random_uuid(), gen_random_uuid(), 'active', '', 1, now(), -1)".encode()
        )


@pytest.mark.parametrize(("cap", "in_use"), [(1, -1), (0, 0), (-1, 0)])
def test_a_limit_has_a_cap_and_no_debts(owner: psycopg.Connection[Any], cap: int, in_use: int) -> None:
    with pytest.raises(pg.CheckViolation, match="limits_"):
        owner.execute(
            "INSERT INTO foliot.limits (workspace_id, key, cap, in_use) VALUES (gen_random_uuid(), '', %s, %s)",
            [cap, in_use],
        )


def test_a_run_ends_with_a_status_and_an_instant(owner: psycopg.Connection[Any]) -> None:
    for fields in ({"status": "succeeded"}, {"end": END}):
        with pytest.raises(pg.CheckViolation, match="runs_end_together"):
            insert_run(owner, **fields)
    insert_run(owner, status="succeeded", end=END)


def test_a_skip_and_nothing_else_has_a_reason(owner: psycopg.Connection[Any]) -> None:
    for fields in ({"status": "skipped", "end": END}, {"status": "failed", "end": END, "reason": "overlap"}):
        with pytest.raises(pg.CheckViolation, match="runs_skipped_have_a_reason"):
            insert_run(owner, **fields)
    with pytest.raises(pg.CheckViolation, match="runs_skipped_have_a_reason"):
        insert_run(owner, reason="overlap")
    insert_run(owner, status="skipped", end=END, reason="overlap")


def test_a_planned_time_has_one_record(owner: psycopg.Connection[Any]) -> None:
    insert_run(owner, trigger="schedule")
    with pytest.raises(pg.UniqueViolation, match="runs_one_per_planned_time"):
        insert_run(owner, trigger="schedule")
    insert_run(owner, trigger="schedule", job=OTHER)
    insert_run(owner, trigger="retry")


def test_an_upstream_run_starts_a_dependent_once(owner: psycopg.Connection[Any]) -> None:
    insert_run(owner, trigger="dependency", upstream=ONE)
    with pytest.raises(pg.UniqueViolation, match="runs_one_per_upstream_run"):
        insert_run(owner, trigger="dependency", upstream=ONE)
    insert_run(owner, trigger="dependency", upstream=ONE, job=OTHER)
    insert_run(owner, trigger="dependency", upstream=OTHER)


def test_an_exclusive_job_has_one_lease(owner: psycopg.Connection[Any]) -> None:
    owner.execute(LEASE, [ONE, ONE, True])
    with pytest.raises(pg.UniqueViolation, match="leases_one_per_exclusive_job"):
        owner.execute(LEASE, [ONE, ONE, True])
    for _ in range(2):
        owner.execute(LEASE, [ONE, OTHER, False])


def test_an_edge_stays_within_one_workspace(owner: psycopg.Connection[Any]) -> None:
    mine, sibling, foreign = UUID(int=11), UUID(int=12), UUID(int=13)
    insert_job(owner, ONE, mine)
    insert_job(owner, ONE, sibling)
    insert_job(owner, OTHER, foreign)
    edge = (
        'INSERT INTO foliot.dependencies (workspace_id, job_id, upstream_id, "on", mode)'
        " VALUES (%s, %s, %s, 'success', 'trigger')"
    )
    for workspace, job, upstream in ((ONE, mine, foreign), (OTHER, mine, foreign), (ONE, foreign, mine)):
        with pytest.raises(pg.ForeignKeyViolation):
            owner.execute(edge, [workspace, job, upstream])
    with pytest.raises(pg.CheckViolation, match="dependencies_not_on_itself"):
        owner.execute(edge, [ONE, mine, mine])
    owner.execute(edge, [ONE, mine, sibling])
