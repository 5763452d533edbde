"""References from jobs and webhooks to secrets, checked when they are written.

Why: docs/decisions/711-secret-resolution.md
"""

from __future__ import annotations

from collections.abc import Sequence

from foliot.domain.access import Principal, Scope
from foliot.domain.definition import Definition
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId
from foliot.domain.secret_references import Reference, names, references
from foliot.storage.content import secrets
from foliot.storage.identity import members
from foliot.storage.tx import Tx
from foliot.wire.shape import did_you_mean

MOST_KNOWN = 1_000  # names to compare for a suggestion


async def write_references(
    tx: Tx, job_id: JobId, definition: Definition, scope: Scope, before: Definition | None = None
) -> None:
    """Check and store the secrets that a job names, after the job. Refuse unknown ones, and those not given to the agent who
    writes the job or gets it.

    An unchanged reference is not checked again, unless the job now sends it elsewhere: another type, host, queue or owner.
    """
    if before is not None and _sends(before) == _sends(definition):
        return
    found = list(references(definition.config))
    if found:
        await check_named(tx, found, "/config", scope)
        if scope.visible_owner is None and (agent := await _agent_of(tx, definition, before)) is not None:
            await _check_given(tx, found, agent)
    if found or (before is not None and names(before.config)):
        await secrets.link(tx, job_id, {each.name for each in found})


async def check_named(tx: Tx, found: Sequence[Reference], root: str, scope: Scope) -> None:
    """Refuse names of secrets that do not exist or are not given to this agent. `root` prefixes the pointers."""
    there = await secrets.lock_names(tx, {each.name for each in found})
    agent = scope.visible_owner
    usable = {name for name, agents in there.items() if agent is None or agent in agents}
    missing = [each for each in found if each.name not in usable]
    if not missing:
        return
    known = await secrets.list_names(tx, agent, MOST_KNOWN)
    faults = [_no_such(each, known, root) for each in missing]
    if len(faults) == 1:
        raise faults[0]
    raise Invalid(f"{len(faults)} secrets do not exist.", parts=tuple(faults))


def _sends(definition: Definition) -> tuple[object, ...]:
    """Return the part of a definition that decides which values go where."""
    spec = definition.spec
    return definition.config, spec.type, spec.target, spec.queue, definition.owner_id


async def _agent_of(tx: Tx, definition: Definition, before: Definition | None) -> Principal | None:
    """Return the agent that the job is given to; None for other owners, and where the owner stays."""
    owner = definition.owner_id
    if owner is None or (before is not None and before.owner_id == owner):
        return None
    found = await members.find(tx, owner)
    return found.principal if found is not None and found.principal.is_agent else None


async def _check_given(tx: Tx, found: Sequence[Reference], agent: Principal) -> None:
    """Refuse to give an agent a job that names secrets which were not given to it: the agent could run it with other input."""
    there = await secrets.lock_names(tx, {each.name for each in found})
    for each in found:
        if agent.id not in there[each.name]:
            raise Invalid(
                f'The agent {agent.name} was not given the secret "{each.name}".',
                pointer=f"/config{each.pointer}",
                hint=f"An administrator gives it: `foliot secrets give {each.name} {agent.name}`.",
            )


def _no_such(wanted: Reference, known: list[str], root: str) -> Invalid:
    shown = wanted.name if len(wanted.name) <= 100 else wanted.name[:97] + "..."
    return Invalid(
        f'There is no secret "{shown}" in this workspace.',
        pointer=f"{root}{wanted.pointer}",
        hint=did_you_mean(wanted.name, known) or "An administrator can create it with `foliot secrets set`.",
    )
