"""Targets of runs: check that a host or server exists, and find its host.

Why: docs/decisions/320-hosts-and-targets.md
"""

from __future__ import annotations

from difflib import get_close_matches

from foliot.domain.errors import Invalid
from foliot.domain.explain.hosts import away
from foliot.domain.hosts import HostStatus
from foliot.domain.ids import WorkspaceId
from foliot.domain.job import Job
from foliot.domain.quotas import Quotas, check_hosts, check_servers
from foliot.domain.run import Target, TargetKind
from foliot.storage.identity import workspaces
from foliot.storage.tx import Tx
from foliot.storage.workers import hosts

NAMED = 5


async def check_target(tx: Tx, workspace_id: WorkspaceId, target: Target | None) -> None:
    """Refuse an unknown name: every run would wait."""
    if target is None or await hosts.resolve(tx, workspace_id, target) is not None:
        return
    there = await hosts.list_names(tx, workspace_id, target.kind)
    raise Invalid(
        f"There is no {target.words}.", pointer=f"/target/{target.kind.value}", hint=_hint(target, there)
    )


async def why_away(tx: Tx, workspace_id: WorkspaceId, target: Target, job: Job) -> str | None:
    """Say why nothing can run there now; None when the host is online."""
    host = await hosts.resolve(tx, workspace_id, target)
    if host is not None and host.sighting.status(tx.now) is HostStatus.ONLINE:
        return None
    clause = away(job, target, None if host is None else (host.name, host.sighting))
    return f"{clause[0].upper()}{clause[1:]}."


def _hint(target: Target, there: list[str]) -> str:
    if close := get_close_matches(target.name, there, n=1, cutoff=0.6):
        return f'Did you mean "{close[0]}"?'
    if there:
        more = ", …" if len(there) > NAMED else ""
        return f"There are {', '.join(there[:NAMED])}{more}."
    if target.kind is TargetKind.HOST:
        return "A host appears when `foliot host` starts on it."
    return "A server appears when a host registers it, or a member adds it to one."


async def check_host_quota(tx: Tx, workspace_id: WorkspaceId, quotas: Quotas) -> None:
    """Check the quotas after the insert, only of what has grown. A lock makes writers wait for each other, so that two cannot
    take the last place.
    """
    if quotas.hosts is None and quotas.servers is None:
        return
    await workspaces.lock_quota(tx)
    machines, servers = await hosts.count(tx, workspace_id)
    check_hosts(quotas, machines)
    check_servers(quotas, servers)
