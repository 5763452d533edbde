"""The row of this installation: its identity, its zone data, and the hold after a restore."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from foliot.storage.queries import sql
from foliot.storage.tx import Tx


class MissedChoice(StrEnum):
    """The treatment of planned times between a backup and its restore."""

    SKIP = "skip"
    CATCH_UP = "catch_up"


@dataclass(frozen=True, slots=True)
class Installation:
    id: UUID
    created_at: datetime
    tzdata_version: str | None
    held_at: datetime | None
    held_reason: str | None
    missed_choice: MissedChoice | None
    canary_key_id: str | None  # of the master key that sealed the canary; None before the first
    canary: bytes | None

    @property
    def is_held(self) -> bool:
        return self.held_at is not None


async def get(tx: Tx) -> Installation:
    return await tx.fetch_value(Installation, sql.installation.get)


async def get_held_reason(tx: Tx) -> str | None:
    """Return why nothing fires; None while the installation fires."""
    return await tx.fetch_one_as(str, sql.installation.get_held_reason)


async def lock(tx: Tx) -> None:
    await tx.fetch_one(sql.installation.lock)


async def set_canary(tx: Tx, key_id: str, canary: bytes) -> None:
    await tx.execute(sql.installation.set_canary, {"key_id": key_id, "canary": canary})


async def set_tzdata_version(tx: Tx, version: str) -> None:
    await tx.execute(sql.installation.set_tzdata_version, {"version": version})


async def hold(tx: Tx, reason: str) -> None:
    await tx.execute(sql.installation.hold, {"reason": reason})


async def release(tx: Tx, choice: MissedChoice) -> bool:
    """End the hold; return False without one."""
    return await tx.execute(sql.installation.release, {"choice": choice.value}) == 1
