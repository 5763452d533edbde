"""Claims on a direct connection are planned once, and the plan fits whatever the tables hold later."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from foliot.domain.ids import WorkerId, WorkspaceId
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queries import SqlQuery
from foliot.storage.queue import run_queue
from foliot.storage.queue.run_queue import ClaimOrder
from foliot.storage.tx import Database, PoolSize, Role
from foliot.testing.clock import ManualClock
from tests.services.builders import WORKER, insert_immortal_worker
from tests.services.test_claim_turns import put

pytestmark = pytest.mark.anyio
PREPARED = SqlQuery("prepared", b"SELECT count(*) AS n FROM pg_prepared_statements")
SCANS = SqlQuery(  # `installation` has one row
    "scans",
    b"SELECT relname::text AS name FROM pg_stat_xact_user_tables"
    b" WHERE seq_scan > 0 AND schemaname = 'foliot' AND relname <> 'installation'",
)


@pytest.fixture
async def direct(
    login_url: str, clock: ManualClock, owner: psycopg.Connection[Any]
) -> AsyncIterator[Database]:
    insert_immortal_worker(owner, WORKER)
    async with Database(login_url, clock=clock, size=PoolSize(1, 1), is_direct=True) as opened:
        yield opened


async def test_only_a_direct_connection_prepares_statements(
    direct: Database, login_url: str, clock: ManualClock
) -> None:
    async with Database(login_url, clock=clock, size=PoolSize(1, 1)) as pooled:
        counts = []
        for database in (pooled, direct):
            assert await claim(database, WORKER, "default", ["python"], 3, Turns()) == []
            async with database.tx(Role.ENGINE) as tx:
                counts.append(await tx.fetch_one(PREPARED))
    assert counts == [{"n": 0}, {"n": 1}]


async def test_other_transactions_of_a_direct_connection_are_planned_as_ever(direct: Database) -> None:
    async with direct.tx(Role.ENGINE, prepared=True) as tx:
        assert await tx.fetch_one(SqlQuery("q", b"SHOW enable_seqscan")) == {"enable_seqscan": "off"}
    async with direct.tx(Role.ENGINE) as tx:
        assert await tx.fetch_one(SqlQuery("q", b"SHOW enable_seqscan")) == {"enable_seqscan": "on"}
        assert await tx.fetch_one(SqlQuery("q", b"SHOW plan_cache_mode")) == {"plan_cache_mode": "auto"}


async def test_a_claim_that_was_planned_while_nothing_was_ready_reads_no_table_from_end_to_end(
    direct: Database, clock: ManualClock, owner: psycopg.Connection[Any]
) -> None:
    workspaces = [WorkspaceId(UUID(int=n)) for n in range(1, 4)]

    async def one_claim(most: int) -> tuple[list[UUID], list[str]]:
        async with direct.tx(Role.ENGINE, prepared=True) as tx:
            found = await run_queue.workspaces_with_work(tx, WorkerId(WORKER), "default", UUID(int=0), most)
            claimed = await run_queue.claim(
                tx, ClaimOrder(WORKER, "default", ["python"], most, most), workspaces
            )
            await run_queue.load_claimed(tx, claimed)
            scans = await tx.fetch(SCANS)
        assert {each.workspace_id for each in found} == {run.workspace_id for run in claimed}
        return [run.run_id for run in claimed], [row["name"] for row in scans]

    assert await one_claim(1) == ([], [])
    runs = {put(owner, workspace, clock.now(), uuid4()) for workspace in [1, 2, 3] * 50}
    claimed, scanned = await one_claim(500)
    assert (set(claimed), scanned) == (runs, [])
