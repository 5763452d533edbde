"""Bound the work of one evaluation of a schedule, in steps and not in time: the same question always has the same answer.

Plain schedules cost a few steps and are not counted. Windows and calendars are: a step looks at one closed span, and a calendar with
many rules costs more for each week that is looked at. Why: docs/decisions/104-work-budget-of-an-evaluation.md
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from foliot.domain.errors import ScheduleTooDear

MOST_WORK = 50_000  # steps of one evaluation: some tenths of a second


class WorkBudget:
    """The steps that one evaluation may still take."""

    __slots__ = ("_weeks", "left", "most")

    def __init__(self, most: int = MOST_WORK) -> None:
        self.most = self.left = most
        self._weeks: set[tuple[int, int]] = set()

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise ScheduleTooDear(
                f"Its window and calendars take more than {self.most:,} steps to evaluate.",
                hint="Use calendars with fewer or longer rules, fewer calendars, or a schedule that fires less often.",
                pointer="/calendars",
            )

    def spend_week(self, calendar: int, week: int, steps: int) -> None:
        """Count the rules of a calendar once for each week that this evaluation looks at, whether they are cached or not."""
        if (calendar, week) not in self._weeks:
            self._weeks.add((calendar, week))
            self.spend(steps)


_current: ContextVar[WorkBudget | None] = ContextVar("work_budget", default=None)


def current_budget() -> WorkBudget:
    """Return the budget of the evaluation under way; a call outside of any gets one of its own."""
    return _current.get() or WorkBudget()


@contextmanager
def work_budget(budget: WorkBudget | None = None) -> Iterator[WorkBudget]:
    """Evaluate under one budget. Without a given one, an evaluation within another shares the other's."""
    chosen = budget or _current.get() or WorkBudget()
    token = _current.set(chosen)
    try:
        yield chosen
    finally:
        _current.reset(token)
