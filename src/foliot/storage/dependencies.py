"""Dependencies: the edges of jobs with what their upstreams have done, and the marks of what was used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foliot.domain.dependencies import Consumed, Dependencies, Edge, EdgeFacts, Ended, Mode, On, When
from foliot.domain.ids import JobId
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


async def facts(tx: Tx, whens: Mapping[JobId, When]) -> dict[JobId, Dependencies]:
    """Each job's dependencies; `whens` says for each whether all edges or any must be satisfied."""
    if not whens:
        return {}
    edges: dict[JobId, list[EdgeFacts]] = {}
    for row in await tx.fetch(sql.dependencies.facts, {"job_ids": list(whens)}):
        edges.setdefault(row["job_id"], []).append(_edge(row))
    return {job_id: Dependencies(tuple(found), whens[job_id]) for job_id, found in edges.items()}


async def consume(tx: Tx, consumed: Sequence[tuple[JobId, Consumed]]) -> None:
    if not consumed:
        return
    await tx.execute(
        sql.dependencies.consume,
        {
            "job_ids": [job_id for job_id, _ in consumed],
            "upstream_ids": [mark.upstream for _, mark in consumed],
            "run_ids": [mark.run_id for _, mark in consumed],
        },
    )


def _edge(row: Row) -> EdgeFacts:
    on = On(row["on"])
    success, failure = _ended(row, "success"), _ended(row, "failure")
    newest = max((end for end in (success, failure) if end is not None), key=lambda end: end.at, default=None)
    return EdgeFacts(
        edge=Edge(row["upstream_id"], on, Mode(row["mode"]), row["delay"], row["max_age"]),
        latest={On.SUCCESS: success, On.FAILURE: failure, On.ANY: newest}[on],
        consumed_run_id=row["consumed_run_id"],
        upstream_is_live=row["is_live"],
        upstream_has_run=row["has_run"],
    )


def _ended(row: Row, kind: str) -> Ended | None:
    run_id = row[f"last_{kind}_run_id"]
    return None if run_id is None else Ended(run_id, row[f"last_{kind}_at"])
