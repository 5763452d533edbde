"""Lanes: tasks on which pieces of work are done one after another, for as long as each ends without waiting for anything.

Most short work never waits, and a task of its own for each piece would cost more than the piece. The first that does wait keeps the
task it began on, as if that had been made for it, and the next lane goes on with the others. What a piece sets in context variables
is its own: it begins with a copy of the context in which the work was given.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context, copy_context
from functools import partial
from sys import getrefcount
from typing import Any, Generic, TypeVar

from foliot.clock import monotonic

T = TypeVar("T")
Work = Coroutine[Any, Any, None]
TURN = 0.02  # seconds after which a lane lets others have the loop
WIDEST = 64  # lanes opened at once, where pieces wait


class TaskLanes(Generic[T]):
    """`begin` makes the coroutine that does a piece; `waits` is told of each that has come to wait, and of the task it is on."""

    def __init__(self, begin: Callable[[T], Work], waits: Callable[[T, asyncio.Task[None]], None]) -> None:
        self._begin = begin
        self._waits = waits
        self._waiting: deque[tuple[T, Context]] = deque()
        self._width = 1
        self._is_called = False  # whether what waits will be looked at without our asking

    def add(self, pieces: Iterable[T]) -> None:
        given_in = copy_context()
        self._waiting.extend([(piece, given_in) for piece in pieces])
        if not self._is_called:
            self._call()

    def _call(self) -> None:
        self._is_called = True
        asyncio.get_running_loop().call_soon(self._open)

    def _open(self) -> None:
        """Called again behind the lanes: should they have come to a stop, or to pieces that wait, others take what is left."""
        self._is_called = False
        for _ in range(min(self._width, len(self._waiting))):
            asyncio.create_task(self._lane())  # noqa: RUF006  # kept by the loop until it waits, and then by who is told of that
        if self._waiting:
            self._call()

    async def _lane(self) -> None:
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        until = monotonic() + TURN
        known_to = getrefcount(task)
        while self._waiting:
            piece, given_in = self._waiting.popleft()
            work, context = self._begin(piece), given_in.copy()
            try:
                waits_for = context.run(work.send, None)
            except StopIteration:
                self._width = 1
                # Who has kept the task, as a timeout that was left open does, may cancel it when another is on it.
                if task.cancelling() or getrefcount(task) > known_to or monotonic() > until:
                    return
            else:
                self._width = min(2 * self._width, WIDEST)
                self._waits(piece, task)
                await _Rest(work, context, waits_for)
                return


class _Rest:
    """What is left of a piece that began to wait, in its own context."""

    def __init__(self, work: Work, context: Context, waits_for: Any) -> None:
        self._work = work
        self._context = context
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        work, run, waits_for = self._work, self._context.run, self._waits_for
        while True:
            try:
                answer = yield waits_for
            except BaseException as error:  # noqa: BLE001  # whatever the task is told, the work is
                step: Callable[[], Any] = partial(work.throw, error)
            else:
                step = partial(work.send, answer)
            try:
                waits_for = run(step)
            except StopIteration:
                return
