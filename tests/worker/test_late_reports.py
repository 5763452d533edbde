"""Code that outlives its attempt, in a thread or a task: what it writes and keeps then goes nowhere, and nothing of it stays behind."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.ids import WorkspaceId
from foliot.handlers.registry import Assignment, HandlerResult, succeeded
from foliot.sdk.context import Context
from foliot.services.runs import artifacts, logs
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.worker.artifact_upload import TOO_LATE
from foliot.worker.link import LocalLink
from foliot.worker.log_buffer import LogBuffer
from foliot.worker.worker import Worker
from tests.polling import wait_until
from tests.worker.test_worker import make_ready

pytestmark = pytest.mark.anyio


class Outlived:
    """A handler whose context outlives the attempt."""

    def __init__(self, *, writes: bool) -> None:
        self.writes = writes
        self.contexts: list[Context] = []

    async def run(self, assignment: Assignment) -> HandlerResult:
        self.contexts.append(assignment.ctx)
        if self.writes:
            assignment.ctx.log("in time")
            assignment.ctx.artifact("in-time", b"1")
        return succeeded()

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("writes", [True, False])
async def test_what_is_written_and_kept_after_the_end_is_dropped_and_forgotten(
    database: Database, clock: ManualClock, workspace: WorkspaceId, owner: Any, *, writes: bool
) -> None:
    await make_ready(database, clock, workspace)
    link = LocalLink(database, "test")
    handler = Outlived(writes=writes)
    worker = Worker(link, {"python": handler}, 10, logs=LogBuffer(link, clock))
    await worker.step()
    await wait_until(lambda: worker.reporter.unsent == 1)
    await worker.reporter.step()
    [ctx] = handler.contexts
    ctx.log("too late")
    sent = ctx.keep("too-late", b"2", "text/plain")
    assert isinstance(sent, Future)
    assert sent.result(timeout=0) == TOO_LATE
    await worker.logs.step()
    assert (worker.logs._logs, worker.artifacts._uploads) == ({}, {})
    [(run_id, status)] = owner.execute("SELECT id, status FROM foliot.runs").fetchall()
    assert status == "succeeded"
    lines = (await logs.read(database, Scope(workspace), run_id)).lines
    assert [each.line.text for each in lines] == (["in time"] if writes else [])
    kept = await artifacts.of_run(database, Scope(workspace), run_id)
    assert [each.name for each in kept] == (["in-time"] if writes else [])
