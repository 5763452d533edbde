"""The logbook over a real database: lines arrive in order, before the end of their run, and survive a database that is away."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import DatabaseUnavailable
from foliot.domain.ids import WorkspaceId
from foliot.domain.logs import MOST_LINES, LogLimits
from foliot.handlers.registry import Assignment, HandlerResult, succeeded
from foliot.services.runs import logs
from foliot.services.runs.logs import LogChunk
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.worker.link import LocalLink
from foliot.worker.log_buffer import IDLE, SOON, LogBuffer
from foliot.worker.worker import Worker
from tests.polling import wait_until
from tests.worker.test_worker import make_ready

pytestmark = pytest.mark.anyio


class Talker:
    """A handler that writes what the test sets."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    async def run(self, assignment: Assignment) -> HandlerResult:
        for text in self.texts:
            assignment.ctx.log(text)
        return succeeded()

    async def close(self) -> None:
        pass


class Flaky(LocalLink):
    """Its first deliveries of lines fail."""

    failing = 0

    async def log(self, chunks: Sequence[LogChunk]) -> None:
        if self.failing:
            self.failing -= 1
            raise DatabaseUnavailable("away")
        await super().log(chunks)


async def worked(link: LocalLink, handler: Talker, logbook: LogBuffer) -> None:
    worker = Worker(link, {"python": handler}, 10, logs=logbook)
    await worker.step()
    await wait_until(lambda: worker.reporter.unsent == 1)
    await worker.reporter.step()


def run_of(owner: Any) -> Any:
    return owner.execute("SELECT id, status FROM foliot.runs").fetchone()


async def test_lines_are_there_when_the_run_is_over(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Any
) -> None:
    await make_ready(database, clock, workspace)
    link = LocalLink(database, "test")
    await worked(link, Talker("one", "two\nthree"), LogBuffer(link, clock))
    run_id, status = run_of(owner)
    page = await logs.read(database, Scope(workspace), run_id)
    assert status == "succeeded"
    assert [(each.seq, each.attempt, each.line.text) for each in page.lines] == [
        (1, 1, "one"),
        (2, 1, "two"),
        (3, 1, "three"),
    ]
    assert page.lines[0].line.at == clock.now()
    assert (page.is_over, page.truncated) == (True, False)


async def test_more_than_is_kept_is_left_out_and_reported(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Any
) -> None:
    await make_ready(database, clock, workspace)
    link = LocalLink(database, "test")
    logbook = LogBuffer(link, clock)
    await worked(link, Talker(*map(str, range(MOST_LINES + 5))), logbook)
    await logbook.step()  # a busy machine may take longer for so many than the end of an attempt waits
    run_id, _ = run_of(owner)
    last = await logs.read(database, Scope(workspace), run_id, after=MOST_LINES - 1)
    assert ([each.line.text for each in last.lines], last.truncated) == ([str(MOST_LINES - 1)], True)


@pytest.mark.parametrize("limits", [LogLimits(lines=2), LogLimits(bytes=7)])
async def test_a_run_keeps_as_much_as_the_operator_allows(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Any, limits: LogLimits
) -> None:
    await make_ready(database, clock, workspace)
    link = LocalLink(database, "test", log_limits=limits)
    await worked(link, Talker("one", "two", "three"), LogBuffer(link, clock))
    page = await logs.read(database, Scope(workspace), run_of(owner)[0])
    assert ([each.line.text for each in page.lines], page.truncated) == (["one", "two"], True)


async def test_a_database_that_is_away_loses_no_line(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Any
) -> None:
    await make_ready(database, clock, workspace)
    link = Flaky(database, "test")
    link.failing = 1
    logbook = LogBuffer(link, clock)
    await worked(link, Talker("one"), logbook)
    assert run_of(owner)[1] == "succeeded"  # its lines did not hold it up
    assert await logbook.step() == SOON
    assert await logbook.step() == IDLE
    assert [
        each.line.text for each in (await logs.read(database, Scope(workspace), run_of(owner)[0])).lines
    ] == ["one"]
    assert logbook._logs == {}


async def test_a_delivery_whose_answer_was_lost_is_kept_once_and_what_follows_it_too(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Any
) -> None:
    class Deaf(LocalLink):
        """Its first delivery is kept, and nobody hears of it."""

        deaf = True

        async def log(self, chunks: Sequence[LogChunk]) -> None:
            await super().log(chunks)
            if self.deaf:
                self.deaf = False
                raise DatabaseUnavailable("The connection broke during the commit.")

    await make_ready(database, clock, workspace)
    link = Deaf(database, "test")
    logbook = LogBuffer(link, clock)
    write = logbook.writer((run_of(owner)[0], 1), 1)
    write("log", "one")
    with pytest.raises(DatabaseUnavailable):
        await logbook.step()
    write("log", "two")
    await logbook.step()
    logbook.writer((run_of(owner)[0], 2), 1)("log", "of the next holder")
    await logbook.step()
    page = await logs.read(database, Scope(workspace), run_of(owner)[0])
    assert [(each.seq, each.line.text) for each in page.lines] == [
        (1, "one"),
        (2, "two"),
        (3, "of the next holder"),
    ]


async def test_a_line_from_a_thread_wakes_the_delivery(database: Database, clock: ManualClock) -> None:
    link = LocalLink(database, "test")
    logbook, woken = LogBuffer(link, clock), asyncio.Event()
    logbook.wake = woken.set
    await logbook.step()
    await asyncio.to_thread(logbook.writer, None, 1, 1)  # type: ignore[arg-type]
    assert not woken.is_set()
    await asyncio.to_thread(logbook.writer((None, 1), 1), "log", "hello")  # type: ignore[arg-type]
    async with asyncio.timeout(20):
        await woken.wait()
