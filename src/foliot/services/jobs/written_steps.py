"""A job as its transaction stored it, with warnings for its author: why its runs would wait or fail as things are now."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from foliot.domain.definition import Rules, Spec
from foliot.domain.explain.hosts import how_to_do
from foliot.domain.ids import JobId
from foliot.domain.schedule import Cron, Timetable
from foliot.domain.schedule_lint import SAME_TARGET, crowded_minute, lint
from foliot.domain.webhooks import CHECK_IN
from foliot.services.messaging.room_steps import agent_of_job, find_room, room_not_found
from foliot.services.workers.overview import BRIDGED, OFF_BY_DEFAULT, nobody_serves, remedy
from foliot.storage.jobs import calendars, job_types, jobs, lint_queries
from foliot.storage.jobs.jobs import StoredJob
from foliot.storage.runs import explain_queries
from foliot.storage.tx import Tx
from foliot.storage.workers import hosts

EVERY_WORKER_HAS = frozenset({"http", "python", CHECK_IN})


@dataclass(frozen=True, slots=True)
class WrittenJob:
    job: StoredJob
    warnings: tuple[str, ...] = ()
    has_changed: bool = True

    @property
    def id(self) -> JobId:
        return self.job.id


async def load_written(
    tx: Tx, job_id: JobId, *, with_warnings: bool = False, has_changed: bool = True
) -> WrittenJob:
    stored = await jobs.get(tx, job_id)
    assert stored is not None, "written in this transaction"
    return WrittenJob(stored, await find_warnings(tx, stored) if with_warnings else (), has_changed)


async def find_warnings(tx: Tx, job: StoredJob) -> tuple[str, ...]:
    """Return what its author should know: lint of its schedule and policies, crowds, and why its runs would wait or fail."""
    definition = job.definition
    mine = await calendars.load_for(tx, job.workspace_id, definition.spec)
    timetable = Rules(definition.spec).job(job.id, job.workspace_id, job.schedule_rev, mine).timetable
    found = [
        *lint(definition, timetable, tx.now),
        await _warn_crowded(tx, job, timetable),
        await _warn_same_target(tx, job),
        await _warn_same_name(tx, job),
        await _warn_unserved(tx, definition.spec),
        await _warn_missing_room(tx, job),
    ]
    return tuple(each for each in found if each is not None)


async def _warn_crowded(tx: Tx, job: StoredJob, timetable: Timetable) -> str | None:
    if job.next_at is None or not isinstance(timetable.schedule, Cron):
        return None
    return crowded_minute(timetable, job.next_at, await lint_queries.count_by_minute(tx, job.id, job.next_at))


async def _warn_same_target(tx: Tx, job: StoredJob) -> str | None:
    url = (job.definition.config or {}).get("url")
    if job.definition.spec.type != "http" or not isinstance(url, str):
        return None
    count = await lint_queries.count_with_url(tx, job.id, url, SAME_TARGET)
    if count < SAME_TARGET:
        return None
    return f"{count} or more other jobs call this address. A limit with a concurrency_key keeps them from calling it all at once."


async def _warn_same_name(tx: Tx, job: StoredJob) -> str | None:
    name, owner_id = job.definition.name, job.definition.owner_id
    if not await lint_queries.has_namesake(tx, job.id, name, owner_id):
        return None
    return f'Another job is named "{name}" too. Commands and files that name it need its id, or another name.'


async def _warn_unserved(tx: Tx, spec: Spec) -> str | None:
    """Say why no worker would take runs of this type.

    Types that every worker has, and hosts that are offline, are left to `explain`: /readyz already reports missing workers.
    """
    kind, target = spec.type, spec.target
    if kind in EVERY_WORKER_HAS and target is None:
        return None
    if kind in await job_types.list_disabled(tx):
        return f'Jobs of type "{kind}" are switched off in this workspace: their runs do not start.'
    workers = await explain_queries.list_alive_workers(tx)
    if target is not None:
        assert tx.workspace_id is not None
        host = await hosts.resolve(tx, tx.workspace_id, target)
        there = [] if host is None else [each for each in workers if each.host_id == host.id]
        if host is None or not there or any(each.does(host.id, kind) for each in there):
            return None
        return f'Host {host.name} runs no jobs of type "{kind}". {how_to_do(kind)}'
    if any(worker.serves(spec.queue, kind) for worker in workers):
        return None
    known = {OFF_BY_DEFAULT, *BRIDGED}.union(*(worker.types for worker in workers))
    meant = [] if kind in known else get_close_matches(kind, sorted(known), n=1, cutoff=0.7)
    hint = f'Did you mean "{meant[0]}"?' if meant else remedy(spec.queue, kind)
    return f"{nobody_serves(spec.queue, kind)} {hint}"


async def _warn_missing_room(tx: Tx, job: StoredJob) -> str | None:
    named = (job.definition.config or {}).get("room")
    if job.definition.spec.type != "message" or not isinstance(named, str):
        return None
    if await find_room(tx, named, await agent_of_job(tx, job.id)) is not None:
        return None
    return f"{room_not_found(named).message} Its runs fail until there is one."
