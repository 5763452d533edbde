"""How lists of runs are asked for: `q`, and the same as plain parameters."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from foliot.domain.filters import LONGEST, read_parameters, read_query
from foliot.domain.filters.fields import RUNS
from foliot.domain.lifecycle import RunStatus
from foliot.domain.run import Trigger
from foliot.domain.schedule import SkipReason, load_zone
from foliot.services.runs.history import RunFilter
from foliot.web.auth import Viewer

_ANY = "Any of these."
_WHEN = "`24h`, `2026-11-01` (a day of the workspace's zone) or `2026-11-01T09:00:00Z`."
_FILTER = f"A filter such as `status:failed tag:billing since:24h`. Fields: {', '.join(RUNS.names)}; other words are looked for in the job's name."


async def _run_query(
    caller: Viewer,
    q: Annotated[str | None, Query(max_length=LONGEST, description=_FILTER)] = None,
    status: Annotated[list[RunStatus], Query(description=_ANY)] = [],  # noqa: B006  # FastAPI copies them
    trigger: Annotated[list[Trigger], Query(description=_ANY)] = [],  # noqa: B006
    skip_reason: Annotated[list[SkipReason], Query(description=_ANY)] = [],  # noqa: B006
    job: Annotated[list[str], Query(description="Ids of jobs; those of one job come by planned time.")] = [],  # noqa: B006
    worker: Annotated[list[str], Query(description="An id, or the name of a worker that is alive.")] = [],  # noqa: B006
    queue: Annotated[list[str], Query(description="That its job has now. Any of these.")] = [],  # noqa: B006
    type: Annotated[list[str], Query(description="That its job has now. Any of these.")] = [],  # noqa: A002, B006
    tag: Annotated[list[str], Query(description="That its job has now. Any of these.")] = [],  # noqa: B006
    since: Annotated[list[str], Query(description=f"Planned since: {_WHEN}")] = [],  # noqa: B006
    until: Annotated[
        list[str], Query(description=f"Planned until, that instant or day included: {_WHEN}")
    ] = [],  # noqa: B006
) -> RunFilter:
    given = {
        "status": [each.value for each in status],
        "trigger": [each.value for each in trigger],
        "reason": [each.value for each in skip_reason],
        "job": job,
        "worker": worker,
        "queue": queue,
        "type": type,
        "tag": tag,
        "since": since,
        "until": until,
    }
    zone = load_zone(caller.workspace.default_timezone)
    query = read_query(q or "", RUNS, caller.at, zone) & read_parameters(given, RUNS, caller.at, zone)
    return RunFilter(query)


RunQuery = Annotated[RunFilter, Depends(_run_query)]
