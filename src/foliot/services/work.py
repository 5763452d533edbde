"""What a claimed run asks its worker to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from foliot.domain.ids import RunId
from foliot.domain.run import effective_input
from foliot.storage import work
from foliot.storage.leases import Claimed
from foliot.storage.tx import Database, Role


@dataclass(frozen=True, slots=True)
class Work:
    """`left` is what the attempt may still take, by the database's clock at the moment of loading."""

    claimed: Claimed
    job: str
    config: dict[str, Any]
    input: dict[str, Any]
    left: timedelta


async def load(database: Database, claimed: Sequence[Claimed]) -> tuple[list[Work], list[Claimed]]:
    """The work, and the claims whose job has been removed meanwhile."""
    async with database.tx(Role.ENGINE) as tx:
        rows = await work.load(tx, [RunId(each.run_id) for each in claimed])
        now = tx.now
    found = [
        Work(each, row.name, row.config, effective_input(row.payload, row.input), each.deadline_at - now)
        for each in claimed
        if (row := rows.get(each.run_id)) is not None
    ]
    return found, [each for each in claimed if each.run_id not in rows]
