"""The reporter sends at once, and gathers for a moment only behind a batch of many."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import pytest

from foliot.domain.ids import JobId, RunId, WorkerId
from foliot.domain.outcomes import Succeeded
from foliot.services.settlement.report import Report
from foliot.worker import reporter as module
from foliot.worker.reporter import BATCH, GATHER, IDLE, MANY, Reporter

pytestmark = pytest.mark.anyio
WORKER = WorkerId(uuid4())


class Link:
    def __init__(self) -> None:
        self.batches: list[int] = []

    async def report(self, reports: Sequence[Report]) -> frozenset[RunId]:
        self.batches.append(len(reports))
        return frozenset(each.run_id for each in reports)


class Desk:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.link = Link()
        self.reporter = Reporter(cast(Any, self.link))
        monkeypatch.setattr(module, "monotonic", lambda: self.now)

    async def step(self, reports: int) -> timedelta:
        for _ in range(reports):
            self.reporter.put(Report(RunId(uuid4()), JobId(uuid4()), 1, WORKER, Succeeded()))
        return await self.reporter.step()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


async def test_small_batches_follow_each_other_at_once(desk: Desk) -> None:
    assert [await desk.step(count) for count in (1, MANY - 1, 1, 2)] == [IDLE] * 4
    assert desk.link.batches == [1, MANY - 1, 1, 2]


async def test_behind_a_batch_of_many_the_next_gathers_for_a_moment(desk: Desk) -> None:
    await desk.step(MANY)
    desk.now += GATHER / 4
    nap = await desk.step(1)
    assert nap.total_seconds() == pytest.approx(GATHER * 3 / 4, abs=1e-5)
    desk.now += GATHER / 4
    await desk.step(2)
    assert (desk.link.batches, desk.reporter.unsent) == ([MANY], 3)
    desk.now += GATHER
    assert await desk.step(1) == IDLE
    assert desk.link.batches == [MANY, 4]
    assert await desk.step(1) == IDLE  # that batch was small again
    assert desk.link.batches == [MANY, 4, 1]


async def test_a_full_batch_is_sent_without_gathering(desk: Desk) -> None:
    await desk.step(MANY)
    await desk.step(BATCH + 1)
    assert desk.link.batches == [MANY, BATCH]


async def test_a_reporter_that_has_nothing_to_send_sleeps_while_it_might_gather(desk: Desk) -> None:
    await desk.step(MANY)
    assert await desk.step(0) == IDLE
    await desk.reporter.wait_until_sent(5)
    assert desk.link.batches == [MANY]
