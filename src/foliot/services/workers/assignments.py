"""What a claimed run asks its worker to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from foliot.domain.ids import WorkspaceId
from foliot.domain.outcomes import Failed
from foliot.domain.run import RunError, effective_input
from foliot.domain.secret_references import may_refer, names
from foliot.services.secrets.reference_steps import resolve
from foliot.services.secrets.vault import Vault
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Claimer, claim_and, queues_in_turn
from foliot.storage.queue import claims
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database, Tx
from foliot.storage.workers.workers import ANY_QUEUE

__all__ = ["Claimed", "Found", "Work", "claim_work"]


class Work(NamedTuple):
    """`left` is what the attempt may still take, by the database's clock at the moment of loading.

    `config` holds the values of secrets where the job names them; `masks` are these values, to be taken out of whatever is shown.
    """

    claimed: Claimed
    job: str
    config: dict[str, Any]
    input: dict[str, Any]
    left: timedelta
    masks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Work({self.claimed!r})"  # whoever prints it does not mean to print secrets


class Found(NamedTuple):
    """The work, and the claims whose job has been removed meanwhile."""

    work: list[Work]
    orphans: list[Claimed]


async def claim_work(database: Database, claimer: Claimer, vault: Vault | None = None) -> Found:
    """Runs to be done, with what is to be done in them. Those whose secrets cannot be had end here as failed attempts."""
    if claimer.queue != ANY_QUEUE:
        found = await claim_and(_load, database, claimer) or Found([], [])
        for each in found.work:
            if may_refer(each.config):
                return Found(await _with_secrets(database, claimer, vault, found.work), found.orphans)
        return found
    turns, found = claimer.turns, Found([], [])
    if known := turns.known():
        found = await _from_queues(database, known, claimer, vault)
    if not found.work:
        turns.remember(await queues_in_turn(database, turns, claimer.workspace_id))
        found = await _from_queues(database, turns.known(), claimer, vault)
    if len(found.work) < claimer.permits:
        turns.forget()
    return found


async def _from_queues(
    database: Database, queues: Sequence[str], claimer: Claimer, vault: Vault | None
) -> Found:
    found = Found([], [])
    for queue in queues:
        left = claimer.permits - len(found.work) - len(found.orphans)
        if left > 0:
            more = await claim_work(database, replace(claimer, queue=queue, permits=left), vault)
            found = Found(found.work + more.work, found.orphans + more.orphans)
            claimer.turns.queue = queue
    return found


async def _load(tx: Tx, claimed: Sequence[Claimed]) -> Found:
    jobs, inputs = await claims.jobs_of_runs(tx, claimed), await claims.inputs_of_runs(tx, claimed)
    found = Found([], [])
    for each in claimed:
        if (job := jobs.get(each.job_id)) is None:
            found.orphans.append(each)
            continue
        given = effective_input(job.payload or {}, inputs.get(each.run_id) if inputs else None)
        found.work.append(Work(each, job.name, job.config or {}, given, each.deadline_at - tx.now))
    return found


async def _with_secrets(
    database: Database, claimer: Claimer, vault: Vault | None, found: list[Work]
) -> list[Work]:
    """After the claim, which acts for all workspaces and may not see secrets: a transaction in each that names some."""
    naming: dict[WorkspaceId, list[int]] = {}
    for place, each in enumerate(found):
        if names(each.config):
            naming.setdefault(each.claimed.workspace_id, []).append(place)
    refused: dict[int, RunError] = {}
    for workspace_id, places in naming.items():
        answers = await resolve(database, vault, workspace_id, [found[place].config for place in places])
        for place, answer in zip(places, answers, strict=True):
            if isinstance(answer, RunError):
                refused[place] = answer
            else:
                found[place] = found[place]._replace(config=answer.config, masks=answer.masks)
    if refused:
        await report(database, [_failed(claimer, found[place], why) for place, why in refused.items()])
    return [each for place, each in enumerate(found) if place not in refused]


def _failed(claimer: Claimer, each: Work, why: RunError) -> Report:
    claimed = each.claimed
    return Report(claimed.run_id, claimed.job_id, claimed.fence, claimer.worker_id, Failed(why))
