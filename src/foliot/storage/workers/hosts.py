"""Hosts and their server instances as rows, and what stands ready for a host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.hosts import HostCapacity, Sighting
from foliot.domain.ids import HostId, InstanceId, JobId, PrincipalId, RunId, WorkerId, WorkspaceId
from foliot.domain.target import Target, TargetKind
from foliot.storage.queries import sql
from foliot.storage.queue.limits import Permit
from foliot.storage.tx import Row, Tx

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
    sighting: Sighting
    running: int
    types: Sequence[str]  # that its living workers do


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
    """How a host introduces itself. Labels it does not speak of stay as they are."""

    name: str
    principal_id: PrincipalId
    labels: Labels | None
    version: str


@dataclass(frozen=True, slots=True)
class TargetHost:
    """The host that a target means at this moment."""

    id: HostId
    name: str
    sighting: Sighting


async def register(
    tx: Tx, workspace_id: WorkspaceId, host: HostRegistration, alive_until: datetime
) -> tuple[HostId, bool] | None:
    """Its id, and whether it is new; None where the name belongs to somebody else's host."""
    labels = None if host.labels is None else Jsonb(dict(host.labels))
    params = {
        "workspace_id": workspace_id,
        "id": tx.new_id(),
        "name": host.name,
        "labels": Jsonb({}) if labels is None else labels,
        "told_labels": labels,
        "principal_id": host.principal_id,
        "version": host.version,
        "now": tx.now,
        "alive_until": alive_until,
    }
    row = await tx.fetch_one(sql.hosts.register, params)
    return None if row is None else (row["id"], row["is_new"])


async def record_heartbeat(tx: Tx, worker_id: WorkerId, alive_until: datetime) -> None:
    """Its host was heard of, if it is one's."""
    await tx.execute(sql.hosts.seen, {"worker_id": worker_id, "now": tx.now, "alive_until": alive_until})


async def record_sign_off(tx: Tx, host_id: HostId) -> None:
    await tx.execute(sql.hosts.left, {"id": host_id, "now": tx.now})


async def load_free_capacity(tx: Tx, host_id: HostId) -> HostCapacity | None:
    """What it may take on now, which holds until the transaction ends; None where there is no such host."""
    caps = await tx.fetch_one(sql.hosts.lock, {"id": host_id})
    if caps is None:
        return None
    taken = await load_used_capacity(tx, host_id)
    return HostCapacity(
        max(0, caps["max_mutations"] - taken.mutations), max(0, caps["max_reads"] - taken.reads)
    )


async def load_used_capacity(tx: Tx, host_id: HostId) -> HostCapacity:
    """How much of its room is taken."""
    row = await tx.fetch_one(sql.hosts.leased, {"id": host_id})
    assert row is not None
    return HostCapacity(row["mutations"], row["reads"])


async def lock_ready_runs(
    tx: Tx, host_id: HostId, workspace_id: WorkspaceId, types: Sequence[str], free: HostCapacity, permits: int
) -> dict[RunId, Permit]:
    """Ready runs under our lock, in the order in which they should start."""
    params = {
        "id": host_id,
        "workspace_id": workspace_id,
        "types": list(types),
        "mutations": min(free.mutations, permits),
        "reads": min(free.reads, permits),
        "most": permits,
        "now": tx.now,
    }
    rows = await tx.fetch(sql.hosts.ask, params)
    return {row["run_id"]: Permit(row["workspace_id"], row["concurrency_key"], row["is_off"]) for row in rows}


async def next_at(tx: Tx, host_id: HostId, workspace_id: WorkspaceId) -> datetime | None:
    row = await tx.fetch_one(sql.hosts.next_at, {"id": host_id, "workspace_id": workspace_id, "now": tx.now})
    return None if row is None else row["next_at"]


async def get(tx: Tx, host_id: HostId) -> HostRow | None:
    row = await tx.fetch_one(sql.hosts.get, {"id": host_id, "now": tx.now})
    return None if row is None else _host(row)


async def lock(tx: Tx, host_id: HostId) -> HostRow | None:
    """Under its lock; what it runs is not counted."""
    row = await tx.fetch_one(sql.hosts.lock_whole, {"id": host_id})
    return None if row is None else _host(row)


async def page(tx: Tx, after: tuple[str, UUID], limit: int) -> list[HostRow]:
    name, last_id = after
    params = {"name": name, "after": last_id, "limit": limit, "now": tx.now}
    rows = await tx.fetch(sql.hosts.page, params)
    return [_host(row) for row in rows]


async def change(tx: Tx, host: HostRow) -> None:
    params = {
        "id": host.id,
        "labels": Jsonb(dict(host.labels)),
        "max_mutations": host.max_mutations,
        "max_reads": host.max_reads,
        "now": tx.now,
    }
    await tx.execute(sql.hosts.change, params)


async def delete(tx: Tx, host_id: HostId) -> None:
    await tx.execute(sql.hosts.delete, {"id": host_id})


