"""Task lanes: asyncio tasks that run jobs one after another, for as long as each ends without waiting for anything.

Most short jobs never wait, and a task of its own for each would cost more than the job. The first job that waits keeps the task it
started on, as if that had been made for it, and the next lane goes on with the others. Context variables that a job sets are its own:
it starts with a copy of the context in which it was added.

Why: docs/decisions/403-cheap-attempts.md
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context, copy_context
from sys import getrefcount
from typing import Any, Generic, TypeVar

from foliot.clock import monotonic

T = TypeVar("T")
Run = Coroutine[Any, Any, None]
TURN = 0.02  # seconds after which a lane lets others use the event loop
MOST_LANES = 64  # opened at once, while jobs wait


class TaskLanes(Generic[T]):
    """`start` makes the coroutine that runs an item; `on_wait` gets each item that waits, and its task."""

    def __init__(self, start: Callable[[T], Run], on_wait: Callable[[T, asyncio.Task[None]], None]) -> None:
        self._start = start
        self._on_wait = on_wait
        self._queue: deque[tuple[T, Context]] = deque()
        self._lanes = 1  # to open next time
        self._is_scheduled = False  # whether `_open` will be called

    def add(self, items: Iterable[T]) -> None:
        context = copy_context()
        self._queue.extend([(item, context) for item in items])
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._open)

    def _open(self) -> None:
        """Open lanes, and schedule this again behind them: other lanes take what is left when these come to items that wait."""
        for _ in range(min(self._lanes, len(self._queue))):
            asyncio.create_task(self._lane())  # noqa: RUF006  # kept by the loop until it waits, and by `on_wait` then
        self._is_scheduled = bool(self._queue)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._open)

    async def _lane(self) -> None:
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        until = monotonic() + TURN
        references = getrefcount(task)
        while self._queue:
            item, added_in = self._queue.popleft()
            run, context = self._start(item), added_in.copy()
            try:
                awaited = context.run(run.send, None)
            except StopIteration:
                self._lanes = 1
                # An item that kept a reference to the task, as an open timeout does, could cancel it under the next item.
                if task.cancelling() or getrefcount(task) > references or monotonic() > until:
                    return
            else:
                self._lanes = min(2 * self._lanes, MOST_LANES)
                self._on_wait(item, task)
                await _Rest(run, context, awaited)
                return


class _Rest:
    """The rest of a run that waits, in its own context."""

    def __init__(self, run: Run, context: Context, awaited: Any) -> None:
        self._run = run
        self._context = context
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, None]:
        coroutine, run, awaited = self._run, self._context.run, self._awaited
        while True:
            try:
                answer = yield awaited
            except BaseException as error:  # noqa: BLE001  # the coroutine gets every exception that the task gets
                resume: Callable[[Any], Any] = coroutine.throw
                answer = error
            else:
                resume = coroutine.send
            try:
                awaited = run(resume, answer)
            except StopIteration:
                return
