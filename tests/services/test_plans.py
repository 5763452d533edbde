"""How PostgreSQL answers: a page of history is a walk along an index, however much the others did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from foliot.domain.filters import Between, read_query
from foliot.domain.filters.fields import RUNS
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.storage.queries import SqlQuery, sql
from foliot.storage.runs.run_search import RunCursor, RunFilter, RunScan, scan_of_job, scan_of_workspace
from foliot.storage.runs.statistics import DAYS_OF_JOB
from foliot.testing.clock import NOON
from foliot.testing.database import Databases
from tests.services.builders import Owner


@dataclass(frozen=True, slots=True)
class Crowd:
    """Three workspaces with a hundred jobs and three hundred runs each."""

    owner: Owner
    workspace: UUID
    job: UUID

    def walks(self, query: SqlQuery, params: Mapping[str, Any], *, engine: bool = False) -> set[str]:
        """The ways to runs that the planner chooses, under the policies."""
        with self.owner.transaction(force_rollback=True):
            self.owner.execute(
                "SELECT set_config('role', %s, true), set_config('foliot.workspace', %s, true),"
                " set_config('search_path', 'foliot', true)",
                ["foliot_engine" if engine else "foliot_app", self.workspace.hex],
            )
            found = self.owner.execute(b"EXPLAIN (FORMAT JSON) " + query.text, params).fetchone()
        assert found is not None
        return set(_walks(found[0][0]["Plan"]))


@pytest.fixture(scope="module")
def crowd(server: Databases) -> Iterator[Crowd]:
    with server.fresh() as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute(
            "CREATE TEMP TABLE crowd AS SELECT ('00000000-0000-0000-0000-00000000000' || (n % 3))::uuid AS workspace_id,"
            " gen_random_uuid() AS job_id FROM generate_series(1, 300) AS n"
        )
        owner.execute(
            "INSERT INTO foliot.runs (workspace_id, id, job_id, number, trigger, status, planned_for, planned_key, schedule_rev,"
            " created_at, started_at, finished_at, attempt_count)"
            " SELECT workspace_id, gen_random_uuid(), job_id, n, 'schedule', 'succeeded', at, at AT TIME ZONE 'UTC', 1, at, at, at, 1"
            " FROM crowd, generate_series(1, 300) AS n, LATERAL (SELECT %s::timestamptz - n * interval '1 hour') AS t (at)",
            [NOON],
        )
        owner.execute("VACUUM ANALYZE foliot.runs")
        one = owner.execute("SELECT workspace_id, job_id FROM crowd").fetchone()
        assert one is not None
        yield Crowd(owner, *one)


def _walks(node: dict[str, Any]) -> Iterator[str]:
    if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan") and node["Relation Name"] == "runs":
        yield node["Node Type"]
    if "Index Name" in node:
        yield node["Index Name"]
    for child in node.get("Plans", ()):
        yield from _walks(child)


FILTERS = [
    "",
    "status:failed",
    "since:24h",
    "until:2d",
    "since:9d until:2d -trigger:backfill",
    "tag:x",
    "worker:a attempts:>1",
    "error:boom",
]


def both_steps(crowd: Crowd, walk: RunScan) -> set[str]:
    summary = walk.summary(Between(), NOON, 48)
    return crowd.walks(*walk.page(50)) | crowd.walks(*walk.end()) | crowd.walks(*summary)


@pytest.mark.requirement("S1-D3", "S1-SC-005", "S2-23", "S4-11")
@pytest.mark.parametrize("is_second", [False, True])
@pytest.mark.parametrize("text", FILTERS)
def test_a_jobs_history_walks_its_own_index(crowd: Crowd, text: str, is_second: bool) -> None:
    after = RunCursor(NOON - timedelta(hours=1), RunId(UUID(int=5))) if is_second else None
    on_runs = both_steps(crowd, scan_of_job(JobId(crowd.job), found(text), after))
    assert "runs_newest_of_a_job" in on_runs
    assert not on_runs & {"Seq Scan", "runs_newest_of_a_workspace"}


@pytest.mark.parametrize("is_second", [False, True])
@pytest.mark.parametrize("text", FILTERS)
def test_a_workspaces_runs_are_found_by_its_own_index(crowd: Crowd, text: str, is_second: bool) -> None:
    after = RunCursor(NOON - timedelta(hours=1), RunId(UUID(int=5))) if is_second else None
    on_runs = both_steps(crowd, scan_of_workspace(WorkspaceId(crowd.workspace), found(text), after))
    assert "runs_newest_of_a_workspace" in on_runs
    assert "Seq Scan" not in on_runs


def test_open_runs_are_found_from_the_tables_that_hold_them(crowd: Crowd) -> None:
    walk = scan_of_workspace(WorkspaceId(crowd.workspace), found("status:running,ready"), None)
    on_runs = both_steps(crowd, walk)
    assert "runs_pkey" in on_runs
    assert not on_runs & {"Seq Scan", "runs_newest_of_a_workspace", "runs_newest_of_a_job"}


def found(text: str) -> RunFilter:
    return RunFilter(read_query(text, RUNS, NOON))


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (sql.run_history.find_near, "runs_newest_of_a_job"),
        (sql.run_history.find_gap, "runs_gaps_of_a_job"),
        (sql.statistics.load_timings, "runs_newest_of_a_job"),
        (sql.statistics.list_day_percentiles_of_job, "runs_newest_of_a_job"),
        (DAYS_OF_JOB, "runs_newest_of_a_job"),
    ],
)
def test_what_is_asked_of_one_job_reads_that_job(crowd: Crowd, query: SqlQuery, index: str) -> None:
    params = {
        "job_id": crowd.job,
        "at": NOON,
        "before": NOON,
        "most": 1_000,
        "scan": 5_000,
        "since": NOON.date(),
        "until": NOON.date(),
    }
    on_runs = crowd.walks(query, {**params, "rolled_to": UUID(int=0)})
    assert index in on_runs
    assert not on_runs & {"Seq Scan", "runs_newest_of_a_workspace"}


def test_pruning_reads_only_the_jobs_it_looks_at(crowd: Crowd) -> None:
    params = {
        "job_ids": [crowd.job],
        "horizons": [NOON],
        "keep_lasts": [100],
        "stricts": [False],
        "most": 2_000,
    }
    on_runs = crowd.walks(sql.retention.prune, params, engine=True)
    assert "runs_newest_of_a_job" in on_runs
    assert "Seq Scan" not in on_runs


def test_percentiles_of_a_workspace_probe_its_own_index(crowd: Crowd) -> None:
    params = {
        "workspace_id": crowd.workspace,
        "days": [NOON.date()],
        "lows": [UUID(int=0)],
        "highs": [UUID(int=2**128 - 1)],
        "most": 20,
    }
    on_runs = crowd.walks(sql.statistics.list_day_percentiles_of_workspace, params)
    assert "runs_newest_of_a_workspace" in on_runs
    assert not on_runs & {"Seq Scan", "Bitmap Heap Scan"}
