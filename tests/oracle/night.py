"""What a zone plans between two instants, as lines that a person can write.

A line reads `planned_for | local wall time that names it`, then `second` for fold 1, `gap` where that wall time does
not exist, `skipped` where it is recorded and does not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from foliot.domain.schedule import Cron, Dst, Gap, OverlapTime, PlannedTime, Timetable, times_between


@dataclass(frozen=True)
class Night:
    """A zone between two instants: what is planned after `start` and not after `end`."""

    zone: str
    start: str
    end: str

    def has(
        self, expr: str, gap: Gap = Gap.NEXT_VALID, overlap: OverlapTime = OverlapTime.FIRST
    ) -> list[str]:
        return [
            _line(planned) for planned in self._planned(Cron(expr, self.zone, gap=gap, overlap_time=overlap))
        ]

    def days(self, expr: str, every_n_weeks: int = 1, anchor: date | None = None) -> str:
        cron = Cron(expr, self.zone, every_n_weeks=every_n_weeks, anchor=anchor)
        return " ".join(f"{planned.local:%Y-%m-%d}" for planned in self._planned(cron))

    def _planned(self, cron: Cron) -> tuple[PlannedTime, ...]:
        found = times_between(
            Timetable(cron), datetime.fromisoformat(self.start), datetime.fromisoformat(self.end)
        )
        assert all(planned.due_at == planned.planned_for for planned in found)
        return found


def _line(planned: PlannedTime) -> str:
    assert (planned.fold == 1) == (planned.dst is Dst.SECOND)
    words = (
        f"{planned.planned_for:%Y-%m-%dT%H:%MZ} | {planned.local:%Y-%m-%dT%H:%M}",
        "second" if planned.fold else "",
        "gap" if planned.dst is Dst.GAP else "",
        "skipped" if planned.skip else "",
    )
    return " ".join(word for word in words if word)
