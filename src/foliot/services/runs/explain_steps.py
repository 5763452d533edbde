"""Load what an explanation needs: the job, its definition at an instant, and the state of an open run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from foliot.domain.access import name_person
from foliot.domain.definition import Rules, Spec
from foliot.domain.dependencies import EdgeMode, JoinRule
from foliot.domain.errors import require_found
from foliot.domain.explain.hosts import HostWait, away, explain_bound, how_to_do, how_to_have
from foliot.domain.explain.instants import Firing, Question, nearest
from foliot.domain.explain.outages import is_silent
from foliot.domain.explain.reasons import name_closed_calendars
from foliot.domain.explain.records import (
    BusyWorkers,
    Explanation,
    QueuePosition,
    Recorded,
    RunningRun,
    Verdict,
    explain_crowded,
    explain_holder,
    explain_record,
    explain_unreported,
)
from foliot.domain.freeze import Freeze, freeze_at
from foliot.domain.hosts import HostStatus
from foliot.domain.ids import JobId, PrincipalId, WorkspaceId
from foliot.domain.job import Job
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.run import Target, WaitsFor, target_of
from foliot.domain.schedule import PlannedTime, Schedule
from foliot.domain.schedule.window import window_closed_until
from foliot.domain.schedule.zone import naive_utc
from foliot.domain.webhooks import CHECK_IN, START_WITHIN
from foliot.services.evaluation import evaluate
from foliot.services.workers.overview import remedy
from foliot.storage import installation
from foliot.storage.content import logs
from foliot.storage.jobs import calendars, job_types, revisions
from foliot.storage.jobs.revisions import Revision
from foliot.storage.runs import explain_queries
from foliot.storage.runs.explain_queries import (
    MOST_NAMED,
    AliveWorker,
    ExplainedJob,
    ReadyPosition,
    WaitingPosition,
)
from foliot.storage.runs.run_history import RunRecord, RunWithRevision
from foliot.storage.timers import outages
from foliot.storage.tx import Tx
from foliot.storage.workers import hosts


async def load_firing_notes(tx: Tx) -> AsyncIterator[str]:
    """Yield what keeps every job of the installation from firing: explain says the same of each planned time."""
    if (held_reason := await installation.get_held_reason(tx)) is not None:
        yield f"Firing is held: {held_reason}"
    if (ticked_at := await outages.last_tick(tx)) is not None and is_silent(ticked_at, tx.now):
        yield f"No scheduler of Foliot has run since {ticked_at:%Y-%m-%dT%H:%M:%SZ}."


MOST_START_NOTES = 100  # kinds of runs that one agenda looks into
SOON = timedelta(hours=1)  # a full worker or limit says nothing about later times


class StartNotes:
    """Say of planned times what would keep their runs from starting now: workers, hosts and limits. explain says the same.

    Jobs with the same queue, type, target and concurrency key share the answer.
    """

    def __init__(self, tx: Tx, workspace_id: WorkspaceId) -> None:
        self._tx, self._workspace_id = tx, workspace_id
        self._known: dict[tuple[str, str, Target | None, str | None, bool], tuple[str, ...]] = {}
        self._workers: list[AliveWorker] | None = None

    async def of(self, job: Job, spec: Spec, due_at: datetime) -> tuple[str, ...]:
        is_soon = due_at - self._tx.now <= SOON
        key = (spec.queue, spec.type, spec.target, spec.concurrency_key, is_soon)
        if key not in self._known:
            if len(self._known) >= MOST_START_NOTES:
                return ()
            causes = [each async for each in self._causes(job, spec, is_soon=is_soon)]
            self._known[key] = tuple(f"Its run would wait: {why}." for why in causes)
        return self._known[key]

    async def _causes(self, job: Job, spec: Spec, *, is_soon: bool) -> AsyncIterator[str]:
        if self._workers is None:
            self._workers = await explain_queries.list_alive_workers(self._tx)
        if (
            unserved := await find_unserved(self._tx, self._workspace_id, job, spec, self._workers)
        ) is not None:
            yield unserved[0]
        if not is_soon:
            return
        if busy := find_busy(spec, self._workers):
            yield f"now {_busy(busy).words}"
        if (limit := await _limits(self._tx, self._workspace_id, spec.concurrency_key)) is not None:
            yield f"its limit is full now ({limit})"


@dataclass(frozen=True, slots=True)
class RunExplanation:
    """An explanation and its subject. For one run there is no instant, and no nearest times."""

    explanation: Explanation
    job_id: JobId
    status: JobStatus
    schedule: Schedule
    run: RunRecord | None = None
    at: datetime | None = None
    before: PlannedTime | None = None
    after: PlannedTime | None = None


class ExplainContext:
    """A job with the definition in force at the instant in question."""

    def __init__(
        self,
        tx: Tx,
        subject: ExplainedJob,
        then: Revision | None,
        job: Job,
        visible_owner: PrincipalId | None,
    ) -> None:
        self.tx = tx
        self.subject = subject
        self.visible_owner = visible_owner  # the reader sees this owner's jobs only; None: all
        self.then = then  # None: the current one
        self.definition = subject.definition if then is None else then.definition
        self.job = job

    def question(self, at: datetime) -> Question:
        """Return the question about `at` with the facts that the job itself has."""
        subject = self.subject
        return Question(
            job=self.job,
            status=subject.status,
            created_at=subject.created_at,
            at=at,
            now=self.tx.now,
            runs_created=subject.runs_created,
            skip_next=subject.skip_next,
            skip_until=subject.skip_until,
            next_at=subject.next_at,
            status_reason=subject.status_reason,
            status_by=subject.status_by,
            status_at=subject.status_at,
            paused_until=subject.paused_until,
            live_number=subject.live_number,
        )

    async def freezes(self, since: datetime) -> tuple[Freeze, ...]:
        subject, spec = self.subject, self.definition.spec
        found = await explain_queries.list_freezes(self.tx, subject.workspace_id, since)
        covering = (
            each for each in found if each.covers(subject.workspace_id, subject.id, spec.tags, spec.queue)
        )
        return tuple(each.freeze for each in covering)

    async def firing(self, start: datetime, end: datetime | None = None) -> Firing:
        """Load whether the installation fires, and the outages from `start` to `end`."""
        return Firing(
            held_reason=await installation.get_held_reason(self.tx),
            ticked_at=await outages.last_tick(self.tx),
            outages=await outages.list_between(self.tx, start, end or start),
            freeze_authors=await explain_queries.list_freeze_authors(
                self.tx, self.subject.workspace_id, min(start, self.tx.now)
            ),
        )

    async def unserved(self) -> tuple[str, str] | None:
        """Return why no worker would take a run of this job now, and the remedy."""
        workers = await explain_queries.list_alive_workers(self.tx)
        return await find_unserved(
            self.tx, self.subject.workspace_id, self.job, self.definition.spec, workers
        )

    async def busy(self) -> BusyWorkers | None:
        """Return the workers that serve this job and the runs they hold, if none of them has a free place now."""
        return await self.load_busy(
            find_busy(self.definition.spec, await explain_queries.list_alive_workers(self.tx))
        )

    async def load_busy(self, workers: list[AliveWorker]) -> BusyWorkers | None:
        if not workers:
            return None
        running = await explain_queries.list_running(
            self.tx, self.subject.workspace_id, [worker.id for worker in workers], self.visible_owner
        )
        return _busy(workers, running)

    async def full_limit(self) -> str | None:
        """Return the limits of this job that have no free place now."""
        return await _limits(self.tx, self.subject.workspace_id, self.definition.spec.concurrency_key)

    def closed_by(self) -> str | None:
        """Return what is closed now: the window, or calendars by name."""
        timetable, now = self.job.timetable, self.tx.now
        window, zone = timetable.window, timetable.schedule.timezone
        is_open = window is None or window_closed_until(window, zone, naive_utc(now)) is None
        closed = (None if is_open else "its window is closed", name_closed_calendars(timetable, now))
        return " and ".join(filter(None, closed)) or None

    async def switched_off(self) -> str | None:
        """Return why the type is disabled: empty without a reason, None when it is enabled."""
        found = (await job_types.list_disabled(self.tx)).get(self.subject.definition.spec.type)
        return None if found is None else found.reason

    async def hangs_on(self) -> str | None:
        """Return what a job without planned times waits for."""
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
        """Return the default instant: the last planned time, else the next, else now.

        A job without a past planned time may still have records: of manual runs, or of a time before it was created.
        """
        if self.job.is_chained:
            return self.subject.next_at or self.tx.now
        before, after = nearest(self.job, self.subject.created_at, self.tx.now)
        planned = before or after
        return self.tx.now if planned is None else planned.planned_for

    def answer(
        self,
        explanation: Explanation,
        entry: RunWithRevision | None,
        at: datetime | None = None,
        before: PlannedTime | None = None,
        after: PlannedTime | None = None,
    ) -> RunExplanation:
        subject, schedule = self.subject, self.definition.spec.schedule
        run = None if entry is None else entry.run
        return RunExplanation(explanation, subject.id, subject.status, schedule, run, at, before, after)

    def with_revision(self, explanation: Explanation, entry: RunWithRevision | None) -> Explanation:
        """Add a fact when the answer uses another definition than the current one."""
        subject = self.subject
        if entry is not None and entry.schedule_rev != subject.schedule_rev:
            fact = f"It was planned by schedule revision {entry.schedule_rev}; the job is at revision {subject.schedule_rev} now."
        elif entry is None and self.then is not None:
            fact = f"Revision {self.then.revision} of the job was in force then; it is at revision {subject.revision} now."
        else:
            return explanation
        return replace(explanation, facts=(*explanation.facts, fact))


async def find_unserved(
    tx: Tx, workspace_id: WorkspaceId, job: Job, spec: Spec, workers: list[AliveWorker]
) -> tuple[str, str] | None:
    """Return why no worker or host would take a run of this job now, and the remedy."""
    if spec.type == CHECK_IN:
        return None  # its work is done elsewhere
    if spec.target is None:
        shared = [worker for worker in workers if worker.host_id is None]
        if any(worker.serves(spec.queue, spec.type) for worker in shared):
            return None
        alive = "no worker is alive" if not shared else _alive(shared).removesuffix(".")
        why = f"no worker serves queue {spec.queue} for type {spec.type} now ({alive})"
        return why, remedy(spec.queue, spec.type)
    host = await hosts.resolve(tx, workspace_id, spec.target)
    if host is None:
        return f"there is no {spec.target.words} now", how_to_have(spec.target)
    if host.sighting.status(tx.now) is not HostStatus.ONLINE:
        since = away(job, spec.target, (host.name, host.sighting))
        return since, f"Start `foliot host` on {host.name} again."
    if not any(each.does(host.id, spec.type) for each in workers):
        return f"host {host.name} runs no jobs of type {spec.type}", how_to_do(spec.type)
    return None


def find_busy(spec: Spec, workers: list[AliveWorker]) -> list[AliveWorker]:
    """Return the workers that serve this job if all of them are full, else none."""
    if spec.type == CHECK_IN or spec.target is not None:
        return []
    return _all_full(spec.queue, spec.type, workers)


def _all_full(queue: str, kind: str, workers: list[AliveWorker]) -> list[AliveWorker]:
    serving = [worker for worker in workers if worker.host_id is None and worker.serves(queue, kind)]
    return serving if all(worker.is_full for worker in serving) else []


def _busy(workers: list[AliveWorker], running: Sequence[RunningRun] = ()) -> BusyWorkers:
    places, taken = sum(worker.capacity for worker in workers), sum(worker.taken for worker in workers)
    return BusyWorkers(places, taken, tuple(running))


async def load_explain_context(
    tx: Tx, job_id: JobId, at: datetime | None = None, visible_owner: PrincipalId | None = None
) -> ExplainContext:
    subject = require_found(await explain_queries.load_job(tx, job_id), "job")
    then = None
    if at is not None and subject.created_at <= at < subject.updated_at:
        then = await revisions.find_in_force(tx, job_id, at)
    spec = (then or subject).definition.spec
    schedule_rev = (then or subject).schedule_rev
    mine = await calendars.load_for(tx, subject.workspace_id, spec)
    job = Rules(spec).job(subject.id, subject.workspace_id, schedule_rev, mine)
    return ExplainContext(tx, subject, then, job, visible_owner)


async def explain_open(tx: Tx, asked: ExplainContext, entry: RunWithRevision) -> Explanation:
    record = recorded(entry)
    if entry.run.status is RunStatus.WAITING:
        waiting = await explain_queries.load_waiting_position(tx, entry.run.id)
        if waiting is not None:
            return explain_record(asked.job, record, await _place(tx, asked, waiting))
    if entry.run.status is RunStatus.READY:
        ready = await explain_queries.load_ready_position(tx, entry.run.id)
        if ready is not None:
            return await _explain_ready(tx, asked, record, ready)
    if (progress := (await logs.load_progress(tx, [entry.run.id])).get(entry.run.id)) is not None:
        record = replace(record, progress_note=progress.note)
    explanation = explain_record(asked.job, record)
    holder = await explain_queries.load_holder(tx, entry.run.id)
    if holder is None:
        return explanation
    fact = explain_holder(holder.name, tx.now - holder.until)
    return replace(explanation, facts=(*explanation.facts, fact))


def recorded(entry: RunWithRevision) -> Recorded:
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


async def _place(tx: Tx, asked: ExplainContext, waiting: WaitingPosition) -> QueuePosition:
    behind, until = None, waiting.expires_at
    match waiting.waits_for:
        case WaitsFor.TURN:
            live = asked.subject.live_number
            behind = None if live is None else f"run {live}"
        case WaitsFor.UPSTREAM:
            behind = await asked.upstreams(EdgeMode.GATE) or None
        case WaitsFor.FREEZE:
            freeze = freeze_at(await asked.freezes(tx.now), tx.now)
            if freeze is not None:
                authors = await explain_queries.list_freeze_authors(tx, asked.subject.workspace_id, tx.now)
                author = name_person(dict(authors)[freeze.id])
                behind = "; ".join(filter(None, [freeze.reason, f"made by {author}"]))
                until = freeze.end_at
        case WaitsFor.WINDOW:
            until = waiting.available_at
            behind = await evaluate(asked.job.timetable, asked.closed_by)
        case WaitsFor.TYPE:
            behind = await asked.switched_off() or None
        case WaitsFor.LIMIT:
            behind = await _limits(tx, asked.subject.workspace_id, waiting.concurrency_key)
    position = None if waiting.ahead is None else waiting.ahead + 1
    return QueuePosition(waiting.waits_for, position, waiting.line, behind, until)


async def _limits(tx: Tx, workspace_id: WorkspaceId, concurrency_key: str | None) -> str | None:
    found = await explain_queries.list_limits(tx, workspace_id, concurrency_key)
    named = [
        f"{f'concurrency key {limit.key}' if limit.key else 'the workspace'}: {limit.in_use} of {limit.cap} in use"
        for limit in found
        if limit.in_use >= limit.cap
    ]
    return "; ".join(named) or None


async def _explain_ready(
    tx: Tx, asked: ExplainContext, record: Recorded, ready: ReadyPosition
) -> Explanation:
    if (why := await asked.switched_off()) is not None:  # the next claim makes it wait
        held = QueuePosition(WaitsFor.TYPE, behind=why or None)
        return explain_record(asked.job, replace(record, status=RunStatus.WAITING), held)
    if ready.available_at > tx.now and record.attempt_count == 0:
        closed_by = await evaluate(asked.job.timetable, asked.closed_by)
        return explain_record(asked.job, replace(record, opens_at=ready.available_at, closed_by=closed_by))
    if ready.available_at > tx.now:
        return explain_record(asked.job, replace(record, retry_at=ready.available_at))
    if ready.type == CHECK_IN:
        until = ready.available_at + (asked.job.limits.start_deadline or START_WITHIN)
        return explain_unreported(asked.job, record, until)
    workers = await explain_queries.list_alive_workers(tx)
    if ready.target is not None:
        return await _explain_bound(tx, asked, record, ready, workers)
    workers = [worker for worker in workers if worker.host_id is None]
    if any(worker.serves(ready.queue, ready.type) for worker in workers):
        place = QueuePosition(WaitsFor.TURN, ready.ahead + 1, ready.line)
        busy = await asked.load_busy(_all_full(ready.queue, ready.type, workers))
        if busy is not None:
            return explain_crowded(asked.job, record, place, busy)
        return explain_record(asked.job, record, place)
    return Explanation(
        Verdict.WAITING,
        f"Run {record.number} is ready, but no worker serves queue {ready.queue} for type {ready.type}.",
        (_alive(workers),),
        remedy(ready.queue, ready.type),
    )


async def _explain_bound(
    tx: Tx, asked: ExplainContext, record: Recorded, ready: ReadyPosition, workers: list[AliveWorker]
) -> Explanation:
    assert ready.target is not None
    target = target_of(ready.target)
    host = await hosts.resolve(tx, asked.subject.workspace_id, target)
    if host is None:
        return explain_bound(asked.job, record, HostWait(target))
    found = await hosts.get(tx, host.id)
    assert found is not None, "it was resolved in this transaction"
    leased = await hosts.load_used_capacity(tx, host.id)
    lane = (leased.reads, found.max_reads) if ready.read_only else (leased.mutations, found.max_mutations)
    bound = HostWait(
        target,
        host.name,
        host.sighting,
        does_type=ready.type if any(each.does(host.id, ready.type) for each in workers) else None,
        under_way=lane[0],
        most=lane[1],
    )
    place = QueuePosition(WaitsFor.TURN, ready.ahead + 1, ready.line)
    return explain_bound(asked.job, record, bound, ready.type, tx.now, place)


def _offers(worker: AliveWorker) -> str:
    offers = [
        f"{what}: {', '.join(names)}"
        for what, names in (("queues", worker.queues), ("types", worker.types))
        if names
    ]
    offers += ["shutting down"] if worker.is_draining else []
    return f" ({'; '.join(offers)})" if offers else ""


def _alive(workers: list[AliveWorker]) -> str:
    if not workers:
        return "No worker is alive."
    named = [f"{worker.name}{_offers(worker)}" for worker in workers[:MOST_NAMED]]
    more = f", and {len(workers) - MOST_NAMED} more" if len(workers) > MOST_NAMED else ""
    return f"Workers alive: {', '.join(named)}{more}."
