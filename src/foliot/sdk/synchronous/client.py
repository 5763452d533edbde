# Made from sdk/asynchronous by ./dev format; edit it there.
"""The client itself: what there is to ask, in groups."""

from __future__ import annotations

from datetime import datetime
from types import TracebackType
from typing import Self

from foliot.sdk.asking import Ask, post
from foliot.sdk.keywords import ScheduleLike, schedule_body
from foliot.sdk.place import find
from foliot.sdk.synchronous.calendars import Calendars
from foliot.sdk.synchronous.freezes import Freezes
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.jobs import Jobs
from foliot.sdk.synchronous.runs import Runs
from foliot.wire.fleet import JobTypesOut, QueuesOut, WorkersOut
from foliot.wire.schedules import PreviewOut


class Client:
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
        self._http = Http(place, workspace=workspace, timeout=timeout, retries=retries)
        self.jobs = Jobs(self._http)
        self.runs = Runs(self._http)
        self.calendars = Calendars(self._http)
        self.freezes = Freezes(self._http)

    def preview(
        self, schedule: ScheduleLike, *, n: int = 5, after: datetime | str | None = None
    ) -> PreviewOut:
        """What a schedule means and when it fires. Nothing is kept."""
        query = {"n": n, "after": after}
        return self._http.ask(PreviewOut, post("/preview", body=schedule_body(schedule), query=query))

    def workers(self) -> WorkersOut:
        """Those that serve this workspace: the living first, then those lost within the last day."""
        return self._http.ask(WorkersOut, Ask("GET", "/workers"))

    def queues(self) -> QueuesOut:
        """Every queue that a job names or a worker serves, with what stands in it."""
        return self._http.ask(QueuesOut, Ask("GET", "/queues"))

    def job_types(self) -> JobTypesOut:
        """What `type` of a job may be."""
        return self._http.ask(JobTypesOut, Ask("GET", "/job-types"))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"
