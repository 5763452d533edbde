"""The parts that all tools share: how a method becomes a tool, the parameters that several have, and how jobs, runs and rooms are found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Annotated, Any, ParamSpec, TypeVar
from uuid import UUID

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import Field

from foliot.mcp.answers import Answer, NextTime, result
from foliot.sdk import AsyncClient, FoliotApiError
from foliot.wire.instants import read_id
from foliot.wire.jobs import JobOut
from foliot.wire.rooms import RoomOut
from foliot.wire.schedules import PlannedOut

P = ParamSpec("P")
A = TypeVar("A", bound=Answer)
LARGEST_PAGE = 20
Connect = Callable[[Context], AbstractAsyncContextManager[AsyncClient]]

JobRef = Annotated[str, Field(min_length=1, max_length=300, description="Name or id of the job.")]
JobRefOrAll = Annotated[
    str | None, Field(max_length=300, description="Only of this job: name or id. Default: of all jobs.")
]
RunRef = Annotated[str, Field(min_length=1, max_length=60, description="Id of the run.")]
Query = Annotated[
    str | None,
    Field(max_length=1_000, description='Filter, such as "status:failed tag:billing" or "name:report".'),
]
Limit = Annotated[int, Field(ge=1, le=LARGEST_PAGE)]
Cursor = Annotated[str | None, Field(description="`next_cursor` of the page before.")]
When = Annotated[
    str,
    Field(
        min_length=1,
        max_length=256,
        description='Words or cron: "every 10 minutes", "every weekday at 9am", "in 2 hours", "0 9 * * 1-5".',
    ),
]
TimeZone = Annotated[
    str | None,
    Field(max_length=64, description="IANA name such as America/Bogota. Default: the workspace's."),
]
Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=200,
        description="Your own key for this request: a repeat with the same key changes nothing and answers the same.",
    ),
]
DryRun = Annotated[bool, Field(description="Only show what would happen.")]
Reason = Annotated[str, Field(min_length=1, max_length=1_000, description="Why; people will read it.")]


def tool(answer: type[A]) -> Callable[[Callable[P, Awaitable[A]]], Callable[P, Awaitable[CallToolResult]]]:
    """Turn a method that returns an answer into a tool, with the answer's schema; errors of the API become tool errors."""

    def wrap(do: Callable[P, Awaitable[A]]) -> Callable[P, Awaitable[CallToolResult]]:
        @wraps(do)
        async def call(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
            try:
                return result(await do(*args, **kwargs))
            except FoliotApiError as error:
                raise ToolError(f"{error} [{error.code}]") from error

        call.__annotations__ = {**do.__annotations__, "return": Annotated[CallToolResult, answer]}
        return call

    return wrap


async def find_job(client: AsyncClient, ref: str) -> JobOut:
    if (job_id := read_id(ref)) is not None:
        return await client.jobs.get(job_id)
    return await client.jobs.find(ref)


def parse_run_id(ref: str) -> UUID:
    if (run_id := read_id(ref)) is None:
        raise ToolError("A run is named by its id; list_runs shows it.")
    return run_id


async def find_room(client: AsyncClient, ref: str) -> RoomOut | None:
    if (room_id := read_id(ref)) is not None:
        return await client.rooms.get(room_id)
    page = await client.rooms.list(key=ref, limit=1)
    return page.items[0] if page.items else None


async def reminder_room_key(client: AsyncClient) -> str:
    """Each principal has one room, where its reminders arrive."""
    return f"reminders-{(await client.me()).principal.id}"


def describe_job(job: JobOut) -> str:
    when = "no next run" if job.next_run_at is None else f"next run {job.next_run_at:%Y-%m-%d %H:%M:%S} UTC"
    why = f" ({job.status_reason})" if job.status_reason else ""
    return f"{job.name}: {job.schedule.words}; {job.status}{why}, {when}."


def list_next_times(planned: list[PlannedOut], most: int) -> list[NextTime]:
    return [NextTime.of(each) for each in planned[:most]]


def schedule_in_words(words: str, time_zone: str | None) -> dict[str, Any]:
    return {"words": words} | ({} if time_zone is None else {"timezone": time_zone})
