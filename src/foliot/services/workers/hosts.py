"""Hosts and their server instances. A host appears when it registers.

Why: docs/decisions/320-hosts-and-targets.md
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Conflict, Invalid, not_found, refuse_stale, require_found
from foliot.domain.hosts import HostStatus
from foliot.domain.ids import FIRST_ID, HostId, InstanceId, JobId, PrincipalId, WorkspaceId
from foliot.domain.run import TargetKind
from foliot.services.cursors import ListPage, cut_page, read_cursor, text
from foliot.services.identity.audit_steps import append_audit
from foliot.services.workers.host_steps import check_host_quota
from foliot.storage.tx import Database, Role, Tx
from foliot.storage.workers import hosts
from foliot.storage.workers.hosts import HostRow, InstanceRow

__all__ = ["InstanceRow"]

log = logging.getLogger(__name__)

NAMED = 5  # names in a refusal
SHOWN = 50  # jobs shown with a host
FORGOTTEN_AT_ONCE = 100
JANITOR = Actor("engine")


@dataclass(frozen=True, slots=True)
class Host:
    row: HostRow
    instances: Sequence[InstanceRow]
    seen_from: datetime  # when it was read
    bound: Sequence[tuple[JobId, str]] | None = None  # bound jobs; None when not loaded

    @property
    def revision(self) -> int:
        return self.row.revision

    @property
    def status(self) -> HostStatus:
        return self.row.sighting.status(self.seen_from)


async def page(
    database: Database, workspace_id: WorkspaceId, cursor: str | None = None, limit: int = 50
) -> ListPage[Host]:
    """List hosts by name."""
    after = read_cursor(cursor, text, UUID) or ("", FIRST_ID)
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await _with_instances(tx, await hosts.page(tx, after, limit + 1))
    return cut_page(found, limit, lambda last: [last.row.name, last.row.id])


async def get(database: Database, scope: Scope, host_id: HostId) -> Host:
    """Return the host with the jobs bound to it, as far as the caller may see them."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        host = await _shown(tx, host_id)
        bound = await _bound(tx, scope.workspace_id, host.row, host.instances, SHOWN, scope.visible_owner)
        return replace(host, bound=bound[:SHOWN])


async def change(database: Database, scope: Scope, host_id: HostId, changes: Mapping[str, Any]) -> Host:
    """Change labels and capacity. Runs under way continue; the next claim keeps to the new capacity."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        before = await _locked(tx, host_id)
        refuse_stale("host", before.revision, scope.expected_revision)
        after = replace(before, **changes)
        await hosts.change(tx, after)
        await append_audit(
            tx,
            "host.edited",
            ("host", host_id),
            scope.actor,
            before=_audit_fields(before),
            after=_audit_fields(after),
        )
        return await _shown(tx, host_id)


async def delete(database: Database, scope: Scope, host_id: HostId, *, force: bool = False) -> None:
    """Delete the host with its instances. Refused while it is online, and while jobs are bound to it unless `force`."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        host = await _locked(tx, host_id)
        refuse_stale("host", host.revision, scope.expected_revision)
        if host.sighting.status(tx.now) is HostStatus.ONLINE:
            raise Conflict(
                f'The host "{host.name}" is online; it would register again at once.',
                hint="Stop `foliot host` on it first, or revoke its key.",
            )
        instances = await hosts.list_instances(tx, [host_id])
        if not force:
            _refuse_bound(f'The host "{host.name}"', await _bound(tx, scope.workspace_id, host, instances))
        await _remove(tx, host, instances, "host.deleted", scope.actor)


async def forget_unseen(database: Database, silent_for: timedelta, most: int = FORGOTTEN_AT_ONCE) -> int:
    """Delete hosts that were not seen for so long, with their instances. A host with bound jobs stays: it explains why their
    runs wait. Return how many went.
    """
    forgotten = 0
    async with database.tx(Role.ENGINE) as tx:
        before = tx.now - silent_for
        found = await hosts.list_unseen(tx, before, most)
    for workspace_id, host_id in found:
        async with database.tx(Role.APP, workspace_id) as tx:
            host = await hosts.lock(tx, host_id)
            if host is None or host.sighting.last_seen_at >= before:
                continue  # it came back, or another node deleted it
            instances = await hosts.list_instances(tx, [host_id])
            if await _bound(tx, workspace_id, host, instances):
                continue
            await _remove(tx, host, instances, "host.forgotten", JANITOR)
        forgotten += 1
        log.info("host.forgotten", extra={"host": host.name, "last_seen": host.sighting.last_seen_at})
    return forgotten


