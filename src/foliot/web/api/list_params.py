"""How lists are asked for: `q`, the same as plain parameters, the order, the count."""

from __future__ import annotations

from typing import Annotated, TypeVar

from fastapi import Depends, Query

from foliot.domain.filters import LONGEST, read_parameters, read_query
from foliot.domain.filters import Query as Found
from foliot.domain.filters.fields import JOBS
from foliot.domain.filters.order import JobOrder, read_order
from foliot.domain.lifecycle import JobStatus
from foliot.domain.schedule import load_zone
from foliot.services.identity.authentication import Caller
from foliot.web.auth import Viewer
from foliot.wire.pages import CountedPage, Page
from foliot.wire.shape import Shape

Item = TypeVar("Item", bound=Shape)
_ANY = "Any of these."
_FILTER = f"A filter such as `status:failed tag:billing since:24h`. Fields: {', '.join(JOBS.names)}; other words are looked for in the name."


def reading(q: str | None, caller: Caller) -> Found:
    """What `q` asks of jobs; days are those of the workspace."""
    return read_query(q or "", JOBS, caller.at, load_zone(caller.workspace.default_timezone))


async def _job_query(
    caller: Viewer,
    q: Annotated[str | None, Query(max_length=LONGEST, description=_FILTER)] = None,
    status: Annotated[list[JobStatus], Query(description=f"{_ANY} Archived ones only when named.")] = [],  # noqa: B006
    tag: Annotated[list[str], Query(description=_ANY)] = [],  # noqa: B006  # FastAPI copies them
    type: Annotated[list[str], Query(description=_ANY)] = [],  # noqa: A002, B006  # the name on the wire
    queue: Annotated[list[str], Query(description=_ANY)] = [],  # noqa: B006
    owner: Annotated[list[str], Query(description="An id, a name, or `me`.")] = [],  # noqa: B006
    name: Annotated[list[str], Query(description="Something in its name.")] = [],  # noqa: B006
    since: Annotated[list[str], Query(description="Created since: `24h`, `2026-11-01`.")] = [],  # noqa: B006
    until: Annotated[list[str], Query(description="Created until, that day included.")] = [],  # noqa: B006
) -> Found:
    given = {
        "status": [each.value for each in status],
        "tag": tag,
        "type": type,
        "queue": queue,
        "owner": owner,
        "name": name,
        "since": since,
        "until": until,
    }
    zone = load_zone(caller.workspace.default_timezone)
    return reading(q, caller) & read_parameters(given, JOBS, caller.at, zone)


async def _order(
    sort: Annotated[
        str,
        Query(
            max_length=40,
            description="`created_at`, `name` or `next_run_at`; a minus before it turns the order round.",
            json_schema_extra={"pattern": r"^-?(created_at|name|next_run_at)$"},
        ),
    ] = "-created_at",
) -> JobOrder:
    return read_order(sort)


JobQuery = Annotated[Found, Depends(_job_query)]
Order = Annotated[JobOrder, Depends(_order)]
Count = Annotated[bool, Query(description="Count them all, up to 10,000.")]


def page_of(
    items: list[Item], next_cursor: str | None, total: int | None, *, more: bool
) -> Page[Item] | CountedPage[Item]:
    if total is None:
        return Page(items=items, next_cursor=next_cursor)
    return CountedPage(items=items, next_cursor=next_cursor, total=total, more=more)
