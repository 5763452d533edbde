"""The settlement of one locked job over a whole transaction: its state after each decision, and its timer delta."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from foliot.domain.ids import RunId
from foliot.domain.job import Counters, JobLoad
from foliot.domain.outcomes import Outcome
from foliot.domain.run import RunFacts, WaitsFor
from foliot.domain.run_end import Promotion, Settlement, TimerDelta
from foliot.domain.settlement.attempt_end import JobState
from foliot.domain.settlement.settle import settle, state_after

_ONE_SKIP = Counters(skips=1)


@dataclass(slots=True)
class JobSettlement:
    """A locked job while its runs end, start and wait: its state now, and what its timer row does not hold yet."""

    state: JobState
    stored_load: JobLoad
    live_run_id: RunId | None
    number: int
    promotion: Promotion | None = None
    _delta: TimerDelta = field(default_factory=TimerDelta)

    def settle(self, run: RunFacts, outcome: Outcome, now: datetime, jitter: float) -> Settlement:
        """Decide the outcome of one of its runs, and apply the decision."""
        settlement = settle(run, outcome, self.state, now, jitter)
        self.state = state_after(run, self.state, settlement)
        self._delta.add(settlement)
        if settlement.is_final:
            self.promotion = settlement.promotes or self.promotion
        return settlement

    def next_number(self) -> int:
        """Number a run that is made beside the schedule."""
        self._delta.numbers += 1
        self.number += 1
        return self.number

    def add_run(self, run_id: RunId, waits_for: WaitsFor | None) -> None:
        """Count a run that is made beside the schedule."""
        if waits_for is WaitsFor.TURN:
            self._set_load(self.state.load.queue())
        else:
            self._set_load(self.state.load.start())
            self.set_live(run_id)

    def add_skip(self) -> None:
        self._delta.counters = self._delta.counters.plus(_ONE_SKIP)

    def set_live(self, run_id: RunId) -> None:
        """Name the live run. It waits at no gate, or no longer."""
        self._delta.live_run_id = self.live_run_id = run_id

    def promote_oldest(self) -> None:
        """Promote the oldest waiting run, although no end of a run asks for it."""
        if self.promotion is None and self.state.load.waiting > 0:
            self.promotion = Promotion.OLDEST
            self._set_load(self.state.load.promote())

    def promote_manual(self) -> None:
        """Promote the oldest run that a person requested, where the job is stopped and no run of it is live."""
        if self.promotion is None and self.state.load.live == 0 and self.state.load.waiting > 0:
            self.promotion = Promotion.MANUAL

    def promoted(self, promotion: Promotion, run_id: RunId | None) -> None:
        """Apply a promotion to the run that was found for it, if one was found."""
        if run_id is None and promotion is Promotion.OLDEST:  # counted when it was decided
            self._set_load(self.state.load.requeue())
        elif run_id is not None:
            if promotion is Promotion.MANUAL:
                self._set_load(self.state.load.promote())
            self.set_live(run_id)

    def requeue(self, runs: int = 1) -> None:
        """Make live runs wait for their turn again, because the job is stopped."""
        self._set_load(self.state.load.requeue(runs))

    def take_delta(self) -> TimerDelta | None:
        """Return what the timer does not hold yet; from here on it does."""
        delta, self._delta = self._delta, TimerDelta()
        delta.load, self.stored_load = self.state.load.since(self.stored_load), self.state.load
        return None if delta == _NOTHING else delta

    def _set_load(self, load: JobLoad) -> None:
        self.state = replace(self.state, load=load)


_NOTHING = TimerDelta()
