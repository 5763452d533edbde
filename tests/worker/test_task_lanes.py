"""Lanes: one task for many pieces of work, as long as none of them waits; and a piece that does is none the worse for it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from foliot.worker import task_lanes
from foliot.worker.task_lanes import TaskLanes
from tests.polling import wait_until

pytestmark = pytest.mark.anyio
WHO: ContextVar[str] = ContextVar("who", default="nobody")
Work = Callable[[str], Coroutine[Any, Any, None]]


class Yard:
    """Lanes, and what became of the pieces."""

    def __init__(self, work: Work) -> None:
        self.waiting: dict[str, asyncio.Task[None]] = {}
        self.lanes = TaskLanes(work, self.waiting.__setitem__)


async def test_pieces_that_never_wait_are_done_in_order_on_one_task() -> None:
    done: list[tuple[str, str]] = []

    async def work(piece: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        done.append((piece, task.get_name()))

    yard = Yard(work)
    yard.lanes.add("abc")
    await wait_until(lambda: len(done) == 3)
    assert [piece for piece, _ in done] == ["a", "b", "c"]
    assert len({task for _, task in done}) == 1
    assert yard.waiting == {}


async def test_pieces_that_wait_keep_the_task_they_began_on_and_hold_nobody_up() -> None:
    gate, began, ended = asyncio.Event(), {}, {}

    async def work(piece: str) -> None:
        began[piece] = asyncio.current_task()
        if piece != "c":
            await gate.wait()
        ended[piece] = asyncio.current_task()

    yard = Yard(work)
    yard.lanes.add("abcd")
    await wait_until(lambda: len(began) == 4)
    assert list(ended) == ["c"]
    gate.set()
    await wait_until(lambda: len(ended) == 4)
    assert ended == began
    assert yard.waiting == {piece: began[piece] for piece in "abd"}
    assert len({*yard.waiting.values()}) == 3


async def test_what_a_piece_sets_in_its_context_is_seen_by_itself_alone() -> None:
    gate, seen = asyncio.Event(), {}

    async def work(piece: str) -> None:
        before = WHO.get()
        WHO.set(piece)
        if piece == "b":
            await gate.wait()
        seen[piece] = (before, WHO.get())

    WHO.set("giver")
    yard = Yard(work)
    yard.lanes.add("abc")
    await wait_until(lambda: len(seen) == 2)
    gate.set()
    await wait_until(lambda: len(seen) == 3)
    assert seen == {piece: ("giver", piece) for piece in "abc"}
    assert WHO.get() == "giver"


async def test_a_piece_that_waits_can_be_cancelled_and_the_others_go_on() -> None:
    ended: list[str] = []

    async def work(piece: str) -> None:
        try:
            if piece == "a":
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            piece = "a was informed"
            raise
        finally:
            ended.append(piece)

    yard = Yard(work)
    yard.lanes.add("ab")
    await wait_until(lambda: ended == ["b"])
    yard.waiting["a"].cancel()
    await wait_until(yard.waiting["a"].done)
    assert ended == ["b", "a was informed"]


async def test_a_timeout_strikes_the_piece_it_was_set_in() -> None:
    ended: list[str] = []

    async def work(piece: str) -> None:
        try:
            async with asyncio.timeout(0.01 if piece == "b" else 10):
                if piece == "b":
                    await asyncio.Event().wait()
            ended.append(piece)
        except TimeoutError:
            ended.append(f"{piece} took too long")

    Yard(work).lanes.add("abc")
    await wait_until(lambda: len(ended) == 3)
    assert sorted(ended) == ["a", "b took too long", "c"]


async def test_a_piece_that_cancels_its_own_task_spoils_no_other() -> None:
    ended: list[tuple[str, int]] = []

    async def work(piece: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        if piece == "a":
            task.cancel()
        else:
            await asyncio.sleep(0)
        ended.append((piece, task.cancelling()))

    Yard(work).lanes.add("abc")
    await wait_until(lambda: len(ended) == 3)
    assert sorted(ended) == [("a", 1), ("b", 0), ("c", 0)]


async def test_a_piece_that_fails_ends_its_lane_and_no_other_piece() -> None:
    ended: list[str] = []
    faults: list[Any] = []

    async def work(piece: str) -> None:
        if piece == "b":
            raise RuntimeError("a fault of the worker's own")
        ended.append(piece)

    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault["exception"]))
    Yard(work).lanes.add("abc")
    await wait_until(lambda: ended == ["a", "c"])
    gc.collect()  # a task that nobody asked how it ended says so when it goes
    assert str(faults[0]) == "a fault of the worker's own"


async def test_a_lane_that_has_had_its_turn_lets_the_loop_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_lanes, "TURN", -1.0)
    order: list[str] = []

    async def work(piece: str) -> None:
        order.append(piece)
        asyncio.get_running_loop().call_soon(order.append, f"after {piece}")

    Yard(work).lanes.add("ab")
    await wait_until(lambda: len(order) == 4)
    assert order == ["a", "after a", "b", "after b"]


async def test_work_given_while_a_lane_is_at_work_is_done_too() -> None:
    done: list[str] = []
    yard: Yard

    async def work(piece: str) -> None:
        done.append(piece)
        if piece == "a":
            yard.lanes.add("bc")

    yard = Yard(work)
    yard.lanes.add("a")
    await wait_until(lambda: done == ["a", "b", "c"])


async def test_a_piece_that_keeps_its_task_cannot_end_those_behind_it() -> None:
    kept: list[asyncio.Timeout] = []
    ended: dict[str, bool] = {}

    async def work(piece: str) -> None:
        if piece == "a":
            kept.append(asyncio.timeout(None))
            await kept[0].__aenter__()  # and is left open
        else:
            try:
                await gate.wait()
            finally:
                ended[piece] = gate.is_set()

    gate = asyncio.Event()
    yard = Yard(work)
    yard.lanes.add("ab")
    await wait_until(lambda: "b" in yard.waiting)
    kept[0].reschedule(0)
    await wait_until(kept[0].expired)
    gate.set()
    await wait_until(lambda: "b" in ended)
    assert ended == {"b": True}
