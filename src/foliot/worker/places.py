"""The places of a worker: how many runs it executes at once, and which workspaces and receivers may take the last of them.

Any run may take a free permit, and one workspace alone may take them all. Beyond the permits lies a reserve for those that hold few
places here: a workspace, or a receiver of http jobs, may take from it while it holds less than half of what is left. So one whose runs hang
fills the permits and never the reserve, and the runs of others start beside them.

Why: docs/decisions/405-fair-places.md
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from foliot.domain.ids import WorkspaceId
from foliot.services.workers.claim import ClaimSize, Work

LARGEST_CLAIM = 500  # runs: the next claim is under way while these start
RESERVE_PAUSE = 0.25  # seconds after a claim for the reserve that found nothing
_RECEIVER = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)  # as in `lock_ready_elsewhere`
Holder = WorkspaceId | str  # a workspace or a receiver


class Places:
    """Count the runs of each workspace and receiver on this worker. The reserve is at most as large as the permits."""

    def __init__(self, permits: int, reserve: int = 0) -> None:
        self.permits = permits
        self.reserve = min(reserve, permits)
        self._held: Counter[Holder] = Counter()
        self._taken = 0
        self._reserve_at = 0.0  # on the monotonic clock: no claim for the reserve before

    @property
    def all(self) -> int:
        return self.permits + self.reserve

    def take(self, found: Iterable[Work]) -> None:
        for work in found:
            self._taken += 1
            for holder in _holders(work):
                self._held[holder] += 1

    def give_back(self, work: Work) -> None:
        self._taken -= 1
        for holder in _holders(work):
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]

    def claim_size(self, now: float) -> ClaimSize | None:
        """Return how much a claim may take now; None where it must wait."""
        if (free := self.permits - self._taken) > 0:
            return ClaimSize(min(free, LARGEST_CLAIM))
        left = free + self.reserve
        if left <= 0 or now < self._reserve_at:
            return None
        crowded = [holder for holder, held in self._held.items() if 2 * held >= left]
        return ClaimSize(
            (left + 1)
            // 2,  # not all at once: those that hold one place already must leave the last to others
            share=1,
            without=frozenset(WorkspaceId(each) for each in crowded if isinstance(each, UUID)),
            elsewhere=frozenset(each for each in crowded if isinstance(each, str)),
        )

    def reserve_pause(self, now: float) -> float | None:
        """Return the seconds until the next claim for the reserve; None where there is nothing to claim for."""
        if self._taken < self.permits or self._taken >= self.all:
            return None
        return max(0.0, self._reserve_at - now)

    def found_none(self, now: float) -> None:
        """Note a claim that found nothing: a full worker must not ask at every hint."""
        self._reserve_at = now + RESERVE_PAUSE


def _holders(work: Work) -> tuple[Holder, ...]:
    workspace_id = work.claimed.workspace_id
    if work.claimed.type != "http":
        return (workspace_id,)
    found = _RECEIVER.match(str(work.config.get("url")))
    return (workspace_id, found[1].lower()) if found else (workspace_id,)
