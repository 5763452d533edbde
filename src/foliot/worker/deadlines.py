"""Deadlines of attempts: one timer for all that are due in the same moment, since nearly all of them end long before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from math import ceil
from typing import Generic, TypeVar

from foliot.clock import monotonic

T = TypeVar("T", bound=Hashable)
MOMENTS = 20  # a second


class Deadlines(Generic[T]):
    """`strike` is called with whatever is still here when its time has come, a twentieth of a second late at most."""

    def __init__(self, strike: Callable[[T], None]) -> None:
        self._strike = strike
        self._due: dict[int, set[T]] = {}

    def add(self, due_by: float, one: T) -> None:
        """On the monotonic clock."""
        moment = ceil(due_by * MOMENTS)
        here = self._due.get(moment)
        if here is None:
            here = self._due[moment] = set()
            wait = moment / MOMENTS - monotonic()
            asyncio.get_running_loop().call_later(wait, self._come, moment)
        here.add(one)

    def drop(self, due_by: float, one: T) -> None:
        """It ended by itself."""
        if (here := self._due.get(ceil(due_by * MOMENTS))) is not None:
            here.discard(one)

    def _come(self, moment: int) -> None:
        for one in self._due.pop(moment):
            self._strike(one)
