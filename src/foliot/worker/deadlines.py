"""Deadlines of attempts: one timer for all that fall into the same twentieth of a second, since nearly all end long before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from math import ceil
from typing import Generic, TypeVar

from foliot.clock import monotonic

T = TypeVar("T", bound=Hashable)
SLOTS = 20  # a second


class Deadlines(Generic[T]):
    """`on_due` is called with each item that is still here at its deadline, a twentieth of a second late at most."""

    def __init__(self, on_due: Callable[[T], None]) -> None:
        self._on_due = on_due
        self._slots: dict[int, set[T]] = {}

    def add(self, due_by: float, item: T) -> None:
        """`due_by` is on the monotonic clock."""
        slot = ceil(due_by * SLOTS)
        items = self._slots.get(slot)
        if items is None:
            items = self._slots[slot] = set()
            wait = slot / SLOTS - monotonic()
            asyncio.get_running_loop().call_later(wait, self._expire, slot)
        items.add(item)

    def drop(self, due_by: float, item: T) -> None:
        """Forget an item that ended in time."""
        if (items := self._slots.get(ceil(due_by * SLOTS))) is not None:
            items.discard(item)

    def _expire(self, slot: int) -> None:
        for item in self._slots.pop(slot):
            self._on_due(item)
