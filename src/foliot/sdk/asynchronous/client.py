"""The client itself: what there is to ask, in groups."""

from __future__ import annotations

from datetime import datetime
from types import TracebackType
from typing import Self

from foliot.sdk.asking import Ask, post
from foliot.sdk.asynchronous.calendars import AsyncCalendars
from foliot.sdk.asynchronous.freezes import AsyncFreezes
from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.jobs import AsyncJobs
from foliot.sdk.asynchronous.runs import AsyncRuns
from foliot.sdk.keywords import ScheduleLike, schedule_body
from foliot.sdk.place import find
from foliot.wire.fleet import JobTypesOut, QueuesOut, WorkersOut
from foliot.wire.schedules import PreviewOut


class AsyncClient:
    """Foliot over HTTP. Nothing is sent before the first call; a `with` block or `close` ends its connections.

    `url` and `key` default to FOLIOT_API_URL and FOLIOT_API_KEY, then foliot.toml, then the server of the current folder.
    `workspace` is for system keys alone. `timeout` is in seconds, for each try; `retries` are made only where a repeat is safe.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        workspace: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 3,
    ) -> None:
        place = find(url, key)
        self.url = place.url
        self._http = AsyncHttp(place, workspace=workspace, timeout=timeout, retries=retries)
        self.jobs = AsyncJobs(self._http)
        self.runs = AsyncRuns(self._http)
        self.calendars = AsyncCalendars(self._http)
        self.freezes = AsyncFreezes(self._http)

    async def preview(
        self, schedule: ScheduleLike, *, n: int = 5, after: datetime | str | None = None
    ) -> PreviewOut:
        """What a schedule means and when it fires. Nothing is kept."""
        query = {"n": n, "after": after}
        return await self._http.ask(PreviewOut, post("/preview", body=schedule_body(schedule), query=query))

    async def workers(self) -> WorkersOut:
        """Those that serve this workspace: the living first, then those lost within the last day."""
        return await self._http.ask(WorkersOut, Ask("GET", "/workers"))

    async def queues(self) -> QueuesOut:
        """Every queue that a job names or a worker serves, with what stands in it."""
        return await self._http.ask(QueuesOut, Ask("GET", "/queues"))

    async def job_types(self) -> JobTypesOut:
        """What `type` of a job may be."""
        return await self._http.ask(JobTypesOut, Ask("GET", "/job-types"))

    async def close(self) -> None:
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"
