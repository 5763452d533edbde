"""What there is to do in a claimed run: its job's configuration and payload, and the input it was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foliot.domain.ids import RunId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class WorkRow:
    name: str
    config: dict[str, Any]
    payload: dict[str, Any]
    input: Any


async def load(tx: Tx, run_ids: Sequence[RunId]) -> dict[RunId, WorkRow]:
    rows = await tx.fetch(sql.work.load, {"run_ids": list(run_ids)})
    return {
        row["run_id"]: WorkRow(row["name"], row["config"] or {}, row["payload"] or {}, row["input"])
        for row in rows
    }
