"""Jobs as people name them: by id, by the beginning of an id, or by name. Where several are meant, they are listed."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from foliot.cli.output import escape_control
from foliot.domain.errors import Invalid, NotFound
from foliot.domain.ids import made_at

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.jobs import JobOut

SHORTEST_PREFIX = 4
MOST_NAMED = 10
SLACK = timedelta(minutes=1)  # between the time in an id and the time of its record
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_PREFIX = re.compile(r"[0-9a-f][0-9a-f-]*", re.ASCII)


def complete_job_name(incomplete: str) -> list[str]:
    """Never in the way: where no server answers at once, nothing is offered."""
    from foliot.sdk import Client, FoliotApiError

    try:
        with Client(timeout=1, retries=0) as client:
            page = client.jobs.list(name=[incomplete] if incomplete else None, limit=50, sort="name")
    except FoliotApiError:
        return []
    return [job.name for job in page.items if job.name.startswith(incomplete)]


JobRef = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="Its id, the beginning of its id, or its name.",
        autocompletion=complete_job_name,
        show_default=False,
    ),
]


def find_job(client: Client, called: str) -> JobOut:
    """Raises NotFound for none, and Invalid, with a list of them, for several."""
    from foliot.sdk import NotFound as NoSuchJob

    low = called.strip().lower()
    if _ID.fullmatch(low):
        return client.jobs.get(low)
    named = [job for job in client.jobs.each(name=[called]) if job.name == called] if called.strip() else []
    if not named and len(low) >= SHORTEST_PREFIX and _PREFIX.fullmatch(low):
        named = _beginning_with(client, low)
    if len(named) > 1:
        raise _ambiguous(called, named)
    if named:
        return named[0]
    try:
        near = client.jobs.list(name=[called], limit=3) if called.strip() else None
    except NoSuchJob:
        near = None
    hint = "See them all with `foliot jobs list`."
    if near is not None and near.items:
        hint = f"Did you mean {' or '.join(_quoted(job.name) for job in near.items)}?"
    raise NotFound(f"There is no job called {_quoted(called)}.", hint=hint)


def principal_names(client: Client) -> dict[str, str]:
    """Names for the ids of principals, as far as they can be seen."""
    me = client.me().principal
    return {str(me.id): me.name} | {str(member.id): member.name for member in client.members.each()}


def _beginning_with(client: Client, prefix: str) -> list[JobOut]:
    try:
        then = _made_then(prefix)
    except OverflowError:  # a time so far ahead that no id begins so
        return []
    found = (job for job in client.jobs.each(q=then) if str(job.id).startswith(prefix))
    return list(islice(found, MOST_NAMED + 1))


def _made_then(prefix: str) -> str:
    """An id begins with the time of its making, so its beginning names a stretch of time: the server looks there alone."""
    digits = prefix.replace("-", "")
    first, last = (made_at(UUID(digits[:32].ljust(32, filler))) for filler in "0f")
    return f"since:{first - SLACK:%Y-%m-%dT%H:%M:%SZ} until:{last + SLACK:%Y-%m-%dT%H:%M:%SZ}"


def _ambiguous(called: str, jobs: list[JobOut]) -> Invalid:
    lines = [f"{job.id}  {job.status:<9}  {escape_control(job.name)}" for job in jobs[:MOST_NAMED]]
    more = ["and more"] if len(jobs) > MOST_NAMED else []
    return Invalid(
        f"{_quoted(called)} could be any of {len(jobs) if not more else 'many'} jobs.",
        hint="\n  ".join(["Use the id of one of these:", *lines, *more]),
    )


def _quoted(name: str) -> str:
    return f'"{escape_control(name)}"'


if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.runs import RunOut

RunRef = Annotated[
    str, typer.Argument(metavar="RUN", help="Its id, or its job and number: hello#12.", show_default=False)
]
_NUMBERED = re.compile(r"(.+)#(\d{1,12})", re.DOTALL | re.ASCII)


def find_run(client: Client, called: str) -> RunOut:
    """By id; or by its job and the number that lists show."""
    named = _NUMBERED.fullmatch(called.strip())
    if named is None:
        return client.runs.get(called.strip())
    job, number = find_job(client, named[1]), int(named[2])
    for run in client.jobs.each_run(job.id, q=f"number:{number}"):
        return client.runs.get(run.id)
    raise NotFound(
        f'"{job.name}" has no run #{number}.', hint=f'See them with foliot jobs history "{job.name}".'
    )
