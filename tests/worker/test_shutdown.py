"""Waiting for cancels: the worker gets what is new at once, and nothing makes a host ask without end."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast
from uuid import uuid4

import pytest

from foliot.domain.errors import WorkerGone
from foliot.domain.ids import RunId, WorkerId
from foliot.services.workers.workers import HeartbeatReply
from foliot.worker.heartbeat import AT_ONCE, IDLE, POLL_PAUSE, CancelPoll, Key
from foliot.worker.worker import Worker

pytestmark = pytest.mark.anyio
ME = WorkerId(uuid4())
RUN, OTHER = (RunId(uuid4()), 1), (RunId(uuid4()), 1)


class Body:
    """What a worker shows of itself."""

    def __init__(self, *going: Key) -> None:
        self.id: WorkerId | None = ME
        self.going = list(going)
        self.reported: list[HeartbeatReply] = []

    def under_way(self) -> tuple[list[Key], list[Key]]:
        return self.going, [OTHER]

    def on_beat(self, beat: HeartbeatReply) -> None:
        self.reported.append(beat)


class Line:
    def __init__(self, answer: HeartbeatReply | WorkerGone) -> None:
        self.answer = answer
        self.asked: list[tuple[WorkerId, list[Key], list[Key]]] = []

    async def stops(
        self, worker_id: WorkerId, working_on: Collection[Key], stopping: Collection[Key]
    ) -> HeartbeatReply:
        self.asked.append((worker_id, list(working_on), list(stopping)))
        if isinstance(self.answer, WorkerGone):
            raise self.answer
        return self.answer


def stopping(line: Line, body: Body) -> CancelPoll:
    return CancelPoll(line, cast("Worker", body))


async def test_who_has_no_work_asks_nobody() -> None:
    line = Line(HeartbeatReply(is_alive=True))
    assert await stopping(line, Body()).step() == IDLE
    stranger = Body(RUN)
    stranger.id = None
    assert await stopping(line, stranger).step() == IDLE
    assert line.asked == []


async def test_a_cancel_is_reported_to_the_worker_and_the_next_is_asked_for_at_once() -> None:
    line, body = Line(HeartbeatReply(is_alive=True, cancels=[RUN])), Body(RUN)
    assert await stopping(line, body).step() == AT_ONCE
    assert line.asked == [(ME, [RUN], [OTHER])]
    assert [beat.cancels for beat in body.reported] == [[RUN]]


@pytest.mark.parametrize(
    "answer", [HeartbeatReply(is_alive=True), HeartbeatReply(is_alive=True, cancels=[OTHER])]
)
async def test_an_answer_that_changes_nothing_is_followed_by_a_breath(answer: HeartbeatReply) -> None:
    """A server that stops answers at once; of a run whose claim was lost on the way it tells again and again."""
    assert await stopping(Line(answer), Body(RUN)).step() == POLL_PAUSE


async def test_a_worker_that_is_gone_leaves_it_to_its_heart() -> None:
    body = Body(RUN)
    assert await stopping(Line(WorkerGone("gone")), body).step() == IDLE
    assert body.reported == []