async def instances(tx: Tx, host_ids: Sequence[HostId]) -> list[InstanceRow]:
    rows = await tx.fetch(sql.hosts.instances, {"host_ids": list(host_ids)})
    return [InstanceRow(**row) for row in rows]


async def instance(tx: Tx, host_id: HostId, instance_id: InstanceId) -> InstanceRow | None:
    """Under its lock."""
    row = await tx.fetch_one(sql.hosts.instance, {"id": instance_id, "host_id": host_id})
    return None if row is None else InstanceRow(**row)


async def held_by_others(
    tx: Tx, workspace_id: WorkspaceId, names: Sequence[str], principal_id: PrincipalId
) -> tuple[str, str] | None:
    """The first of these instances that a living host of somebody else has, and that host's name."""
    params = {
        "workspace_id": workspace_id,
        "names": list(names),
        "principal_id": principal_id,
        "now": tx.now,
    }
    row = await tx.fetch_one(sql.hosts.held_by_others, params)
    return None if row is None else (row["name"], row["host"])


async def put_instance(
    tx: Tx, workspace_id: WorkspaceId, host_id: HostId, name: str
) -> tuple[InstanceId, HostId | None] | None:
    """Its id and where it was before; None where it was there already."""
    row = await tx.fetch_one(sql.hosts.put_instance, _new_instance(tx, workspace_id, host_id, name, {}))
    return None if row is None else (row["id"], row["was"])


async def insert_instance(
    tx: Tx, workspace_id: WorkspaceId, host_id: HostId, name: str, labels: Labels
) -> InstanceId | None:
    """None where the name is taken."""
    params = _new_instance(tx, workspace_id, host_id, name, labels)
    return InstanceId(params["id"]) if await tx.execute(sql.hosts.insert_instance, params) else None


async def change_instance(tx: Tx, instance: InstanceRow) -> None:
    params = {
        "id": instance.id,
        "host_id": instance.host_id,
        "labels": Jsonb(dict(instance.labels)),
        "now": tx.now,
    }
    await tx.execute(sql.hosts.change_instance, params)


async def delete_instance(tx: Tx, instance_id: InstanceId) -> None:
    await tx.execute(sql.hosts.delete_instance, {"id": instance_id})


async def resolve(tx: Tx, workspace_id: WorkspaceId, target: Target) -> TargetHost | None:
    params = {"workspace_id": workspace_id, "kind": target.kind.value, "name": target.name}
    row = await tx.fetch_one(sql.hosts.resolve, params)
    if row is None:
        return None
    return TargetHost(row["id"], row["name"], Sighting(row["last_seen_at"], row["alive_until"]))


async def names(tx: Tx, workspace_id: WorkspaceId, kind: TargetKind) -> list[str]:
    rows = await tx.fetch(sql.hosts.names, {"workspace_id": workspace_id, "kind": kind.value})
    return [row["name"] for row in rows]


async def count(tx: Tx, workspace_id: WorkspaceId) -> tuple[int, int]:
    """Hosts and server instances of the workspace."""
    row = await tx.fetch_one(sql.hosts.count, {"workspace_id": workspace_id})
    assert row is not None
    return row["hosts"], row["servers"]


async def unseen(tx: Tx, before: datetime, limit: int) -> list[tuple[WorkspaceId, HostId]]:
    """Not heard of since before then, with nothing bound to them, the longest silent first. Of all workspaces: for the engine."""
    rows = await tx.fetch(sql.hosts.unseen, {"before": before, "limit": limit})
    return [(row["workspace_id"], row["id"]) for row in rows]


async def jobs_bound(
    tx: Tx,
    workspace_id: WorkspaceId,
    kind: TargetKind,
    names: Sequence[str],
    limit: int,
    owner: PrincipalId | None = None,
) -> list[tuple[JobId, str]]:
    """Of this owner alone, where one is named."""
    params = {
        "workspace_id": workspace_id,
        "kind": kind.value,
        "names": list(names),
        "limit": limit,
        "owner_id": owner,
    }
    return [(row["id"], row["name"]) for row in await tx.fetch(sql.hosts.jobs_bound, params)]


def _new_instance(
    tx: Tx, workspace_id: WorkspaceId, host_id: HostId, name: str, labels: Labels
) -> dict[str, Any]:
    return {
        "workspace_id": workspace_id,
        "id": tx.new_id(),
        "host_id": host_id,
        "name": name,
        "labels": Jsonb(dict(labels)),
        "now": tx.now,
    }


def _host(row: Row) -> HostRow:
    return HostRow(
        id=row["id"],
        name=row["name"],
        labels=row["labels"],
        max_mutations=row["max_mutations"],
        max_reads=row["max_reads"],
        version=row["version"],
        revision=row["revision"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        sighting=Sighting(row["last_seen_at"], row["alive_until"]),
        running=row["running"],
        types=row["types"],
    )
