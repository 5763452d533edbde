"""Hosts, their server instances, and the ready runs that a host may claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.hosts import HostCapacity, HostContact
from foliot.domain.ids import HostId, InstanceId, JobId, PrincipalId, RunId, WorkerId, WorkspaceId
from foliot.domain.run import Target, TargetKind
from foliot.storage.queries import sql
from foliot.storage.queue.limits import Permit, ReadyRun
from foliot.storage.tx import Tx

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class HostRow:
    id: HostId
    name: str
    labels: Labels
    max_mutations: int
    max_reads: int
    version: str
    revision: int
    created_at: datetime
    updated_at: datetime
    sighting: HostContact
    running: int
    types: Sequence[str]  # of its live workers


@dataclass(frozen=True, slots=True)
class InstanceRow:
    id: InstanceId
    host_id: HostId
    name: str
    labels: Labels
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class HostRegistration:
    """A host's registration. Without `labels` the stored ones stay."""

    name: str
    principal_id: PrincipalId
    labels: Labels | None
    version: str


@dataclass(frozen=True, slots=True)
class TargetHost:
    """The host that a target resolves to now."""

    id: HostId
    name: str
    sighting: HostContact


async def register(
    tx: Tx, workspace_id: WorkspaceId, host: HostRegistration, alive_until: datetime
) -> tuple[HostId, bool] | None:
    """Register the host and return its id and whether it is new; None if the name belongs to another principal's host."""
    labels = None if host.labels is None else Jsonb(dict(host.labels))
    params = {
        "workspace_id": workspace_id,
        "id": tx.new_id(),
        "name": host.name,
        "labels": Jsonb({}) if labels is None else labels,
        "new_labels": labels,
        "principal_id": host.principal_id,
        "version": host.version,
        "alive_until": alive_until,
    }
    rows = await tx.fetch_pairs(HostId, bool, sql.hosts.register, params)
    return rows[0] if rows else None


async def record_heartbeat(tx: Tx, worker_id: WorkerId, alive_until: datetime) -> None:
    """Record a heartbeat of the worker's host, if it has one."""
    await tx.execute(sql.hosts.record_heartbeat, {"worker_id": worker_id, "alive_until": alive_until})


async def record_sign_off(tx: Tx, host_id: HostId) -> None:
    await tx.execute(sql.hosts.record_sign_off, {"id": host_id})


async def load_free_capacity(tx: Tx, host_id: HostId) -> HostCapacity | None:
    """Lock the host's capacity and return its free part; None for an unknown host."""
    total = await tx.fetch_one_as(HostCapacity, sql.hosts.lock_capacity, {"id": host_id})
    if total is None:
        return None
    used = await load_used_capacity(tx, host_id)
    return HostCapacity(max(0, total.mutations - used.mutations), max(0, total.reads - used.reads))


async def load_used_capacity(tx: Tx, host_id: HostId) -> HostCapacity:
    """Count the host's leases."""
    return await tx.fetch_value(HostCapacity, sql.hosts.count_leases, {"id": host_id})


async def lock_ready_runs(
    tx: Tx, host_id: HostId, workspace_id: WorkspaceId, types: Sequence[str], free: HostCapacity, permits: int
) -> dict[RunId, Permit]:
    """Lock ready runs for the host, and return them in the order in which they should start."""
    params = {
        "id": host_id,
        "workspace_id": workspace_id,
        "types": list(types),
        "mutations": min(free.mutations, permits),
        "reads": min(free.reads, permits),
        "most": permits,
    }
    rows = await tx.fetch_as(ReadyRun, sql.hosts.lock_ready_runs, params)
    return {row.run_id: row.permit for row in rows}


async def next_at(tx: Tx, host_id: HostId, workspace_id: WorkspaceId) -> datetime | None:
    params = {"id": host_id, "workspace_id": workspace_id}
    return await tx.fetch_one_as(datetime, sql.hosts.find_next_start, params)


async def get(tx: Tx, host_id: HostId) -> HostRow | None:
    return await tx.fetch_one_as(HostRow, sql.hosts.get, {"id": host_id})


async def lock(tx: Tx, host_id: HostId) -> HostRow | None:
    """Lock the host and return it, without counting its runs."""
    return await tx.fetch_one_as(HostRow, sql.hosts.lock, {"id": host_id})


async def page(tx: Tx, after: tuple[str, UUID], limit: int) -> list[HostRow]:
    name, last_id = after
    return await tx.fetch_as(HostRow, sql.hosts.page, {"name": name, "after": last_id, "limit": limit})


