"""Filters of notification rules: check one when its rule is written, and find the jobs of a batch that it means."""

from __future__ import annotations

from collections.abc import Collection

from foliot.domain.access import Scope
from foliot.domain.errors import Invalid, QueryInvalid
from foliot.domain.filters import Query, Term, read_query
from foliot.domain.filters.fields import JOBS
from foliot.domain.ids import JobId
from foliot.domain.schedule import load_zone
from foliot.services.jobs.search_steps import ME, resolve_owner_terms
from foliot.storage.identity import workspaces
from foliot.storage.jobs import job_search
from foliot.storage.tx import Tx


async def check_filter(tx: Tx, text: str) -> None:
    """Refuse a filter that cannot be read, and one that depends on who asks."""
    try:
        query = await _read(tx, text)
    except QueryInvalid as error:
        error.pointer = "/scope/q"
        raise
    for term in query.of("owner"):
        if any(isinstance(each, str) and each.lower() == ME for each in term.values):
            raise Invalid("A rule has no owner, so `me` means no one: name the owner.", pointer="/scope/q")


async def find_jobs_of(tx: Tx, text: str, job_ids: Collection[JobId]) -> frozenset[JobId]:
    """Return which of the jobs the filter finds now."""
    assert tx.workspace_id is not None
    query = await _read(tx, text) & Query((Term("id", tuple(job_ids)),))
    found = await resolve_owner_terms(tx, query, Scope(tx.workspace_id))
    return frozenset(await job_search.find_ids(tx, found, len(job_ids)))


async def _read(tx: Tx, text: str) -> Query:
    """Read the filter at this instant; days are those of the workspace's zone."""
    assert tx.workspace_id is not None
    home = await workspaces.get(tx, tx.workspace_id)
    return read_query(text, JOBS, tx.now, load_zone("UTC" if home is None else home.default_timezone))
