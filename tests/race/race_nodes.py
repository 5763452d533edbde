"""Two nodes on one database: one verb is paused in the middle of its transaction, and another waits for its locks.

    async with nodes.paused_at_table(tick(nodes.left), at="runs") as first:       # it has locked the timer and is about to insert the run
        second = await nodes.start_blocked(pause(nodes.right, …))               # it waits for the timer
    await first, await second                                            # the first commits, the second continues

No test sleeps for a fixed time: PostgreSQL reports when a verb waits for a lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier

from foliot.storage.tx import Database
from tests.race.lock_waits import wait_until_blocked

T = TypeVar("T")


@dataclass(slots=True)
class RaceNodes:
    left: Database
    right: Database
    lock_holder: AsyncConnection[Any]  # holds the lock that the first verb waits for
    watcher: AsyncConnection[Any]
    waiting: int = 0

    @asynccontextmanager
    async def paused_at_table(self, verb: Coroutine[Any, Any, T], at: str) -> AsyncIterator[asyncio.Task[T]]:
        """Pause `verb` where it first writes to the table `at`, until the block ends. Verbs of users write `audit` last."""
        await self.lock_holder.execute(SQL("LOCK TABLE foliot.{} IN SHARE MODE").format(Identifier(at)))
        async with self._held(verb) as task:
            yield task

    @asynccontextmanager
    async def paused_in_claim(self, verb: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
        """Pause a claim that has locked its rows of `ready` and is about to insert leases, until the block ends."""
        await self.lock_holder.execute(
            "INSERT INTO foliot.leases (workspace_id, run_id, job_id, worker_id, fence, leased_at, deadline_at, queue, type, priority,"
            " available_at, planned_for, exclusive, timeout, trigger, attempts, retries, losses, started_at)"
            " SELECT workspace_id, run_id, job_id, gen_random_uuid(), 1, available_at, available_at, queue, type, priority,"
            " available_at, planned_for, exclusive, timeout, trigger, 1, 0, 0, available_at FROM foliot.ready"
        )
        async with self._held(verb) as task:
            yield task

    @asynccontextmanager
    async def paused_in_report(self, verb: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
        """Pause a report that has locked its timers and is about to settle its runs, until the block ends.

        The report of a simple success is one statement, which locks its tables before any row.
        """
        await self.lock_holder.execute("SELECT FROM foliot.runs FOR UPDATE")
        async with self._held(verb) as task:
            yield task

    async def start_blocked(self, verb: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start `verb` and return when it waits for a lock."""
        task = asyncio.create_task(verb)
        self.waiting += 1
        await wait_until_blocked(self.watcher, self.waiting)
        return task

    @asynccontextmanager
    async def _held(self, verb: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
        task = await self.start_blocked(verb)
        try:
            yield task
        finally:
            self.waiting = 0
            await self.lock_holder.rollback()
            await asyncio.wait([task], timeout=30)
