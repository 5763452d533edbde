"""How PostgreSQL goes about the statements that must not grow with the number of jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg

from foliot.storage.queries import sql

NOW = datetime(2027, 1, 15, tzinfo=UTC)


def test_due_timers_come_in_the_order_of_their_index_without_a_sort(owner: psycopg.Connection[Any]) -> None:
    """An order that names a computed column of the answer instead would read and sort every due timer for each batch."""
    owner.execute("SET search_path TO foliot")
    owner.execute("SET enable_seqscan TO off")
    owner.execute("SET enable_bitmapscan TO off")
    params = {"now": NOW, "limit": 500, "zone_data": "2026a"}
    plan = "\n".join(row[0] for row in owner.execute(b"EXPLAIN " + sql.fires.take_due.text, params))
    assert "Index Scan using timers_due" in plan
    assert "Sort" not in plan


def test_recent_runs_of_several_jobs_walk_the_index_of_each(owner: psycopg.Connection[Any]) -> None:
    """A list of jobs shows a strip of marks for each: it must not read the runs of the workspace."""
    owner.execute("SET search_path TO foliot")
    owner.execute("SET enable_seqscan TO off")
    owner.execute("SET enable_bitmapscan TO off")
    params = {"job_ids": [uuid4()], "limit": 30, "since": None, "visible_owner": None}
    statement = b"EXPLAIN " + sql.run_history.list_recent.text
    plan = "\n".join(row[0] for row in owner.execute(statement, params))
    assert "Index Scan using runs_newest_of_a_job" in plan


def test_failing_jobs_are_found_by_the_index_of_those_alone(owner: psycopg.Connection[Any]) -> None:
    owner.execute("SET search_path TO foliot")
    owner.execute("SET enable_seqscan TO off")
    statement = (
        "EXPLAIN SELECT count(*) FROM jobs JOIN timers ON timers.job_id = jobs.id"
        " WHERE jobs.workspace_id = %(workspace_id)s AND timers.workspace_id = %(workspace_id)s AND timers.failures_in_a_row >= %(least)s::bigint"
    )
    plan = "\n".join(row[0] for row in owner.execute(statement, {"workspace_id": uuid4(), "least": 1}))
    assert "timers_failing" in plan
