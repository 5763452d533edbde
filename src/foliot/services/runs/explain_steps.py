"""A job that somebody asks about, with what stood at the instant asked for, and what can be looked up for the answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from foliot.domain.definition import Rules
from foliot.domain.dependencies import EdgeMode, JoinRule
from foliot.domain.explain.instants import nearest
from foliot.domain.explain.records import Explanation
from foliot.domain.freeze import Freeze
from foliot.domain.ids import JobId
from foliot.domain.job import Job
from foliot.domain.lifecycle import JobStatus
from foliot.domain.schedule import PlannedTime, Schedule
from foliot.services.jobs.lock_steps import not_found
from foliot.storage.jobs import calendars, job_types, revisions
from foliot.storage.jobs.revisions import Revision
from foliot.storage.runs import explain_queries
from foliot.storage.runs.explain_queries import ExplainedJob
from foliot.storage.runs.run_history import RunRecord, RunWithRevision
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class Answer:
    """What is told, and what it is about. Of one run no instant is asked, so none is near."""

    told: Explanation
    job_id: JobId
    status: JobStatus
    schedule: Schedule
    run: RunRecord | None = None
    at: datetime | None = None
    before: PlannedTime | None = None
    after: PlannedTime | None = None


class Asked:
    """A job somebody asks about, with the definition in force at the instant asked for, and what can be looked up for the answer."""

    def __init__(self, tx: Tx, subject: ExplainedJob, then: Revision | None, job: Job) -> None:
        self.tx = tx
        self.subject = subject
        self.then = then  # None: the one it has now
        self.definition = subject.definition if then is None else then.definition
        self.job = job

    async def freezes(self, since: datetime) -> tuple[Freeze, ...]:
        subject, spec = self.subject, self.definition.spec
        found = await explain_queries.list_freezes(self.tx, subject.workspace_id, since)
        covering = (
            each for each in found if each.covers(subject.workspace_id, subject.id, spec.tags, spec.queue)
        )
        return tuple(each.freeze for each in covering)

    async def switched_off(self) -> str | None:
        """Why its type is switched off in its workspace; empty where nobody said, None where it is not."""
        found = (await job_types.list_disabled(self.tx)).get(self.subject.definition.spec.type)
        return None if found is None else found.reason

    async def hangs_on(self) -> str | None:
        """What a job without planned times of its own waits for."""
        if self.job.is_chained:
            live = self.subject.live_number
            return None if live is None else f"run {live} to end"
        upstreams = await self.upstreams(EdgeMode.TRIGGER)
        return f"the end of {upstreams}" if upstreams else None

    async def upstreams(self, mode: EdgeMode) -> str:
        edges = [edge for edge in self.definition.depends_on if edge.mode is mode]
        names = await explain_queries.load_names(self.tx, [edge.upstream for edge in edges])
        listed = [f"the job {names.get(edge.upstream, edge.upstream)}" for edge in edges]
        word = "and" if self.definition.spec.depends_when is JoinRule.ALL else "or"
        return f" {word} ".join(listed)

    def last_planned(self) -> datetime:
        """What people mean who name no time: the planned time that has just been, else the one to come, else now.

        A job with none behind it may have records all the same: of a moment before it was made, or of runs asked for by hand.
        """
        if self.job.is_chained:
            return self.subject.next_at or self.tx.now
        before, after = nearest(self.job, self.subject.created_at, self.tx.now)
        planned = before or after
        return self.tx.now if planned is None else planned.planned_for

    def answer(
        self,
        told: Explanation,
        entry: RunWithRevision | None,
        at: datetime | None = None,
        before: PlannedTime | None = None,
        after: PlannedTime | None = None,
    ) -> Answer:
        subject, schedule = self.subject, self.definition.spec.schedule
        run = None if entry is None else entry.run
        return Answer(told, subject.id, subject.status, schedule, run, at, before, after)

    def with_revision(self, told: Explanation, entry: RunWithRevision | None) -> Explanation:
        """Says so where the answer speaks of another definition than the one the job has now."""
        subject = self.subject
        if entry is not None and entry.schedule_rev != subject.schedule_rev:
            fact = f"It was planned by schedule revision {entry.schedule_rev}; the job is at revision {subject.schedule_rev} now."
        elif entry is None and self.then is not None:
            fact = f"Revision {self.then.revision} of the job was in force then; it is at revision {subject.revision} now."
        else:
            return told
        return replace(told, facts=(*told.facts, fact))


async def ask_about(tx: Tx, job_id: JobId, at: datetime | None = None) -> Asked:
    subject = await explain_queries.load_job(tx, job_id)
    if subject is None:
        raise not_found("job")
    then = None
    if at is not None and subject.created_at <= at < subject.updated_at:
        then = await revisions.in_force(tx, job_id, at)
    spec = (then or subject).definition.spec
    schedule_rev = (then or subject).schedule_rev
    known = await calendars.by_ids(tx, spec.calendars) if spec.calendars else {}
    mine = tuple(known[each] for each in spec.calendars if each in known)
    job = Rules(spec).job(subject.id, subject.workspace_id, schedule_rev, mine)
    return Asked(tx, subject, then, job)
