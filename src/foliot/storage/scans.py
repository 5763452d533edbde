"""Scans of large tables in short transactions. The position of each scan is stored, so a step continues where the last one ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from foliot.storage.queries import sql
from foliot.storage.tx import Tx

START = UUID(int=0)


class Scan(StrEnum):
    ROLL_UP = "roll_up"  # over runs, by id: their totals per day
    PRUNE = "prune"  # over jobs, by id
    TIMERS = "timers"  # over timers, by job id: checks each
    RUNS = "runs"  # over open runs, by id: checks that the timer counts each
    ZONE_DATA = "zone_data"  # over timers, after a change of the zone data


@dataclass(frozen=True, slots=True)
class ScanPosition:
    position: UUID
    mark: str | None


async def lock_position(tx: Tx, which: Scan) -> ScanPosition | None:
    """Lock the scan's position until the transaction ends; None if another node has it."""
    return await tx.fetch_one_as(ScanPosition, sql.scans.lock_position, {"name": which.value})


async def store_position(tx: Tx, which: Scan, position: UUID, mark: str | None = None) -> None:
    await tx.execute(sql.scans.store_position, {"name": which.value, "position": position, "mark": mark})
