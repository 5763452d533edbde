"""The standing runs of one job: those that no worker has. Needs the lock of its timer."""

from __future__ import annotations

from collections.abc import Sequence

from foliot.domain.definition import Spec
from foliot.domain.ids import RunId
from foliot.storage.queries import sql
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Params, Tx

_LOOKS = 2  # between two of them a claim may put a run in line at a cap, or a cap let one go


async def of_job(tx: Tx, row: TimerRow) -> list[RunId]:
    if not row.live + row.waiting:
        return []
    return [found["run_id"] for found in await tx.fetch(sql.standing.of_job, _place(row))]


async def redirect(tx: Tx, row: TimerRow, spec: Spec) -> None:
    """Where they go and how long they may take follow an edit; `row` is the timer before it."""
    if not row.live + row.waiting:
        return
    follows = {
        "new_queue": spec.queue,
        "type": spec.type,
        "priority": spec.priority,
        "timeout": spec.limits.timeout,
        "concurrency_key": spec.concurrency_key,
        "new_target": spec.target and spec.target.text,
        "read_only": spec.read_only,
    }
    for _ in range(_LOOKS):
        await tx.execute(sql.standing.redirect, {**_place(row), **follows})


async def hold_back(tx: Tx, row: TimerRow) -> int:
    """Scheduled ones wait in line again, whatever they were waiting for; answers with how many."""
    if not row.live:
        return 0
    params = {**_place(row), "deadline": row.rules.spec.limits.start_deadline}
    return sum([len(await tx.fetch(sql.standing.hold_back, params)) for _ in range(_LOOKS)])


async def put_back(tx: Tx, run_ids: Sequence[RunId]) -> None:
    """Ready again though their jobs are stopped: they wait at the head of the line."""
    if run_ids:
        await tx.execute(sql.standing.put_back, {"run_ids": list(run_ids)})


async def leased(tx: Tx, row: TimerRow) -> list[RunId]:
    """Its runs that some worker has."""
    return [found["run_id"] for found in await tx.fetch(sql.standing.leased, {"job_id": row.job_id})]


def _place(row: TimerRow) -> Params:
    spec = row.rules.spec
    return {
        "queue": spec.queue,
        "target": spec.target and spec.target.text,
        "workspace_id": row.workspace_id,
        "job_id": row.job_id,
    }
