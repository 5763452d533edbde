"""Find the owner of a job by name, and check who may name one.

Why: docs/decisions/607-owners-of-jobs.md
"""

from __future__ import annotations

from foliot.domain.access import Scope
from foliot.domain.errors import Denied, Invalid
from foliot.domain.ids import PrincipalId
from foliot.storage.identity import members
from foliot.storage.identity.members import Member
from foliot.storage.tx import Tx

ME = "me"


async def resolve_owner(
    tx: Tx, scope: Scope, given: str | None, current: PrincipalId | None
) -> PrincipalId | None:
    """Return the owner that a job gets: the member of this name, id or address; without one, the current owner.

    The member's row stays locked, so that its removal waits and then finds this job. An agent owns its own jobs only.
    """
    if scope.visible_owner is not None:
        return await _own(tx, scope.visible_owner, given)
    if given is None or given == str(current):
        return current
    if given.lower() in {
        ME,
        str(scope.actor.principal_id),
    }:  # an administrator of the installation is not a member
        return scope.actor.principal_id
    return (await require_member(tx, given)).principal.id


async def require_member(tx: Tx, given: str, pointer: str = "/owner") -> Member:
    """Find one active member by name, id or address, and lock it against removal."""
    found = [each for each in await members.lock_shared(tx, given) if each.is_active]
    if not found:
        raise Invalid(
            f'There is no member "{given}".', pointer=pointer, hint="`foliot members list` has their names."
        )
    if len(found) > 1:
        ids = ", ".join(str(each.principal.id) for each in found)
        raise Invalid(f'Several members are called "{given}".', pointer=pointer, hint=f"Use an id: {ids}.")
    return found[0]


async def _own(tx: Tx, agent: PrincipalId, given: str | None) -> PrincipalId:
    found = next((each for each in await members.lock_shared(tx, str(agent)) if each.is_active), None)
    if found is None:
        raise Denied("This agent was removed.")
    if given is not None and given.lower() not in {ME, str(agent), found.principal.name.lower()}:
        raise Denied("An agent owns its own jobs only.", pointer="/owner", hint="Leave it out.")
    return agent
