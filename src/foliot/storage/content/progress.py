"""How far runs under way are: a column of their leases, gone with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from psycopg.types.json import Jsonb

from foliot.domain.ids import RunId
from foliot.domain.progress import Progress
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


async def tell(tx: Tx, told: Mapping[tuple[RunId, int], Progress]) -> None:
    """By run and fence."""
    await tx.execute(
        sql.progress.tell,
        {
            "run_ids": [run_id for run_id, _ in told],
            "fences": [fence for _, fence in told],
            "progresses": [
                Jsonb([each.done, each.total, each.note, each.at.isoformat()]) for each in told.values()
            ],
        },
    )


async def of_runs(tx: Tx, run_ids: Collection[RunId]) -> dict[RunId, Progress]:
    rows = await tx.fetch(sql.progress.of_runs, {"run_ids": list(run_ids)})
    return {row["run_id"]: _progress(*row["progress"]) for row in rows}


def _progress(done: float, total: float, note: str, at: str) -> Progress:
    return Progress(done, total, note, datetime.fromisoformat(at))
