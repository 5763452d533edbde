"""Evaluate schedules off the event loop where a window or calendars may make it long.

The work itself is bounded in steps (`domain/schedule/work_budget.py`); here it is kept from delaying every other request. Ticks have a
thread of their own, so that requests cannot delay a fire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from foliot.domain.schedule import Timetable

T = TypeVar("T")

# Few threads: they share the interpreter with the event loop.
_requests = ThreadPoolExecutor(2, thread_name_prefix="schedule-request")
_ticks = ThreadPoolExecutor(1, thread_name_prefix="schedule-tick")


async def evaluate(timetable: Timetable, function: Callable[[], T], *, is_tick: bool = False) -> T:
    """Call `function`, which evaluates this timetable: in a thread if it has a window or calendars."""
    return await evaluate_in_thread(function, is_tick=is_tick) if timetable.is_gated else function()


async def evaluate_in_thread(function: Callable[[], T], *, is_tick: bool = False) -> T:
    pool = _ticks if is_tick else _requests
    return await asyncio.get_running_loop().run_in_executor(pool, partial(copy_context().run, function))