async def change(tx: Tx, host: HostRow) -> None:
    params = {
        "id": host.id,
        "labels": Jsonb(dict(host.labels)),
        "max_mutations": host.max_mutations,
        "max_reads": host.max_reads,
    }
    await tx.execute(sql.hosts.update, params)


async def delete(tx: Tx, host_id: HostId) -> None:
    await tx.execute(sql.hosts.delete, {"id": host_id})


async def list_instances(tx: Tx, host_ids: Sequence[HostId]) -> list[InstanceRow]:
    return await tx.fetch_as(InstanceRow, sql.hosts.list_instances, {"host_ids": list(host_ids)})


async def lock_instance(tx: Tx, host_id: HostId, instance_id: InstanceId) -> InstanceRow | None:
    """Lock a server instance and return it."""
    params = {"id": instance_id, "host_id": host_id}
    return await tx.fetch_one_as(InstanceRow, sql.hosts.lock_instance, params)


async def find_held_by_others(
    tx: Tx, workspace_id: WorkspaceId, names: Sequence[str], principal_id: PrincipalId
) -> tuple[str, str] | None:
    """Return the first of these instances on a live host of another principal, and that host's name."""
    params = {"workspace_id": workspace_id, "names": list(names), "principal_id": principal_id}
    rows = await tx.fetch_pairs(str, str, sql.hosts.find_held_by_others, params)
    return rows[0] if rows else None


async def put_instance(
    tx: Tx, workspace_id: WorkspaceId, host_id: HostId, name: str
) -> tuple[InstanceId, HostId | None] | None:
    """Assign the instance to the host, and return its id and earlier host; None if it was there already."""
    rows = await tx.fetch_as(
        _PutInstance, sql.hosts.put_instance, _new_instance(tx, workspace_id, host_id, name, {})
    )
    return (rows[0].id, rows[0].previous_host_id) if rows else None


async def insert_instance(
    tx: Tx, workspace_id: WorkspaceId, host_id: HostId, name: str, labels: Labels
) -> InstanceId | None:
    """Insert the instance and return its id; None if the name is taken."""
    params = _new_instance(tx, workspace_id, host_id, name, labels)
    return InstanceId(params["id"]) if await tx.execute(sql.hosts.insert_instance, params) else None


async def change_instance(tx: Tx, instance: InstanceRow) -> None:
    params = {"id": instance.id, "host_id": instance.host_id, "labels": Jsonb(dict(instance.labels))}
    await tx.execute(sql.hosts.update_instance, params)


async def delete_instance(tx: Tx, instance_id: InstanceId) -> None:
    await tx.execute(sql.hosts.delete_instance, {"id": instance_id})


async def resolve(tx: Tx, workspace_id: WorkspaceId, target: Target) -> TargetHost | None:
    params = {"workspace_id": workspace_id, "kind": target.kind.value, "name": target.name}
    return await tx.fetch_one_as(TargetHost, sql.hosts.resolve, params)


async def list_names(tx: Tx, workspace_id: WorkspaceId, kind: TargetKind) -> list[str]:
    return await tx.fetch_as(str, sql.hosts.list_names, {"workspace_id": workspace_id, "kind": kind.value})


async def count(tx: Tx, workspace_id: WorkspaceId) -> tuple[int, int]:
    """Count hosts and server instances of the workspace."""
    [counts] = await tx.fetch_pairs(int, int, sql.hosts.count, {"workspace_id": workspace_id})
    return counts


async def list_unseen(tx: Tx, before: datetime, limit: int) -> list[tuple[WorkspaceId, HostId]]:
    """List hosts of all workspaces that are silent since before then and have nothing bound to them, the longest silent first."""
    params = {"before": before, "limit": limit}
    return await tx.fetch_pairs(WorkspaceId, HostId, sql.hosts.list_unseen, params)


async def list_bound_jobs(
    tx: Tx,
    workspace_id: WorkspaceId,
    kind: TargetKind,
    names: Sequence[str],
    limit: int,
    owner: PrincipalId | None = None,
) -> list[tuple[JobId, str]]:
    """List jobs with this target; with `owner`, only that owner's."""
    params = {
        "workspace_id": workspace_id,
        "kind": kind.value,
        "names": list(names),
        "limit": limit,
        "owner_id": owner,
    }
    return await tx.fetch_pairs(JobId, str, sql.hosts.list_bound_jobs, params)


def _new_instance(
    tx: Tx, workspace_id: WorkspaceId, host_id: HostId, name: str, labels: Labels
) -> dict[str, Any]:
    return {
        "workspace_id": workspace_id,
        "id": tx.new_id(),
        "host_id": host_id,
        "name": name,
        "labels": Jsonb(dict(labels)),
    }


class _PutInstance(NamedTuple):
    id: InstanceId
    previous_host_id: HostId | None
