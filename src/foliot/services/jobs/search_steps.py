"""From what somebody asks for to what the tables are asked: whose jobs, and who `me` and a name are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from foliot.domain.filters import Query, Term
from foliot.domain.ids import PrincipalId
from foliot.storage.jobs import job_search
from foliot.storage.jobs.job_search import Wanted
from foliot.storage.tx import Tx

ME = "me"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who looks for jobs. One with `only_own` finds its own alone, whatever it asks for."""

    id: PrincipalId | None = None
    only_own: bool = False

    @property
    def only_owner(self) -> PrincipalId | None:
        return self.id if self.only_own else None


NOBODY = Asker()


async def wanted(tx: Tx, query: Query, asker: Asker) -> Wanted:
    names = {value.lower() for term in query.of("owner") for value in term.values if isinstance(value, str)}
    if names:
        known = await job_search.owners(tx, names - {ME})
        query = Query(
            tuple(_owned(term, known, asker) if term.field == "owner" else term for term in query.terms)
        )
    return Wanted(query, asker.only_owner)


def _owned(term: Term, known: list[tuple[str, PrincipalId]], asker: Asker) -> Term:
    """The same term with ids for names; a name that nobody has finds nothing."""
    found: set[UUID] = set()
    for value in term.values:
        if isinstance(value, UUID):
            found.add(value)
        elif isinstance(value, str) and value.lower() == ME:
            found |= {asker.id} if asker.id is not None else set()
        elif isinstance(value, str):
            found |= {owner for name, owner in known if name == value.lower()}
    return replace(term, values=tuple(sorted(found)))
