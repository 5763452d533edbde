"""The heart: beats in time, stops a worker that cannot renew, and hears what the beats bring."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.clock import monotonic
from foliot.domain.errors import DatabaseUnavailable
from foliot.domain.ids import RunId, WorkerId
from foliot.engine.loop import Loop
from foliot.services.workers.workers import HeartbeatReply
from foliot.worker.heartbeat import Heartbeat
from tests.polling import wait_until

pytestmark = pytest.mark.anyio
ME = WorkerId(uuid4())
LEASE = timedelta(seconds=0.6)


@dataclass
class Line:
    """Answers beats as the test sets."""

    answer: HeartbeatReply | Exception
    beats: list[WorkerId] = field(default_factory=list)

    async def beat(self, worker_id: WorkerId, working_on: object, *, draining: bool) -> HeartbeatReply:
        self.beats.append(worker_id)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class Body:
    """Remembers every report."""

    reported: list[Any] = field(default_factory=list)
    is_draining: bool = False

    def on_beat(self, beat: HeartbeatReply) -> None:
        self.reported.append(beat)

    def stop_all(self, why: str) -> None:
        self.reported.append(why)

    def working_on(self) -> list[tuple[RunId, int]]:
        return []

    def first_due(self) -> float | None:
        return None


async def live(answer: HeartbeatReply | Exception, holds: Any) -> tuple[Line, Body]:
    line, body = Line(answer), Body()
    heart = Heartbeat(line, body, asyncio.get_running_loop(), LEASE)  # type: ignore[arg-type]
    heart.follow(ME, monotonic())
    task = asyncio.create_task(Loop("heart", heart.step).run())
    await wait_until(lambda: task.done() or holds(line, body))
    task.cancel()
    await asyncio.wait([task])
    return line, body


async def test_it_beats_three_times_in_a_lease_and_says_nothing_while_all_is_well() -> None:
    began = monotonic()
    line, body = await live(HeartbeatReply(is_alive=True), lambda line, body: len(line.beats) == 4)
    assert monotonic() - began > 3 * LEASE.total_seconds() / 3
    assert body.reported == []
    assert set(line.beats) == {ME}


async def test_a_worker_that_cannot_renew_is_stopped_before_its_lease_is_over() -> None:
    began = monotonic()
    _, body = await live(DatabaseUnavailable("away"), lambda line, body: body.reported)
    assert monotonic() - began >= LEASE.total_seconds() * 2 / 3
    assert body.reported == ["cannot renew"]


async def test_a_worker_that_was_struck_off_learns_it_and_beats_no_more() -> None:
    struck_off = HeartbeatReply(is_alive=False)
    line, body = await live(struck_off, lambda line, body: body.reported)
    assert body.reported == [struck_off]
    assert len(line.beats) == 1


async def test_a_hint_makes_it_beat_before_its_time() -> None:
    line, body = Line(HeartbeatReply(is_alive=True)), Body()
    heart = Heartbeat(line, body, asyncio.get_running_loop(), timedelta(hours=1))  # type: ignore[arg-type]
    heart.follow(ME, monotonic())
    await heart.step()
    assert line.beats == []
    heart.beat_soon()
    await heart.step()
    await heart.step()
    assert line.beats == [ME]


async def test_cancels_come_with_the_beat() -> None:
    cancels = HeartbeatReply(is_alive=True, cancels=[(RunId(uuid4()), 1)])
    _, body = await live(cancels, lambda line, body: body.reported)
    assert body.reported[0] == cancels


@pytest.mark.parametrize("error", [RuntimeError("a standby"), ValueError(), KeyError("x")])
async def test_a_worker_is_stopped_before_its_lease_is_over_whatever_kept_the_heartbeat(
    error: Exception,
) -> None:
    _, body = await live(error, lambda line, body: body.reported)
    assert body.reported == ["cannot renew"]


async def test_a_heartbeat_that_hangs_and_cannot_be_cancelled_keeps_no_worker_past_its_lease() -> None:
    never = asyncio.Event()

    class Hanging(Line):
        async def beat(self, worker_id: WorkerId, working_on: object, *, draining: bool) -> HeartbeatReply:
            self.beats.append(worker_id)
            while not never.is_set():
                with suppress(asyncio.CancelledError):
                    await never.wait()
            return HeartbeatReply(is_alive=True)

    line, body = Hanging(HeartbeatReply(is_alive=True)), Body()
    heart = Heartbeat(line, body, asyncio.get_running_loop(), LEASE)  # type: ignore[arg-type]
    heart.follow(ME, monotonic())
    while not body.reported:
        await heart.step()
        await asyncio.sleep(0)
    assert body.reported == ["cannot renew"]
    assert len(line.beats) == 1
    never.set()


@dataclass
class ManualTime:
    """A monotonic clock that a test moves."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def beating(
    monkeypatch: pytest.MonkeyPatch, answer: HeartbeatReply | Exception
) -> tuple[Heartbeat, Line, Body, ManualTime]:
    """A heart with a lease of 30 s that began at 100."""
    time, line, body = ManualTime(), Line(answer), Body()
    monkeypatch.setattr("foliot.worker.heartbeat.monotonic", time)
    heart = Heartbeat(line, body, asyncio.get_running_loop(), timedelta(seconds=30))  # type: ignore[arg-type]
    heart.follow(ME, time.now)
    return heart, line, body, time


async def test_a_worker_that_cannot_renew_is_stopped_after_two_thirds_of_its_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heart, _, body, time = beating(monkeypatch, DatabaseUnavailable("away"))
    for at, reported in ((110.0, []), (120.0, []), (120.1, ["cannot renew"])):
        time.now = at
        await heart.step()
        await asyncio.sleep(0)
        assert body.reported == reported


async def test_a_lease_counts_from_the_question_and_not_from_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server renews on request; a slow answer must not make the lease longer here than it is there."""
    heart, line, body, time = beating(monkeypatch, HeartbeatReply(is_alive=True))

    async def slowly(worker_id: WorkerId, working_on: object, *, draining: bool) -> HeartbeatReply:
        time.now += 9
        return HeartbeatReply(is_alive=True)

    monkeypatch.setattr(line, "beat", slowly)
    time.now = 110.0
    await heart.step()
    monkeypatch.undo()
    monkeypatch.setattr("foliot.worker.heartbeat.monotonic", time)
    line.answer = DatabaseUnavailable("away")
    for at, reported in ((130.0, []), (130.1, ["cannot renew"])):
        time.now = at
        await heart.step()
        await asyncio.sleep(0)
        assert body.reported == reported
