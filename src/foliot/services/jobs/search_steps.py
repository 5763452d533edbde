"""Turn a query into a filter for storage: apply the scope, and replace owner names and `me` by ids."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from foliot.domain.access import Scope
from foliot.domain.filters import Query, Term
from foliot.domain.ids import PrincipalId
from foliot.storage.jobs import job_search
from foliot.storage.jobs.job_search import JobFilter
from foliot.storage.tx import Tx

ME = "me"


async def resolve_owner_terms(tx: Tx, query: Query, scope: Scope) -> JobFilter:
    names = {value.lower() for term in query.of("owner") for value in term.values if isinstance(value, str)}
    if names:
        known = await job_search.find_owners(tx, names - {ME})
        query = Query(
            tuple(_owned(term, known, scope) if term.field == "owner" else term for term in query.terms)
        )
    return JobFilter(query, scope.visible_owner)


def _owned(term: Term, known: list[tuple[str, PrincipalId]], scope: Scope) -> Term:
    """Replace names by ids. An unknown name matches nothing."""
    found: set[UUID] = set()
    me = scope.actor.principal_id
    for value in term.values:
        if isinstance(value, UUID):
            found.add(value)
        elif isinstance(value, str) and value.lower() == ME:
            found |= set() if me is None else {me}
        elif isinstance(value, str):
            found |= {owner for name, owner in known if name == value.lower()}
    return replace(term, values=tuple(sorted(found)))
