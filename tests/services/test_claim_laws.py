"""Claims of every kind take the same runs: from all workspaces, for one workspace, under a cap, for a host."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from foliot.domain.access import Scope
from foliot.domain.ids import HostId, WorkerId, WorkspaceId
from foliot.services.workers import hosts
from foliot.services.workers.claim import Claimer, ClaimSize, Turns, _claim_queue, _return_claimed, claim_work
from foliot.services.workers.limits import set_limit
from foliot.testing.fixtures import TEST
from tests.examples import examples
from tests.services.remote_hosts import register_host, worker_principal
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio
LAW = settings(examples(60, some=8), suppress_health_check=list(HealthCheck))
TICK, SECOND, HOUR = timedelta(microseconds=1), timedelta(seconds=1), timedelta(hours=1)
TYPES = ["python"]
MANY = 100
ERROR = {"code": "boom", "message": "It broke."}
COMPARED = (
    "run_id, job_id, fence, leased_at, deadline_at, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,"
    " timeout, expires_at, trigger, attempts, retries, losses, started_at, last_error, read_only"
)
LEFT = "run_id, position, priority, available_at, expires_at, fence, attempts"


@dataclass(frozen=True, slots=True)
class ReadyRun:
    """A row of `ready`. Instants are relative to the claim."""

    available: timedelta
    expires: timedelta | None
    priority: int
    type: str
    attempts: int
    key: str | None

    def may_start(self) -> bool:
        is_in_time = self.expires is None or self.expires > timedelta(0)
        return self.available <= timedelta(0) and is_in_time and self.type in TYPES


RUNS = st.builds(
    ReadyRun,
    st.sampled_from([-HOUR, -SECOND, -TICK, 0 * TICK, TICK, SECOND]),
    st.sampled_from([None, None, -SECOND, 0 * TICK, TICK, HOUR]),
    st.integers(-1, 1),
    st.sampled_from(["python", "python", "http"]),
    st.integers(0, 2),
    st.sampled_from([None, "db"]),
)


@dataclass
class ClaimedRows:
    leases: list[tuple[Any, ...]]
    left: list[tuple[Any, ...]]


@pytest.fixture
async def host(harness: WorkspaceHarness) -> tuple[WorkerId, HostId]:
    """A host that takes any number of runs, and its worker."""
    made = await register_host(
        harness.database, worker_principal(harness.workspace), "h1", lease=timedelta(days=9)
    )
    scope = Scope(harness.workspace, TEST)
    await hosts.change(harness.database, scope, made.id, {"max_mutations": MANY, "max_reads": MANY})
    return made.worker, made.id


@LAW
@given(runs=st.lists(RUNS, min_size=1, max_size=8), permits=st.integers(1, 8))
async def test_every_kind_of_claim_takes_the_same_runs(
    harness: WorkspaceHarness, host: tuple[WorkerId, HostId], runs: list[ReadyRun], permits: int
) -> None:
    worker, host_id = host
    plain = await claimed(
        harness, runs, Claimer(harness.worker, "default", TYPES, ClaimSize(permits), Turns())
    )
    assert [row[0] for row in plain.leases] == expected(runs, permits)
    assert [(row[2], row[15]) for row in plain.leases] == [
        (runs[run_id.int - 1].attempts + 1,) * 2 for run_id in (row[0] for row in plain.leases)
    ]
    bound = Claimer(worker, "default", TYPES, ClaimSize(permits), Turns(), harness.workspace)
    assert await claimed(harness, runs, bound) == plain
    everywhere = Claimer(harness.worker, "default", TYPES, ClaimSize(permits), Turns())
    assert await claimed(harness, runs, everywhere, cap=MANY) == plain
    assert await claimed(harness, runs, bound, cap=MANY) == plain
    careful = Claimer(harness.worker, "default", TYPES, ClaimSize(permits), Turns(), is_careful=True)
    assert await claimed(harness, runs, careful) == plain
    for cap in (None, MANY):
        for_host = Claimer(worker, "default", TYPES, ClaimSize(permits), Turns(), harness.workspace, host_id)
        assert await claimed(harness, runs, for_host, cap=cap, target="host/h1") == plain


async def test_no_claim_takes_a_run_of_a_host_that_is_another(
    harness: WorkspaceHarness, host: tuple[WorkerId, HostId]
) -> None:
    worker, host_id = host
    run = [ReadyRun(-SECOND, None, 0, "python", 0, None)]
    for claimer in (
        Claimer(harness.worker, "default", TYPES, ClaimSize(MANY), Turns()),
        Claimer(worker, "default", TYPES, ClaimSize(MANY), Turns(), harness.workspace),
        Claimer(worker, "default", TYPES, ClaimSize(MANY), Turns(), harness.workspace, host_id),
    ):
        for cap in (None, MANY):
            assert (await claimed(harness, run, claimer, cap=cap, target="host/h2")).leases == []


async def test_a_claim_under_a_cap_of_one_workspace_takes_nothing_of_another(
    harness: WorkspaceHarness, host: tuple[WorkerId, HostId]
) -> None:
    worker, _ = host
    other = WorkspaceId(UUID(int=9))
    insert(harness, [ReadyRun(-SECOND, None, 0, "python", 0, None)], other, None)
    for cap in (None, MANY):
        await set_limit(harness.database, Scope(harness.workspace, TEST), "", cap)
        bound = Claimer(worker, "default", TYPES, ClaimSize(MANY), Turns(), harness.workspace)
        assert await _claim_queue(harness.database, bound, _return_claimed) == []


async def claimed(
    harness: WorkspaceHarness,
    runs: list[ReadyRun],
    claimer: Claimer,
    *,
    cap: int | None = None,
    target: str | None = None,
) -> ClaimedRows:
    """Claim from these runs alone, and return what the claim wrote and left."""
    for table in ("leases", "ready", "waiting"):
        harness.owner.execute(f"DELETE FROM foliot.{table}".encode())
    insert(harness, runs, harness.workspace, target)
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", cap)
    taken = await _claim_queue(harness.database, claimer, _return_claimed)
    leases = harness.owner.execute(
        f"SELECT {COMPARED} FROM foliot.leases ORDER BY run_id".encode()
    ).fetchall()
    left = harness.owner.execute(f"SELECT {LEFT} FROM foliot.ready ORDER BY position".encode()).fetchall()
    assert sorted(run.run_id for run in taken) == [row[0] for row in leases]
    assert harness.owner.execute("SELECT run_id FROM foliot.waiting").fetchall() == []
    if cap is not None:
        in_use = harness.owner.execute("SELECT in_use FROM foliot.limits WHERE key = ''").fetchone()
        assert in_use == (len(leases),)
    return ClaimedRows(leases, left)


def expected(runs: list[ReadyRun], permits: int) -> list[UUID]:
    """Return the runs that may start, the most urgent and then the oldest of them, by id."""
    able = [(run.priority, run.available, place) for place, run in enumerate(runs, 1) if run.may_start()]
    return sorted(UUID(int=place) for _, _, place in sorted(able)[:permits])


def insert(
    harness: WorkspaceHarness, runs: list[ReadyRun], workspace: WorkspaceId, target: str | None
) -> None:
    now = harness.clock.now()

    def at(by: timedelta | None) -> datetime | None:
        return None if by is None else now + by

    for place, run in enumerate(runs, 1):
        harness.owner.execute(
            "INSERT INTO foliot.ready (workspace_id, run_id, job_id, queue, type, priority, available_at, position, planned_for,"
            " exclusive, concurrency_key, timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error, target)"
            " OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, 'default', %s, %s, %s, %s, %s, true, %s, '7 min', %s, 'schedule',"
            " %s, %s, %s, %s, %s, %s, %s)",
            [
                workspace, UUID(int=place), UUID(int=100 + place), run.type, run.priority, at(run.available), place, now - HOUR,
                run.key, at(run.expires), run.attempts, run.attempts, run.attempts, 0, at(-HOUR) if run.attempts else None,
                Jsonb(ERROR) if run.attempts else None, target,
            ],
        )  # fmt: skip


async def test_a_worker_whose_lease_is_over_claims_nothing(
    harness: WorkspaceHarness, host: tuple[WorkerId, HostId]
) -> None:
    worker, host_id = host
    run = [ReadyRun(-SECOND, None, 0, "python", 0, None)]
    bound = Claimer(worker, "default", TYPES, ClaimSize(MANY), Turns(), harness.workspace)
    for_host = Claimer(worker, "default", TYPES, ClaimSize(MANY), Turns(), harness.workspace, host_id)
    everywhere = Claimer(worker, "default", TYPES, ClaimSize(MANY), Turns())
    for over, leases in ((timedelta(days=9), 1), (TICK, 0)):
        harness.clock.advance(over)
        assert len((await claimed(harness, run, everywhere)).leases) == leases
        assert len((await claimed(harness, run, bound)).leases) == leases
        assert len((await claimed(harness, run, for_host, target="host/h1")).leases) == leases


@pytest.mark.parametrize("cap", [None, MANY])
async def test_a_run_that_cannot_be_leased_uses_no_permit(harness: WorkspaceHarness, cap: int | None) -> None:
    """Two ready runs of one exclusive job are an error of our own: one of them is leased."""
    await set_limit(harness.database, Scope(harness.workspace, TEST), "", cap)
    run = ReadyRun(-SECOND, None, 0, "python", 0, None)
    insert(harness, [run, run, run], harness.workspace, None)
    harness.owner.execute("UPDATE foliot.ready SET job_id = %s WHERE position < 3", [UUID(int=101)])
    claimer = Claimer(harness.worker, "default", TYPES, ClaimSize(MANY), Turns())
    taken = await _claim_queue(harness.database, claimer, _return_claimed)
    assert sorted(each.run_id.int for each in taken) in ([1, 3], [2, 3])
    left = harness.owner.execute("SELECT count(*) FROM foliot.ready").fetchone()
    in_use = harness.owner.execute("SELECT in_use FROM foliot.limits").fetchall()
    assert (left, in_use) == ((1,), [] if cap is None else [(2,)])


async def test_a_claimed_run_whose_job_is_gone_is_reported_to_the_caller(harness: WorkspaceHarness) -> None:
    insert(harness, [ReadyRun(-SECOND, None, 0, "python", 0, None)], harness.workspace, None)
    claimer = Claimer(harness.worker, "default", TYPES, ClaimSize(MANY), Turns())
    found = await claim_work(harness.database, claimer)
    assert (found.work, [each.run_id for each in found.orphans]) == ([], [UUID(int=1)])
