"""Remove a member, and archive its jobs or hand them over to another member.

Why: docs/decisions/607-owners-of-jobs.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from foliot.domain.bulk import JobAction
from foliot.domain.errors import Conflict, Invalid
from foliot.domain.filters import Query
from foliot.domain.ids import PrincipalId
from foliot.services.identity.authentication import Caller
from foliot.services.identity.member_steps import ChangedMember, MemberChanges, change_in
from foliot.services.jobs import bulk
from foliot.services.jobs.owner_steps import require_member
from foliot.storage.jobs import job_search
from foliot.storage.jobs.job_search import JobFilter
from foliot.storage.tx import Database, Role

_ACTIONS = {"archive": JobAction.ARCHIVE, "hand_over": JobAction.HAND_OVER}
SHOWN_FAILURES = 3


class JobsOfMember(StrEnum):
    """The fate of the jobs of a removed member."""

    ARCHIVE = "archive"
    HAND_OVER = "hand_over"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class RemovedMember:
    changed: ChangedMember
    jobs: int = 0  # archived or handed over


async def remove(
    database: Database,
    caller: Caller,
    principal_id: PrincipalId,
    fate: JobsOfMember | None = None,
    to: str | None = None,
) -> RemovedMember:
    """Deactivate the member, revoke its keys, and then archive its jobs or hand them over to `to`.

    An agent with jobs needs a choice. The member is inactive before its jobs are moved, so it creates no more of them; after a
    crash in between, a repeat continues. The name stays: the audit and its jobs refer to it.
    """
    if (fate is JobsOfMember.HAND_OVER) != (to is not None):
        raise Invalid(
            "The new owner and jobs=hand_over need each other.", pointer="/to", hint="jobs=hand_over&to=NAME."
        )
    async with database.tx(Role.APP, caller.workspace_id) as tx:
        # This locks the member and the administrators, in the order of ids. The new owner comes after: it may be one of them.
        changed = await change_in(tx, caller, principal_id, MemberChanges(is_active=False))
        member = changed.member
        new_owner = None if to is None else await require_member(tx, to, "/to")
        found = await job_search.find_ids(tx, JobFilter(Query(), principal_id), bulk.MOST)
        if found and fate is None and member.principal.is_agent:
            raise Conflict(
                f"{member.principal.name} owns {len(found):,} {'job' if len(found) == 1 else 'jobs'}.",
                hint="Choose: jobs=archive, jobs=hand_over&to=NAME, or jobs=keep.",
            )
    if not found or fate in (None, JobsOfMember.KEEP):
        return RemovedMember(changed)
    order = bulk.BulkOrder(
        _ACTIONS[fate.value], owner=None if new_owner is None else str(new_owner.principal.id)
    )
    scope = replace(caller.scope, actor=replace(caller.actor, claim=None))  # the removal has closed the claim
    done = await bulk.act(database, scope, bulk.BulkTarget(ids=tuple(found)), order)
    if done.tally.failed or done.remaining:
        raise _unfinished(done)
    return RemovedMember(changed, done.tally.done)


def _unfinished(done: bulk.BulkProgress) -> Conflict:
    errors = [each.error.message for each in done.listed if each.error is not None]
    left = done.remaining + done.tally.failed
    return Conflict(
        f"The member is removed, and {left:,} of its jobs are left: {' '.join(errors[:SHOWN_FAILURES])}".rstrip(
            " :"
        ),
        hint="Send the same request again for the rest, or change these jobs one by one.",
    )
