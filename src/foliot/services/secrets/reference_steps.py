"""Jobs that name secrets: may they, when they are written; and with values in the places of names, when they run.

Why: docs/decisions/711-secret-resolution.md
"""

from __future__ import annotations

from collections.abc import Sequence

from foliot.domain.access import Scope
from foliot.domain.definition import Definition
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId
from foliot.domain.secret_references import Reference, names, references
from foliot.storage.content import secrets
from foliot.storage.tx import Tx
from foliot.wire.shape import did_you_mean

MOST_KNOWN = 1_000  # names among which to look for the one that was meant


async def write_references(
    tx: Tx, job_id: JobId, definition: Definition, scope: Scope, before: Definition | None = None
) -> None:
    """After the job itself. Refuses the names of secrets that are not there, or that were not given to the agent who writes.

    A job that stays as it was is not asked about again: what became of its secrets shows when it runs. One that goes elsewhere with
    them, to another type, host or queue, is.
    """
    if before is not None and _sends(before) == _sends(definition):
        return
    found = list(references(definition.config))
    if found:
        await check_named(tx, found, "/config", scope)
    if found or (before is not None and names(before.config)):
        await secrets.link(tx, job_id, {each.name for each in found})


async def check_named(tx: Tx, found: Sequence[Reference], root: str, scope: Scope) -> None:
    """Refuses the names of secrets that are not there, or not for this agent. `root` is where the references count from."""
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
    raise Invalid(f"{len(faults)} secrets are not there.", parts=tuple(faults))


def _sends(definition: Definition) -> tuple[object, ...]:
    """What goes out when it runs, and to whom."""
    spec = definition.spec
    return definition.config, spec.type, spec.target, spec.queue


def _no_such(wanted: Reference, known: list[str], root: str) -> Invalid:
    shown = wanted.name if len(wanted.name) <= 100 else wanted.name[:97] + "..."
    return Invalid(
        f'There is no secret "{shown}" in this workspace.',
        pointer=f"{root}{wanted.pointer}",
        hint=did_you_mean(wanted.name, known) or "An administrator makes it first: `foliot secrets set`.",
    )
