"""Why: of a job at any instant, past or future, and of one run. Loads what is known; `domain/explaining.py` says it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from foliot.domain.awaiting import Bound, explain_bound
from foliot.domain.definition import Rules
from foliot.domain.dependencies import Mode, When
from foliot.domain.errors import Invalid
from foliot.domain.explaining import CLOSE_ENOUGH, Question, explain, nearest
from foliot.domain.freezing import Freeze, freeze_at
from foliot.domain.ids import JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.job import Job
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.run import WaitsFor
from foliot.domain.schedule import PlannedTime, Schedule
from foliot.domain.target import target_of
from foliot.domain.telling import Explanation, Place, Recorded, Verdict, explain_record
from foliot.services.in_hand import no_such
from foliot.services.seeing import see_job, see_run
from foliot.services.unserved import remedy
from foliot.storage import calendars, explaining, hosts, ledger, revisions
from foliot.storage.explaining import MOST_NAMED, AliveWorker, InReady, InWaiting, Subject
from foliot.storage.ledger import Entry, RunRecord
from foliot.storage.revisions import Revision
from foliot.storage.tx import Database, Role, Tx


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


async def explain_instant(
    database: Database,
    workspace_id: WorkspaceId,
    job_id: JobId,
    at: datetime | None = None,
    only_owner: PrincipalId | None = None,
) -> Answer:
    """What happened to this job at `at`, or what will; without an instant, at its last planned time, or its first."""
    if at is not None and at.tzinfo is None:
        raise Invalid("An instant needs its offset from UTC, such as 2027-01-02T18:00:00Z.", pointer="/at")
    async with database.tx(Role.APP, workspace_id) as tx:
        await see_job(tx, job_id, only_owner)
        if at is None:
            asked = await _asked(tx, job_id)
            at = asked.last_planned()
            if at >= tx.now and (newest := await ledger.newest(tx, job_id)) is not None:
                return await _answer_about(tx, asked, newest)
        asked = await _asked(tx, job_id, at)
        subject = asked.subject
        entry = await ledger.near(tx, job_id, at, CLOSE_ENOUGH) if at >= subject.created_at else None
        if entry is not None and entry.run.status in _OPEN:
            told = await _explain_open(tx, asked, entry)
        else:
            told = explain(
                Question(
                    job=asked.job,
                    status=subject.status,
                    created_at=subject.created_at,
                    at=at,
                    now=tx.now,
                    record=None if entry is None else await _ended(tx, entry),
                    runs_created=subject.runs_created,
                    skip_next=subject.skip_next,
                    skip_until=subject.skip_until,
                    next_at=subject.next_at,
                    status_reason=subject.status_reason,
                    paused_until=subject.paused_until,
                    freezes=await asked.freezes(min(at, tx.now)),
                    waits_for=await asked.hangs_on(),
                )
            )
        before, after = nearest(asked.job, subject.created_at, at)
        return asked.answer(asked.with_revision(told, entry), entry, at, before, after)


async def explain_run(
    database: Database, workspace_id: WorkspaceId, run_id: RunId, only_owner: PrincipalId | None = None
) -> Answer:
    """What became of this run, or what it waits for and where it stands."""
    async with database.tx(Role.APP, workspace_id) as tx:
        entry = await see_run(tx, run_id, only_owner)
        return await _answer_about(tx, await _asked(tx, entry.run.job_id), entry)


async def _answer_about(tx: Tx, asked: _Asked, entry: Entry) -> Answer:
    if entry.run.status in _OPEN:
        return asked.answer(await _explain_open(tx, asked, entry), entry)
    told = explain_record(asked.job, await _ended(tx, entry))
    return asked.answer(asked.with_revision(told, entry), entry)


_OPEN = frozenset({RunStatus.READY, RunStatus.WAITING, RunStatus.RUNNING})


class _Asked:
    """A job somebody asks about, with the definition in force at the instant asked for, and what can be looked up for the answer."""

    def __init__(self, tx: Tx, subject: Subject, then: Revision | None, job: Job) -> None:
        self.tx = tx
        self.subject = subject
        self.then = then  # None: the one it has now
        self.definition = subject.definition if then is None else then.definition
        self.job = job

    async def freezes(self, since: datetime) -> tuple[Freeze, ...]:
        subject, spec = self.subject, self.definition.spec
        found = await explaining.freezes(self.tx, subject.workspace_id, since)
        covering = (
            each for each in found if each.covers(subject.workspace_id, subject.id, spec.tags, spec.queue)
        )
        return tuple(each.freeze for each in covering)

    async def hangs_on(self) -> str | None:
        """What a job without planned times of its own waits for."""
        if self.job.is_chained:
            live = self.subject.live_number
            return None if live is None else f"run {live} to end"
        upstreams = await self.upstreams(Mode.TRIGGER)
        return f"the end of {upstreams}" if upstreams else None

    async def upstreams(self, mode: Mode) -> str:
        edges = [edge for edge in self.definition.depends_on if edge.mode is mode]
        names = await explaining.names(self.tx, [edge.upstream for edge in edges])
        listed = [f"the job {names.get(edge.upstream, edge.upstream)}" for edge in edges]
        word = "and" if self.definition.spec.depends_when is When.ALL else "or"
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
        entry: Entry | None,
        at: datetime | None = None,
        before: PlannedTime | None = None,
        after: PlannedTime | None = None,
    ) -> Answer:
        subject, schedule = self.subject, self.definition.spec.schedule
        run = None if entry is None else entry.run
        return Answer(told, subject.id, subject.status, schedule, run, at, before, after)

    def with_revision(self, told: Explanation, entry: Entry | None) -> Explanation:
        """Says so where the answer speaks of another definition than the one the job has now."""
        subject = self.subject
        if entry is not None and entry.schedule_rev != subject.schedule_rev:
            fact = f"It was planned by schedule revision {entry.schedule_rev}; the job is at revision {subject.schedule_rev} now."
        elif entry is None and self.then is not None:
            fact = f"Revision {self.then.revision} of the job was in force then; it is at revision {subject.revision} now."
        else:
            return told
        return replace(told, facts=(*told.facts, fact))


async def _asked(tx: Tx, job_id: JobId, at: datetime | None = None) -> _Asked:
    subject = await explaining.subject(tx, job_id)
    if subject is None:
        raise no_such("job")
    then = None
    if at is not None and subject.created_at <= at < subject.updated_at:
        then = await revisions.in_force(tx, job_id, at)
    spec = (then or subject).definition.spec
    schedule_rev = (then or subject).schedule_rev
    known = await calendars.by_ids(tx, spec.calendars) if spec.calendars else {}
    mine = tuple(known[each] for each in spec.calendars if each in known)
    job = Rules(spec).job(subject.id, subject.workspace_id, schedule_rev, mine)
    return _Asked(tx, subject, then, job)


async def _explain_open(tx: Tx, asked: _Asked, entry: Entry) -> Explanation:
    record = _recorded(entry)
    if entry.run.status is RunStatus.WAITING:
        waiting = await explaining.in_waiting(tx, entry.run.id)
        if waiting is not None:
            return explain_record(asked.job, record, await _place(tx, asked, waiting))
    if entry.run.status is RunStatus.READY:
        ready = await explaining.in_ready(tx, entry.run.id)
        if ready is not None:
            return await _explain_ready(tx, asked, record, ready)
    return explain_record(asked.job, record)


async def _place(tx: Tx, asked: _Asked, waiting: InWaiting) -> Place:
    behind, until = None, waiting.expires_at
    match waiting.waits_for:
        case WaitsFor.TURN:
            live = asked.subject.live_number
            behind = None if live is None else f"run {live}"
        case WaitsFor.UPSTREAM:
            behind = await asked.upstreams(Mode.GATE) or None
        case WaitsFor.FREEZE:
            freeze = freeze_at(await asked.freezes(tx.now), tx.now)
            behind = None if freeze is None else freeze.reason or None
            until = (freeze and freeze.end_at) or until
        case WaitsFor.WINDOW:
            until = waiting.available_at
        case WaitsFor.LIMIT:
            behind = await _limits(tx, asked, waiting.concurrency_key)
    position = None if waiting.ahead is None else waiting.ahead + 1
    return Place(waiting.waits_for, position, waiting.line, behind, until)


async def _limits(tx: Tx, asked: _Asked, concurrency_key: str | None) -> str | None:
    found = await explaining.limits(tx, asked.subject.workspace_id, concurrency_key)
    named = [
        f"{f'concurrency key {limit.key}' if limit.key else 'the workspace'}: {limit.in_use} of {limit.cap} in use"
        for limit in found
        if limit.in_use >= limit.cap
    ]
    return "; ".join(named) or None


async def _explain_ready(tx: Tx, asked: _Asked, record: Recorded, ready: InReady) -> Explanation:
    if ready.available_at > tx.now:
        return explain_record(asked.job, replace(record, retry_at=ready.available_at))
    workers = await explaining.alive_workers(tx)
    if ready.target is not None:
        return await _explain_bound(tx, asked, record, ready, workers)
    workers = [worker for worker in workers if worker.host_id is None]
    if any(worker.serves(ready.queue, ready.type) for worker in workers):
        place = Place(WaitsFor.TURN, ready.ahead + 1, ready.line)
        return explain_record(asked.job, record, place)
    return Explanation(
        Verdict.WAITING,
        f"Run {record.number} is ready, but no worker serves queue {ready.queue} for type {ready.type}.",
        (_alive(workers),),
        remedy(ready.queue, ready.type),
    )


async def _explain_bound(
    tx: Tx, asked: _Asked, record: Recorded, ready: InReady, workers: list[AliveWorker]
) -> Explanation:
    assert ready.target is not None
    target = target_of(ready.target)
    host = await hosts.resolve(tx, asked.subject.workspace_id, target)
    if host is None:
        return explain_bound(asked.job, record, Bound(target))
    found = await hosts.get(tx, host.id)
    assert found is not None, "it was resolved in this transaction"
    leased = await hosts.leased(tx, host.id)
    lane = (leased.reads, found.max_reads) if ready.read_only else (leased.mutations, found.max_mutations)
    bound = Bound(
        target,
        host.name,
        host.sighting,
        does_type=ready.type if any(each.does(host.id, ready.type) for each in workers) else None,
        under_way=lane[0],
        most=lane[1],
    )
    place = Place(WaitsFor.TURN, ready.ahead + 1, ready.line)
    return explain_bound(asked.job, record, bound, ready.type, tx.now, place)


def _alive(workers: list[AliveWorker]) -> str:
    if not workers:
        return "No worker is alive."
    named = [
        f"{worker.name} (queues: {', '.join(worker.queues)}; types: {', '.join(worker.types)}"
        f"{'; shutting down' if worker.is_draining else ''})"
        for worker in workers[:MOST_NAMED]
    ]
    more = f", and {len(workers) - MOST_NAMED} more" if len(workers) > MOST_NAMED else ""
    return f"Workers alive: {', '.join(named)}{more}."


async def _ended(tx: Tx, entry: Entry) -> Recorded:
    """With what became of each attempt, where there was more than one."""
    record = _recorded(entry)
    if entry.run.attempt_count <= 1:
        return record
    tried = (await ledger.attempts(tx, entry.run.id))[-MOST_NAMED:]
    tries = tuple(
        (each.number, each.status, each.ended_at, each.error) for each in tried if each.ended_at is not None
    )
    return replace(record, tries=tries)


def _recorded(entry: Entry) -> Recorded:
    run = entry.run
    return Recorded(
        run_id=run.id,
        number=run.number,
        status=run.status,
        planned_for=run.planned_for,
        planned_until=run.planned_until,
        count=run.count,
        skip_reason=run.skip_reason,
        note=entry.note,
        started_at=run.started_at,
        finished_at=run.finished_at,
        attempt_count=run.attempt_count,
        error=run.error,
    )