async def add_instance(
    database: Database, scope: Scope, host_id: HostId, name: str, labels: Mapping[str, str]
) -> InstanceRow:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        host = await _locked(tx, host_id)
        instance_id = await hosts.insert_instance(tx, scope.workspace_id, host_id, name, labels)
        await check_host_quota(tx, scope.workspace_id, replace(scope.actor.quotas, hosts=None))
        if instance_id is None:
            raise Conflict(
                f'There is a server instance "{name}" already.',
                hint="Move it here with PATCH, or choose another name.",
            )
        made = await _instance(tx, host_id, instance_id)
        after = {"name": name, "host": host.name}
        await append_audit(tx, "instance.created", ("instance", instance_id), scope.actor, after=after)
        return made


async def change_instance(
    database: Database,
    scope: Scope,
    host_id: HostId,
    instance_id: InstanceId,
    *,
    labels: Mapping[str, str] | None = None,
    to: HostId | None = None,
) -> InstanceRow:
    """Change labels or move the instance. Waiting runs follow it; a run under way stays."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        for each in sorted({host_id, to or host_id}):
            if await hosts.lock(tx, each) is None:
                if each == to:
                    raise Invalid("There is no such host.", pointer="/host_id")
                raise not_found("host")
        before = await _instance(tx, host_id, instance_id)
        after = replace(before, host_id=to or host_id, labels=before.labels if labels is None else labels)
        await hosts.change_instance(tx, after)
        action = "instance.moved" if after.host_id != before.host_id else "instance.edited"
        shown = [{"host": str(each.host_id), "labels": dict(each.labels)} for each in (before, after)]
        await append_audit(
            tx, action, ("instance", instance_id), scope.actor, before=shown[0], after=shown[1]
        )
        return await _instance(tx, after.host_id, instance_id)


async def remove_instance(
    database: Database, scope: Scope, host_id: HostId, instance_id: InstanceId, *, force: bool = False
) -> None:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await _locked(tx, host_id)
        found = await _instance(tx, host_id, instance_id)
        if not force:
            bound = await hosts.list_bound_jobs(
                tx, scope.workspace_id, TargetKind.SERVER, [found.name], NAMED + 1
            )
            _refuse_bound(f'The server "{found.name}"', bound)
        await hosts.delete_instance(tx, instance_id)
        await append_audit(
            tx, "instance.deleted", ("instance", instance_id), scope.actor, before={"name": found.name}
        )


async def _bound(
    tx: Tx,
    workspace_id: WorkspaceId,
    host: HostRow,
    instances: Sequence[InstanceRow],
    most: int = NAMED + 1,
    owner: PrincipalId | None = None,
) -> list[tuple[JobId, str]]:
    """List some of the jobs that are bound there."""
    bound = await hosts.list_bound_jobs(tx, workspace_id, TargetKind.HOST, [host.name], most, owner)
    names = [each.name for each in instances]
    return bound + await hosts.list_bound_jobs(tx, workspace_id, TargetKind.SERVER, names, most, owner)


async def _remove(tx: Tx, host: HostRow, instances: Sequence[InstanceRow], action: str, by: Actor) -> None:
    for each in instances:
        await hosts.delete_instance(tx, each.id)
    await hosts.delete(tx, host.id)
    before = {**_audit_fields(host), "servers": [each.name for each in instances]}
    await append_audit(tx, action, ("host", host.id), by, before=before)


async def _with_instances(tx: Tx, rows: Sequence[HostRow]) -> list[Host]:
    found = await hosts.list_instances(tx, [row.id for row in rows]) if rows else []
    return [Host(row, [each for each in found if each.host_id == row.id], tx.now) for row in rows]


async def _shown(tx: Tx, host_id: HostId) -> Host:
    row = require_found(await hosts.get(tx, host_id), "host")
    [host] = await _with_instances(tx, [row])
    return host


async def _locked(tx: Tx, host_id: HostId) -> HostRow:
    return require_found(await hosts.lock(tx, host_id), "host")


async def _instance(tx: Tx, host_id: HostId, instance_id: InstanceId) -> InstanceRow:
    return require_found(await hosts.lock_instance(tx, host_id, instance_id), "server instance")


def _audit_fields(host: HostRow) -> dict[str, Any]:
    return {
        "name": host.name,
        "labels": dict(host.labels),
        "max_mutations": host.max_mutations,
        "max_reads": host.max_reads,
    }


def _refuse_bound(what: str, bound: Sequence[tuple[JobId, str]]) -> None:
    if not bound:
        return
    shown = ", ".join(f'"{name}"' for _, name in bound[:NAMED])
    more = " and more" if len(bound) > NAMED else ""
    raise Conflict(
        f"{what} is the target of {shown}{more}.",
        hint="Give these jobs another target first. With force=true it is removed, and their runs wait until it exists again.",
    )
