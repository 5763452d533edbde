"""Find things by the names that people type: a name, an id, the beginning of an id, or JOB#12 for a run.

Why: docs/decisions/803-names-on-the-command-line.md
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar
from uuid import UUID

import typer

from foliot.cli.output import escape_control
from foliot.domain.errors import Invalid, NotFound
from foliot.domain.ids import made_at

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.jobs import JobOut
    from foliot.wire.runs import RunOut

MIN_PREFIX = 4
MAX_LISTED = 10
MAX_NEAR = 3  # names in a hint
MAX_COMPARED = 200  # jobs, one page, whose names are compared with a name that no job has
_LISTS = {"notification rule": "notify rules list", "server": "hosts list"}  # commands with another name
CLOCK_SLACK = timedelta(minutes=1)  # between the time in an id and created_at of its row
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_PREFIX = re.compile(r"[0-9a-f][0-9a-f-]*", re.ASCII)
_NUMBERED = re.compile(r"(.+)#(\d{1,12})", re.DOTALL | re.ASCII)


class Identified(Protocol):
    @property
    def id(self) -> UUID: ...


Found = TypeVar("Found", bound=Identified)


def complete_job_name(incomplete: str) -> list[str]:
    """Complete a job name in the shell. Without a quick answer of the server, offer nothing."""
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
        help="Job name, id, or beginning of the id.",
        autocompletion=complete_job_name,
        show_default=False,
    ),
]
RunRef = Annotated[
    str, typer.Argument(metavar="RUN", help="Run id, or job and number: hello#12.", show_default=False)
]


def is_id(text: str) -> bool:
    return _ID.fullmatch(text.strip().lower()) is not None


def is_numbered_run(text: str) -> bool:
    return _NUMBERED.fullmatch(text) is not None


def name_not_found(ref: str, noun: str, known: Iterable[str | None] = ()) -> NotFound:
    """Return the error for a name that nothing has. Its hint is the near names among `known`, else where to list them."""
    command = _LISTS.get(noun, f"{noun}s list")
    near = find_near_names(ref, known)
    hint = (
        f"Did you mean {' or '.join(map(_quoted, near))}?" if near else f"List them with `foliot {command}`."
    )
    return NotFound(f"{noun.capitalize()} not found: {_quoted(ref)}.", hint=hint)


def find_near_names(ref: str, known: Iterable[str | None]) -> list[str]:
    """Return up to three names that are spelt like `ref`, or contain it; the nearest first."""
    from difflib import get_close_matches

    wanted = ref.strip().casefold()
    if not wanted:
        return []
    folded: dict[str, str] = {}
    for name in known:
        if name is not None:
            folded.setdefault(name.casefold(), name)
    near = get_close_matches(wanted, folded, n=MAX_NEAR, cutoff=0.6)
    near += [each for each in folded if wanted in each and each not in near]
    return [folded[each] for each in near[:MAX_NEAR]]


def pick_one(
    found: Sequence[Found],
    ref: str,
    noun: str,
    describe: Callable[[Found], str],
    known: Iterable[str | None] = (),
) -> Found:
    """Return the only match. Raise NotFound with near names of `known` for none; for several, Invalid with a list of them."""
    if len(found) == 1:
        return found[0]
    if not found:
        raise name_not_found(ref, noun, known)
    lines = [f"{each.id}  {escape_control(describe(each))}" for each in found[:MAX_LISTED]]
    more = ["and more"] if len(found) > MAX_LISTED else []
    count = "more than one" if more else f"{len(found)}"
    raise Invalid(
        f"{_quoted(ref)} matches {count} {noun}s.", hint="\n  ".join(["Use one of these ids:", *lines, *more])
    )


def find_named(items: Iterable[Found], ref: str, noun: str, name: Callable[[Found], str]) -> Found:
    """Return the item with this name; if there is none, the one whose id begins with it."""
    all_items = list(items)
    found = [each for each in all_items if name(each) == ref]
    prefix = ref.strip().lower()
    if not found and len(prefix) >= MIN_PREFIX:
        found = [each for each in all_items if str(each.id).startswith(prefix)]
    return pick_one(found, ref, noun, name, map(name, all_items))


def find_job(client: Client, ref: str) -> JobOut:
    """Raise NotFound for no match, and Invalid with a list for several."""
    from foliot.sdk.job_names import describe_for_choice

    prefix = ref.strip().lower()
    if is_id(prefix):
        return client.jobs.get(prefix)
    found = [job for job in client.jobs.each(name=[ref]) if job.name == ref] if ref.strip() else []
    if not found and len(prefix) >= MIN_PREFIX and _PREFIX.fullmatch(prefix):
        found = _jobs_by_id_prefix(client, prefix)
    if found:
        return pick_one(found, ref, "job", lambda job: f"{job.name}: {describe_for_choice(job)}")
    similar = client.jobs.list(name=[ref], limit=MAX_NEAR).items if ref.strip() else []
    newest = client.jobs.list(limit=MAX_COMPARED).items
    raise name_not_found(ref, "job", (job.name for job in (*similar, *newest)))


def find_archived_job(client: Client, ref: str) -> JobOut:
    """Find an archived job by its id or its name."""
    if is_id(ref):
        return client.jobs.get(ref.strip().lower())
    found = [job for job in client.jobs.each(name=[ref], status=["archived"]) if job.name == ref]
    if not found:
        hint = "List archived jobs with `foliot jobs list --status archived`."
        raise NotFound(f"Archived job not found: {_quoted(ref)}.", hint=hint)
    return pick_one(found, ref, "archived job", lambda job: f"archived {job.status_at:%Y-%m-%d %H:%M}Z")


def find_run(client: Client, ref: str) -> RunOut:
    """Find a run by its id, or by its job and number."""
    numbered = _NUMBERED.fullmatch(ref.strip())
    if numbered is None:
        return client.runs.get(ref.strip())
    job, number = find_job(client, numbered[1]), int(numbered[2])
    for run in client.jobs.each_run(job.id, q=f"number:{number}"):
        return client.runs.get(run.id)
    raise NotFound(
        f"Run not found: {_quoted(f'{job.name}#{number}')}.",
        hint=f'List the runs of the job with: foliot jobs history "{job.name}"',
    )


def principal_names(client: Client) -> dict[str, str]:
    """Return the names of visible principals by id."""
    me = client.me().principal
    return {str(me.id): me.name} | {str(member.id): member.name for member in client.members.each()}


def _jobs_by_id_prefix(client: Client, prefix: str) -> list[JobOut]:
    try:
        query = _creation_filter(prefix)
    except OverflowError:  # the prefix stands for a time beyond the calendar
        return []
    found = (job for job in client.jobs.each(q=query) if str(job.id).startswith(prefix))
    return list(islice(found, MAX_LISTED + 1))


def _creation_filter(prefix: str) -> str:
    """Return a filter for jobs created at the time that the prefix encodes: ids begin with their creation time."""
    digits = prefix.replace("-", "")
    first, last = (made_at(UUID(digits[:32].ljust(32, filler))) for filler in "0f")
    return f"since:{first - CLOCK_SLACK:%Y-%m-%dT%H:%M:%SZ} until:{last + CLOCK_SLACK:%Y-%m-%dT%H:%M:%SZ}"


def _quoted(name: str) -> str:
    return f'"{escape_control(name)}"'
