# Made from sdk/asynchronous by ./dev format; edit it there.
"""The client itself: what there is to ask, in groups."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from foliot.sdk.connection import find
from foliot.sdk.keywords import ScheduleLike, schedule_body
from foliot.sdk.request import Ask, Ref, post
from foliot.sdk.response import read_text
from foliot.sdk.synchronous.calendars import Calendars
from foliot.sdk.synchronous.freezes import Freezes
from foliot.sdk.synchronous.hosts import Hosts
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.identity import Keys, Members, Workspaces
from foliot.sdk.synchronous.jobs import Jobs
from foliot.sdk.synchronous.limits import Limits
from foliot.sdk.synchronous.rooms import Rooms
from foliot.sdk.synchronous.runs import Runs
from foliot.sdk.synchronous.secrets import Secrets
from foliot.sdk.synchronous.sse import events_of
from foliot.sdk.synchronous.worker import Worker
from foliot.wire.audit import AuditOut, EventOut
from foliot.wire.fleet import JobTypeOut, JobTypesOut, QueuesOut, WorkersOut
from foliot.wire.identity import MeOut
from foliot.wire.reports import AgendaOut, StatsOut
from foliot.wire.schedules import PreviewOut
from foliot.wire.shape import PAGE, Page


class Client:
    """Foliot over HTTP. Nothing is sent before the first call; a `with` block or `close` ends its connections.

    `url` and `key` default to FOLIOT_API_URL and FOLIOT_API_KEY, then foliot.toml, then the server of the current folder.
    `workspace` is for system keys alone. `ca` is a file of certificates to trust in the place of the machine's own. `timeout` is in seconds, for each try; `retries` are made only where a repeat is safe.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        workspace: str | None = None,
        *,
        ca: Path | str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
    ) -> None:
        place = find(url, key, None if ca is None else Path(ca))
        self.url = place.url
        self._http = Http(place, workspace=workspace, timeout=timeout, retries=retries)
        self.jobs = Jobs(self._http)
        self.runs = Runs(self._http)
        self.calendars = Calendars(self._http)
        self.freezes = Freezes(self._http)
        self.limits = Limits(self._http)
        self.rooms = Rooms(self._http)
        self.keys = Keys(self._http)
        self.members = Members(self._http)
        self.workspaces = Workspaces(self._http)
        self.secrets = Secrets(self._http)
        self.hosts = Hosts(self._http)
        self.worker = Worker(self._http)

    def preview(
        self, schedule: ScheduleLike, *, n: int = 5, after: datetime | str | None = None
    ) -> PreviewOut:
        """What a schedule means and when it fires. Nothing is kept."""
        query = {"n": n, "after": after}
        return self._http.ask(PreviewOut, post("/preview", body=schedule_body(schedule), query=query))

    def agenda(
        self,
        *,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        job: Ref | None = None,
        queue: str | None = None,
        tag: str | None = None,
    ) -> AgendaOut:
        """What is planned, in the order it starts: for a day from now on where nothing is said."""
        query = {"from": start, "to": end, "job": job, "queue": queue, "tag": tag}
        return self._http.ask(AgendaOut, Ask("GET", "/agenda", query=query))

    def stats(self, *, days: int | None = None) -> StatsOut:
        """How the workspace stands, and how runs went by day."""
        return self._http.ask(StatsOut, Ask("GET", "/stats", query={"days": days}))

    def me(self) -> MeOut:
        """Who asks, with which key, in which workspace."""
        return self._http.ask(MeOut, Ask("GET", "/me"))

    def audit(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        object: str | None = None,  # noqa: A002  # the name on the wire
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        installation: bool = False,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[AuditOut]:
        """Who did what, newest first, with what was there before and after."""
        query = {
            "actor": actor,
            "action": action,
            "object": object,
            "since": since,
            "until": until,
            "installation": installation,
            "limit": limit,
            "cursor": cursor,
        }
        return self._http.ask(Page[AuditOut], Ask("GET", "/audit", query=query))

    def events(
        self, *, types: str | None = None, job: Ref | None = None, last_event_id: str | None = None
    ) -> Iterator[EventOut]:
        """What happens, as it happens, without end. `types` such as "run.failed,freeze".

        Where the connection breaks it goes on behind the last that came.
        """
        query = {"types": types, "job": job}
        for event in events_of(self._http, Ask("GET", "/events", query=query), last_event_id):
            if event.event != "reset":
                yield read_text(EventOut, event.data, self.url)

    def workers(self) -> WorkersOut:
        """Those that serve this workspace: the living first, then those lost within the last day."""
        return self._http.ask(WorkersOut, Ask("GET", "/workers"))

    def queues(self) -> QueuesOut:
        """Every queue that a job names or a worker serves, with what stands in it."""
        return self._http.ask(QueuesOut, Ask("GET", "/queues"))

    def job_types(self) -> JobTypesOut:
        """What `type` of a job may be."""
        return self._http.ask(JobTypesOut, Ask("GET", "/job-types"))

    def switch_job_type(self, job_type: str, *, enabled: bool, reason: str = "") -> JobTypeOut:
        """Off, planned times of its jobs in this workspace are skipped; administrators."""
        body = {"enabled": enabled, "reason": reason}
        ask = Ask("PUT", "/job-types/{job_type}", {"job_type": job_type}, body=body)
        return self._http.ask(JobTypeOut, ask)

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
