"""Rounds: long walks over a table in short transactions. How far one has come is kept, so no step begins from the start."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from foliot.storage.queries import sql
from foliot.storage.tx import Tx

START = UUID(int=0)


class Scan(StrEnum):
    ROLL_UP = "roll_up"  # over runs, by id: counted into daily
    PRUNE = "prune"  # over jobs, by id
    TIMERS = "timers"  # over timers, by job id: is each where it should be?
    RUNS = "runs"  # over open runs, by id: does the timer know of each?
    ZONE_DATA = "zone_data"  # over timers, whenever the zone data changes


@dataclass(frozen=True, slots=True)
class ScanPosition:
    position: UUID
    mark: str | None


async def lock_position(tx: Tx, which: Scan) -> ScanPosition | None:
    """The right to go on until the end of this transaction; None where another node has it."""
    row = await tx.fetch_one(sql.scans.take, {"name": which.value})
    return None if row is None else ScanPosition(**row)


async def store_position(tx: Tx, which: Scan, position: UUID, mark: str | None = None) -> None:
    await tx.execute(sql.scans.leave, {"name": which.value, "position": position, "mark": mark})
