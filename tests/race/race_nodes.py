"""Two hands on one database. One verb is stopped in the middle of its transaction, its locks held; what does the other do?

    async with hands.midway(tick(hands.left), at="runs") as first:       # it holds the timer and is about to write the run
        second = await hands.behind(pause(hands.right, …))               # it waits for the timer, and we have seen it wait
    await first, await second                                            # let go: first commits, second goes on

Nothing here sleeps for luck: a verb is waited for until PostgreSQL itself says that it waits for a lock.
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
from tests.race.lock_waits import until_blocked

T = TypeVar("T")


@dataclass(slots=True)
class RaceNodes:
    left: Database
    right: Database
    lock_holder: AsyncConnection[Any]  # holds what the first verb must wait for
    watcher: AsyncConnection[Any]
    waiting: int = 0

    @asynccontextmanager
    async def paused_at_table(self, verb: Coroutine[Any, Any, T], at: str) -> AsyncIterator[asyncio.Task[T]]:
        """Stop `verb` where it first writes to the table `at`, until the block ends. `audit` is the last that people's verbs write."""
        await self.lock_holder.execute(SQL("LOCK TABLE foliot.{} IN SHARE MODE").format(Identifier(at)))
        async with self._held(verb) as task:
            yield task

    @asynccontextmanager
    async def paused_in_claim(self, verb: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
        """Stop a claim where it has its rows of `ready` and is about to write their leases, until the block ends."""
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
        """Stop a report where it has its timers and is about to write the ends of its runs, until the block ends. That of a plain success
        is one statement, which asks for its tables before it locks a row of any.
        """
        await self.lock_holder.execute("SELECT FROM foliot.runs FOR UPDATE")
        async with self._held(verb) as task:
            yield task

    async def start_blocked(self, verb: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start `verb`, and come back when it waits behind the one that is held."""
        task = asyncio.create_task(verb)
        self.waiting += 1
        await until_blocked(self.watcher, self.waiting)
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
