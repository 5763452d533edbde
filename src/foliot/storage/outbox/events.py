"""Events as rows. They are written by the statements that do things, for workspaces that somebody watches; here they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from foliot.domain.ids import JobId, PrincipalId, RunId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


class EventPosition(NamedTuple):
    """Everything up to and with this has been seen: a transaction's number, and a place in it."""

    xid: int
    seq: int = 0


class TransactionBounds(NamedTuple):
    safe: int  # transactions with a lower number are over
    next: int  # who begins after this look gets this number or a higher one


@dataclass(frozen=True, slots=True)
class EventFilter:
    """`kinds` are whole ones, such as run.failed, or nouns."""

    kinds: tuple[str, ...] = ()
    job_id: JobId | None = None
    visible_owner: PrincipalId | None = None


@dataclass(frozen=True, slots=True)
class EventRow:
    place: EventPosition
    at: datetime
    kind: str
    object_id: UUID | None
    job_id: JobId | None
    job_name: str | None
    run_id: RunId | None
    attempt: int | None
    actor: str | None
    number: int | None
    planned_for: datetime | None
    skip_reason: str | None
    error_code: str | None


async def watch(tx: Tx, until: datetime, lapsed: datetime) -> int:
    """Keep events for this workspace; answers with the number since which none is missing."""
    params = {"workspace_id": tx.workspace_id, "until": until, "lapsed": lapsed}
    row = await tx.fetch_one(sql.events.watch, params)
    assert row is not None
    since: int = row["since"]
    return since


async def load_bounds(tx: Tx) -> TransactionBounds:
    row = await tx.fetch_one(sql.events.ends)
    assert row is not None
    return TransactionBounds(row["safe"], row["next"])


async def list_after(
    tx: Tx, place: EventPosition, safe: int, wanted: EventFilter, limit: int
) -> Sequence[EventRow]:
    params = {
        "workspace_id": tx.workspace_id,
        "xid": place.xid,
        "seq": place.seq,
        "safe": safe,
        "kinds": list(wanted.kinds) or None,
        "job_id": wanted.job_id,
        "owner_id": wanted.visible_owner,
        "limit": limit,
    }
    return [
        EventRow(
            EventPosition(row["xid"], row["seq"]),
            row["at"],
            row["kind"],
            row["object_id"] and UUID(row["object_id"]),
            row["job_id"],
            row["job_name"],
            row["run_id"],
            row["attempt"],
            row["actor"],
            row["number"],
            row["planned_for"],
            row["skip_reason"],
            row["error_code"],
        )
        for row in await tx.fetch(sql.events.after, params)
    ]


async def prune(tx: Tx, before: datetime, limit: int) -> int:
    row = await tx.fetch_one(sql.events.prune, {"before": before, "limit": limit})
    await tx.execute(sql.events.forget, {"before": before})
    return int(row["gone"]) if row else 0
