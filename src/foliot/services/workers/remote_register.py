"""Register workers and hosts that connect over HTTP. `remote.py` has what they do then.

Each belongs to the principal whose key registered it first; other keys cannot act for it.

Why: docs/decisions/321-remote-workers-trust.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from foliot.domain import schemas
from foliot.domain.access import Actor
from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import HostId, PrincipalId, WorkerId, WorkspaceId
from foliot.services.identity.audit_steps import append_audit
from foliot.services.workers.host_steps import check_host_quota
from foliot.services.workers.workers import LEASE
from foliot.storage.jobs import job_types
from foliot.storage.jobs.job_types import JobTypeDescription
from foliot.storage.tx import Database, Role, Tx
from foliot.storage.workers import hosts, workers
from foliot.storage.workers.hosts import HostRegistration
from foliot.storage.workers.workers import ANY_QUEUE, WorkerRow

MOST_NAMES = 20_000  # worker names of one workspace, gone ones included
MOST_TYPES = 500  # types described by one workspace's workers; the oldest are dropped


@dataclass(frozen=True, slots=True)
class WorkerPrincipal:
    """The principal of a worker's key, and its workspace."""

    workspace_id: WorkspaceId
    principal_id: PrincipalId
    by: Actor


@dataclass(frozen=True, slots=True)
class HostIntroduction:
    """A host with its server instances."""

    name: str
    labels: Mapping[str, str] | None = None
    instances: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RemoteWorkerHello:
    """A worker to register. A worker of a host serves no queue."""

    name: str
    types: Sequence[str]
    capacity: int
    version: str = ""
    queues: Sequence[str] = (ANY_QUEUE,)
    host: HostIntroduction | None = None
    described: Sequence[JobTypeDescription] = ()


@dataclass(frozen=True, slots=True)
class RegisteredWorker:
    worker_id: WorkerId
    lease: timedelta
    host_id: HostId | None


async def register(
    database: Database, speaker: WorkerPrincipal, hello: RemoteWorkerHello, *, lease: timedelta = LEASE
) -> RegisteredWorker:
    """Register the worker under a new id; its host keeps its name. Type descriptions count only in its workspace."""
    for place, each in enumerate(hello.described):
        if (problem := schemas.problem_of(each.config_schema)) is not None:
            pointer = f"/described/{place}/config_schema"
            raise Invalid(
                problem, pointer=pointer, hint="Leave it out: the worker itself checks its configs."
            )
    host_id = None
    if hello.host is not None:
        async with database.tx(Role.APP, speaker.workspace_id) as tx:
            host_id = await _register_host(tx, speaker, hello, lease)
    async with database.tx(Role.ENGINE) as tx:
        worker_id = WorkerId(tx.new_id())
        row = WorkerRow(
            hello.name,
            () if host_id else hello.queues,
            hello.types,
            hello.capacity,
            hello.version,
            speaker.workspace_id,
            speaker.principal_id,
            host_id,
        )
        await workers.register(tx, worker_id, row, tx.now + lease)
        await workers.forget_names_beyond(tx, speaker.workspace_id, MOST_NAMES)
        if hello.described:
            described = {each.name: each for each in hello.described}
            await job_types.describe(tx, speaker.workspace_id, list(described.values()))
            await job_types.forget_beyond(tx, speaker.workspace_id, MOST_TYPES)
    return RegisteredWorker(worker_id, lease, host_id)


async def _register_host(
    tx: Tx, speaker: WorkerPrincipal, hello: RemoteWorkerHello, lease: timedelta
) -> HostId:
    assert hello.host is not None
    host = hello.host
    registering = HostRegistration(host.name, speaker.principal_id, host.labels, hello.version)
    found = await hosts.register(tx, speaker.workspace_id, registering, tx.now + lease)
    if found is None:
        raise Conflict(
            f'There is a host "{host.name}" already, and it was registered with the key of another member.',
            hint="Choose another name, use a key of the same member, or delete that host first.",
        )
    host_id, is_new = found
    has_new_servers = False
    if is_new:
        await append_audit(tx, "host.registered", ("host", host_id), speaker.by, after={"name": host.name})
    held = await hosts.find_held_by_others(tx, speaker.workspace_id, host.instances, speaker.principal_id)
    if held is not None:
        raise Conflict(
            f'The server "{held[0]}" is on the host "{held[1]}", which is online with the key of another member.',
            hint="Move it there with `foliot hosts move-server`, or stop that host first.",
        )
    # In one order: two hosts that take over from each other must not deadlock.
    for name in sorted(set(host.instances)):
        put = await hosts.put_instance(tx, speaker.workspace_id, host_id, name)
        if put is not None:
            instance_id, was = put
            action = "instance.registered" if was is None else "instance.moved"
            after = {"name": name, "host": host.name}
            await append_audit(tx, action, ("instance", instance_id), speaker.by, after=after)
            has_new_servers |= was is None
    quotas = speaker.by.quotas
    await check_host_quota(
        tx,
        speaker.workspace_id,
        replace(
            quotas,
            hosts=quotas.hosts if is_new else None,
            servers=quotas.servers if has_new_servers else None,
        ),
    )
    return host_id
