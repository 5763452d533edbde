"""Read the progress of running attempts: a column of their leases. `run_queue.set_progress` writes it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from foliot.domain.ids import RunId
from foliot.domain.progress import Progress
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


async def of_runs(tx: Tx, run_ids: Collection[RunId]) -> dict[RunId, Progress]:
    rows = await tx.fetch(sql.progress.of_runs, {"run_ids": list(run_ids)})
    return {row["run_id"]: _progress(*row["progress"]) for row in rows}


def _progress(done: float, total: float, note: str, at: str) -> Progress:
    return Progress(done, total, note, datetime.fromisoformat(at))
