"""Walk over the due planned times of one job, for `plan.py`. A run made for one planned time is live for the next.

Why: docs/decisions/200-late-times-and-catch-up.md
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from foliot.domain.admission import Skip, StartRequest, Wait, admit
from foliot.domain.dependencies import consume
from foliot.domain.freeze import Freeze, FreezePolicy, freeze_at, next_change
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobEvent, RunStatus
from foliot.domain.planning.due_job import DueJob
from foliot.domain.planning.missed import (
    TICK,
    deferral_reason,
    find_newest_due,
    find_newest_runnable,
    record_unchosen,
)
from foliot.domain.policy import MisfireRule, OverlapRule
from foliot.domain.run import WaitsFor
from foliot.domain.run_plan import (
    FIRED_LATE,
    UPSTREAM_TOO_LATE,
    EndGateWait,
    NewRun,
    Plan,
    PlanRecord,
    SkippedTime,
)
from foliot.domain.schedule import Manual, PlannedTime, SkipReason, planned_after

MAX_RECORDS = 500  # in one walk; the rest is due at once again
MAX_RELEASED = 1_000  # runs that a freeze releases at its end; older held times become one record
NO_PACE = timedelta(0)


class _Choice(NamedTuple):
    """The planned times of a range that run."""

    most: int  # the newest so many
    reason: SkipReason  # of the others
    is_late: bool = False
    is_patient: bool = False  # wait for their turn where the overlap rule would skip them
    pace: timedelta = NO_PACE  # between two starts


class PlanningWalk:
    """Collects the records of one due job and ends with its plan. Only `plan.py` uses it."""

    __slots__ = (
        "created", "cursor", "due", "events", "gate", "is_frozen", "job", "load", "made_live", "now", "promotes",
        "records", "skip_next", "timetable",
    )  # fmt: skip

    def __init__(self, due: DueJob, now: datetime, events: tuple[JobEvent, ...] = ()) -> None:
        self.due = due
        self.now = now
        self.events = events
        self.job = due.job
        self.timetable = due.job.timetable
        self.cursor = due.timer.cursor
        self.created = due.runs_created
        self.load = due.load
        self.made_live = False
        self.skip_next = due.skip_next
        self.gate = due.gate
        self.promotes = False
        self.records: list[PlanRecord] = []
        self.is_frozen = bool(due.freezes) and freeze_at(due.freezes, now) is not None

    def tick(self) -> Plan:
        """Record all planned times that are due."""
        if self.due.live_until is not None and self.due.live_until <= self.now:
            self._end_gate_wait()
        if self.job.is_chained:
            return self._tick_chained()
        now, freezes, cutoff = self.now, self.due.freezes, self.now - self.job.misfire.grace
        upcoming = planned_after(self.timetable, self.cursor)
        while upcoming is not None and upcoming.due_at <= now and not self._is_full():
            if len(self.records) >= MAX_RECORDS:
                break
            if freezes and (freeze := freeze_at(freezes, upcoming.due_at)) is not None:
                if _is_held(freeze, now):
                    return self._plan(freeze.end_at)
                self._consume_frozen(freeze, upcoming)
            elif upcoming.due_at < cutoff:
                self._consume_late(upcoming, cutoff - TICK)
            else:
                following = planned_after(self.timetable, upcoming.planned_for)
                if following is None or following.due_at > upcoming.due_at:
                    self._admit(upcoming)
                    self.cursor, upcoming = upcoming.planned_for, following
                    continue
                last = self._find_last(upcoming, upcoming.due_at)
                self._consume(upcoming, last, _Choice(1, deferral_reason(self.timetable, upcoming)))
            upcoming = planned_after(self.timetable, self.cursor)
        return self._finish(upcoming)

    def resume(self, *, catch_up: bool = False, reason: SkipReason = SkipReason.PAUSED) -> Plan:
        """Record all planned times since the cursor as one record, except those that `catch_up` runs."""
        upcoming = planned_after(self.timetable, self.cursor)
        is_expected = not self.job.is_chained or self.load.is_idle
        if upcoming is not None and upcoming.due_at <= self.now and is_expected and not self._is_full():
            last = upcoming if self.job.is_chained else self._find_last(upcoming, self.now)
            is_all = self.job.misfire.rule is MisfireRule.ALL
            most = 0 if not catch_up else self.job.misfire.max_catch_up if is_all else 1
            self._consume(upcoming, last, _Choice(most, reason, is_late=True, is_patient=is_all))
        may_overlap = self.job.overlap.rule is OverlapRule.CONCURRENT
        if self.due.load.waiting > 0 and (self.due.load.live == 0 or may_overlap):
            self.promotes = True
        if self.job.is_chained:
            self.cursor = max(self.cursor, self.now)
        return self._finish_here()

    def start(self) -> Plan:
        """Set the timer from the cursor without recording anything. A fixed delay whose next time is set keeps it, although a manual
        run is live.
        """
        if self.job.is_chained and self.due.timer.due_at is not None:
            return self._finish(planned_after(self.timetable, self.cursor))
        return self._finish_here()

    def _finish_here(self) -> Plan:
        """Set the timer from the cursor. A fixed delay with a live run has no next time yet."""
        if self.job.is_chained and not self.load.is_idle:
            return self._finish_job(JobEvent.COMPLETE) if self._is_full() else self._plan(None)
        return self._finish(planned_after(self.timetable, self.cursor))

    def _tick_chained(self) -> Plan:
        """A fixed delay names one time; the next is known when its run has ended, or at once when it did not run."""
        planned = planned_after(self.timetable, self.cursor)
        if planned is None or planned.due_at > self.now or self._is_full():
            return self._finish(planned)
        freeze = freeze_at(self.due.freezes, planned.due_at)
        if freeze is not None and _is_held(freeze, self.now):
            return self._plan(freeze.end_at)
        is_late = planned.due_at < self.now - self.job.misfire.grace
        created_before = self.created
        if freeze is not None and freeze.after is FreezePolicy.SKIP:
            self.records.append(SkippedTime(planned, SkipReason.FROZEN))
        elif (
            is_late and freeze is None and planned.skip is None and self.job.misfire.rule is MisfireRule.SKIP
        ):
            self.records.append(SkippedTime(planned, SkipReason.MISFIRE))
        else:
            is_patient = is_late and self.job.misfire.rule is MisfireRule.ALL
            self._admit(planned, is_late=is_late, is_patient=is_patient)
        if self.created > created_before:
            self.cursor = planned.planned_for
            return self._finish_here()
        self.cursor = max(self.now, planned.planned_for)
        return self._finish(planned_after(self.timetable, self.cursor))

    def _consume_late(self, upcoming: PlannedTime, by: datetime) -> None:
        """Apply the misfire rule to the planned times up to `by`, which are late."""
        misfire = self.job.misfire
        change = next_change(self.due.freezes, upcoming.due_at)
        last = self._find_last(upcoming, by if change is None else min(by, change - TICK))
        most = {MisfireRule.LATEST: 1, MisfireRule.ALL: misfire.max_catch_up, MisfireRule.SKIP: 0}[
            misfire.rule
        ]
        is_all = misfire.rule is MisfireRule.ALL
        self._consume(upcoming, last, _Choice(most, SkipReason.MISFIRE, is_late=True, is_patient=is_all))

    def _consume_frozen(self, freeze: Freeze, upcoming: PlannedTime) -> None:
        """Skip the planned times of a freeze, or run those it held, by the freeze's own policy."""
        change = next_change(self.due.freezes, upcoming.due_at)
        last = self._find_last(upcoming, self.now if change is None else min(self.now, change - TICK))
        most = {FreezePolicy.SKIP: 0, FreezePolicy.LATEST: 1, FreezePolicy.ALL: MAX_RELEASED}[freeze.after]
        is_all = freeze.after is FreezePolicy.ALL
        pace = freeze.pace if is_all else NO_PACE
        self._consume(upcoming, last, _Choice(most, SkipReason.FROZEN, True, is_all, pace))

    def _find_last(self, first: PlannedTime, by: datetime) -> PlannedTime:
        last = find_newest_due(self.timetable, self.cursor, by, by)
        return first if last is None or last.planned_for < first.planned_for else last

    def _consume(self, first: PlannedTime, last: PlannedTime, choice: _Choice) -> None:
        """Record all planned times from `first` to `last`: the chosen ones run, the others become one record."""
        most = choice.most
        if self.job.max_runs is not None:
            most = min(most, self.job.max_runs - self.created)
        if first.planned_for == last.planned_for:
            chosen = [first] if most and first.skip is None else []
        else:
            chosen = find_newest_runnable(self.timetable, self.cursor, last, most)
        left = record_unchosen(self.timetable, self.cursor, last, chosen, choice.reason)
        if left is not None:
            self.records.append(left)
        for index, planned in enumerate(chosen):
            # Late runs start behind those on time.
            not_before = self.now + choice.pace * index if choice.is_late else None
            self._admit(planned, not_before, is_late=choice.is_late, is_patient=choice.is_patient)
        self.cursor = last.planned_for

    def _admit(
        self,
        planned: PlannedTime,
        not_before: datetime | None = None,
        *,
        is_late: bool = False,
        is_patient: bool = False,
    ) -> None:
        """Record the run or the skip of one due planned time."""
        if planned.skip is not None:
            self.records.append(SkippedTime(planned, planned.skip))
            return
        if self.skip_next and not self.due.is_type_off:
            until = self.due.skip_until or planned.planned_for
            self.skip_next = planned.planned_for < until
            if planned.planned_for <= until:
                self.records.append(SkippedTime(planned, SkipReason.OPERATOR))
                return
        deadline = self.job.limits.start_deadline
        request = StartRequest(
            self.job,
            self.now,
            not_before=not_before,
            expires_at=None if deadline is None else planned.due_at + deadline,
            load=self.load,
            is_patient=is_patient,
            may_cancel_live=not self.made_live,
            is_frozen=self.is_frozen,
            is_type_off=self.due.is_type_off,
            over_quota=self._over_quota(),
            gate=self.gate,
            planned_for=planned.planned_for,
            due_at=planned.due_at,
        )
        answer = admit(request)
        if isinstance(answer, Skip):
            # Nothing was live when this walk began: not an overlap but a late walk is why this time does not run.
            is_late_walk = answer.reason is SkipReason.OVERLAP and self.made_live and self.due.load.is_idle
            skipped = (SkipReason.MISFIRE, FIRED_LATE) if is_late_walk else (answer.reason, answer.note)
            self.records.append(SkippedTime(planned, *skipped))
            return
        waits_for = answer.waits_for if isinstance(answer, Wait) else None
        if waits_for is WaitsFor.TURN:
            self.load = self.load.queue()
        else:
            self.load = self.load.start()
            self.made_live = True
        if self.gate is not None and answer.consumes:
            self.gate = consume(self.gate, answer.consumes)
        self.created += 1
        self.records.append(
            NewRun(
                planned,
                RunStatus.READY if waits_for is None else RunStatus.WAITING,
                waits_for,
                is_late,
                isinstance(answer, Wait) and answer.cancels_live,
                answer.not_before,
                answer.expires_at,
                answer.consumes,
            )
        )

    def _over_quota(self) -> SkipReason | None:
        """Return why no further run may be made now: the budget of the workspace, or a quota of fires."""
        if self.due.is_over_budget:
            return SkipReason.BUDGET
        left = self.due.fires_left
        is_spent = left is not None and self.created - self.due.runs_created >= left
        return SkipReason.QUOTA if is_spent else None

    def _end_gate_wait(self) -> None:
        self.records.append(EndGateWait(SkipReason.DEPENDENCY_FAILED, UPSTREAM_TOO_LATE))
        self.load = self.load.end()
        if self.load.waiting:
            self.load = self.load.promote()
            self.promotes = True

    def _is_full(self) -> bool:
        most = self.job.max_runs
        return most is not None and self.created >= most

    def _finish(self, upcoming: PlannedTime | None) -> Plan:
        """Set the timer to the next planned time, or end the job where there is none."""
        if self._is_full():
            return self._finish_job(JobEvent.COMPLETE)
        if upcoming is not None:
            return self._plan(upcoming.due_at)
        end_at = self.timetable.end_at
        if isinstance(self.timetable.schedule, Manual) and (end_at is None or end_at > self.now):
            return self._plan(end_at)
        has_run = self.created > 0 and (end_at is None or self.job.is_once)
        return self._finish_job(JobEvent.COMPLETE if has_run else JobEvent.EXPIRE)

    def _finish_job(self, ending: JobEvent) -> Plan:
        """End the job now, or with the last of its runs."""
        if not self.load.is_idle:
            return self._plan(None, ending)
        self.events = (*self.events, ending)
        return self._plan(None)

    def _plan(self, due_at: datetime | None, ending: JobEvent | None = None) -> Plan:
        timer = Timer(self.cursor, due_at, due_at, ending)
        uses_skip_next = self.due.skip_next and not self.skip_next
        return Plan(tuple(self.records), timer, self.events, uses_skip_next, self.promotes)


def _is_held(freeze: Freeze, now: datetime) -> bool:
    return freeze.after is not FreezePolicy.SKIP and freeze.holds(now)
