# Made from sdk/asynchronous by ./dev format; edit it there.
"""The client: calls in groups by noun, and calls about the whole workspace.

Groups and shapes are imported when they are used: a command needs a few of them, and all take longer than the command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from foliot.sdk.connection import Connection, resolve_connection
from foliot.sdk.keywords import ScheduleLike, schedule_body
from foliot.sdk.request import ApiRequest, Ref, post
from foliot.sdk.response import parse_json
from foliot.sdk.synchronous.http import Transport, events_of
from foliot.wire.shape import PAGE, Page

if TYPE_CHECKING:
    from foliot.sdk.synchronous.calendars import CalendarsApi
    from foliot.sdk.synchronous.defaults import DefaultsApi
    from foliot.sdk.synchronous.freezes import FreezesApi
    from foliot.sdk.synchronous.hosts import HostsApi
    from foliot.sdk.synchronous.identity import KeysApi, MembersApi, WorkspacesApi
    from foliot.sdk.synchronous.jobs import JobsApi
    from foliot.sdk.synchronous.limits import BudgetsApi, LimitsApi
    from foliot.sdk.synchronous.notifications import (
        ChannelsApi,
        DeliveriesApi,
        IncidentsApi,
        NotificationRulesApi,
        WebhooksApi,
    )
    from foliot.sdk.synchronous.rooms import RoomsApi
    from foliot.sdk.synchronous.runs import RunsApi
    from foliot.sdk.synchronous.secrets import SecretsApi
    from foliot.sdk.synchronous.worker import WorkerApi
    from foliot.wire.audit import AuditOut, EventOut
    from foliot.wire.batch import BatchOut, BatchWrite
    from foliot.wire.fleet import CapacitySharesOut, JobTypeOut, JobTypesOut, LeasesOut, QueuesOut, WorkersOut
    from foliot.wire.identity import MeOut
    from foliot.wire.imports import ImportIn, ImportOut
    from foliot.wire.reports import AgendaOut, DensityOut, StatsNowOut, StatsOut
    from foliot.wire.schedules import PreviewOut
    from foliot.wire.usage import UsageOut


class Client:
    """Foliot over HTTP. It connects on the first call; a `with` block or `close` ends its connections.

    `url` and `key` default to those of `profile` (or FOLIOT_PROFILE), then to FOLIOT_API_URL and FOLIOT_API_KEY, then
    foliot.toml, then the server of the current folder.
    `workspace` is only for system keys. `ca` is a file of certificates to trust instead of the machine's. `timeout` is in
    seconds, for each attempt. The client retries only requests that are safe to repeat. A `connection` replaces url, key and ca.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        workspace: str | None = None,
        *,
        profile: str | None = None,
        ca: Path | str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        connection: Connection | None = None,
    ) -> None:
        connection = connection or resolve_connection(
            url, key, None if ca is None else Path(ca), profile=profile
        )
        self.url = connection.url
        self._http = Transport(
            connection, workspace=workspace or connection.workspace, timeout=timeout, retries=retries
        )

    @cached_property
    def jobs(self) -> JobsApi:
        from foliot.sdk.synchronous.jobs import JobsApi  # noqa: PLC0415

        return JobsApi(self._http)

    @cached_property
    def runs(self) -> RunsApi:
        from foliot.sdk.synchronous.runs import RunsApi  # noqa: PLC0415

        return RunsApi(self._http)

    @cached_property
    def calendars(self) -> CalendarsApi:
        from foliot.sdk.synchronous.calendars import CalendarsApi  # noqa: PLC0415

        return CalendarsApi(self._http)

    @cached_property
    def freezes(self) -> FreezesApi:
        from foliot.sdk.synchronous.freezes import FreezesApi  # noqa: PLC0415

        return FreezesApi(self._http)

    @cached_property
    def limits(self) -> LimitsApi:
        from foliot.sdk.synchronous.limits import LimitsApi  # noqa: PLC0415

        return LimitsApi(self._http)

    @cached_property
    def budgets(self) -> BudgetsApi:
        from foliot.sdk.synchronous.limits import BudgetsApi  # noqa: PLC0415

        return BudgetsApi(self._http)

    @cached_property
    def defaults(self) -> DefaultsApi:
        from foliot.sdk.synchronous.defaults import DefaultsApi  # noqa: PLC0415

        return DefaultsApi(self._http)

    @cached_property
    def rooms(self) -> RoomsApi:
        from foliot.sdk.synchronous.rooms import RoomsApi  # noqa: PLC0415

        return RoomsApi(self._http)

    @cached_property
    def keys(self) -> KeysApi:
        from foliot.sdk.synchronous.identity import KeysApi  # noqa: PLC0415

        return KeysApi(self._http)

    @cached_property
    def members(self) -> MembersApi:
        from foliot.sdk.synchronous.identity import MembersApi  # noqa: PLC0415

        return MembersApi(self._http)

    @cached_property
    def workspaces(self) -> WorkspacesApi:
        from foliot.sdk.synchronous.identity import WorkspacesApi  # noqa: PLC0415

        return WorkspacesApi(self._http)

    @cached_property
    def secrets(self) -> SecretsApi:
        from foliot.sdk.synchronous.secrets import SecretsApi  # noqa: PLC0415

        return SecretsApi(self._http)

    @cached_property
    def channels(self) -> ChannelsApi:
        from foliot.sdk.synchronous.notifications import ChannelsApi  # noqa: PLC0415

        return ChannelsApi(self._http)

    @cached_property
    def notification_rules(self) -> NotificationRulesApi:
        from foliot.sdk.synchronous.notifications import NotificationRulesApi  # noqa: PLC0415

        return NotificationRulesApi(self._http)

    @cached_property
    def incidents(self) -> IncidentsApi:
        from foliot.sdk.synchronous.notifications import IncidentsApi  # noqa: PLC0415

        return IncidentsApi(self._http)

    @cached_property
    def deliveries(self) -> DeliveriesApi:
        from foliot.sdk.synchronous.notifications import DeliveriesApi  # noqa: PLC0415

        return DeliveriesApi(self._http)

    @cached_property
    def webhooks(self) -> WebhooksApi:
        from foliot.sdk.synchronous.notifications import WebhooksApi  # noqa: PLC0415

        return WebhooksApi(self._http)

    @cached_property
    def hosts(self) -> HostsApi:
        from foliot.sdk.synchronous.hosts import HostsApi  # noqa: PLC0415

        return HostsApi(self._http)

    @cached_property
    def worker(self) -> WorkerApi:
        from foliot.sdk.synchronous.worker import WorkerApi  # noqa: PLC0415

        return WorkerApi(self._http)

    def preview(
        self, schedule: ScheduleLike, *, n: int = 5, after: datetime | str | None = None
    ) -> PreviewOut:
        """Return a schedule in words and its next times. Nothing is stored."""
        from foliot.wire.schedules import PreviewOut  # noqa: PLC0415

        query = {"n": n, "after": after}
        return self._http.read(PreviewOut, post("/preview", body=schedule_body(schedule), query=query))

    def agenda(
        self,
        *,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        job: Ref | None = None,
        queue: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
        closures: bool | None = None,
    ) -> AgendaOut:
        """Return planned runs in the order they start. Default: the next day. `closures` adds when their calendars close."""
        from foliot.wire.reports import AgendaOut  # noqa: PLC0415

        query = {
            "from": start,
            "to": end,
            "job": job,
            "queue": queue,
            "tag": tag,
            "limit": limit,
            "closures": closures,
        }
        return self._http.get(AgendaOut, "/agenda", query=query)

    def agenda_density(
        self,
        *,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        buckets: int | None = None,
        job: Ref | None = None,
        queue: str | None = None,
        tag: str | None = None,
        closures: bool | None = None,
    ) -> DensityOut:
        """Return how many runs are planned in each part of a span. Default: each half hour of the next day."""
        from foliot.wire.reports import DensityOut  # noqa: PLC0415

        query = {
            "from": start,
            "to": end,
            "buckets": buckets,
            "job": job,
            "queue": queue,
            "tag": tag,
            "closures": closures,
        }
        return self._http.get(DensityOut, "/agenda/density", query=query)

    def agenda_file(
        self,
        *,
        days: int | None = None,
        past: int | None = None,
        job: Ref | None = None,
        queue: str | None = None,
        tag: str | None = None,
    ) -> bytes:
        """Return the planned runs as a calendar file (.ics); with `past` also the records of so many days."""
        query = {"days": days, "past": past, "job": job, "queue": queue, "tag": tag}
        return self._http.download(ApiRequest("GET", "/agenda.ics", query=query))

    def capacity_shares(self) -> CapacitySharesOut:
        """Return how many runs each workspace has ready and running. For keys of the installation."""
        from foliot.wire.fleet import CapacitySharesOut  # noqa: PLC0415

        return self._http.get(CapacitySharesOut, "/capacity/shares")

    def stats(self, *, days: int | None = None, percentiles: bool | None = None) -> StatsOut:
        """Return the state of the workspace and its run counts by day; `percentiles` adds p95 of each day."""
        from foliot.wire.reports import StatsOut  # noqa: PLC0415

        query = {"days": days, "percentiles": percentiles}
        return self._http.get(StatsOut, "/stats", query=query)

    def now(self, *, jobs: bool | None = None, days: int | None = None) -> StatsNowOut:
        """Return the open runs, late jobs and start lag of this moment; `jobs` adds the jobs by status, `days` the totals of days."""
        from foliot.wire.reports import StatsNowOut  # noqa: PLC0415

        query = {"jobs": jobs, "days": days}
        return self._http.get(StatsNowOut, "/stats/now", query=query)

    def usage(self, *, month: str | None = None, job: Ref | None = None, unit: str | None = None) -> UsageOut:
        """Return what runs used in a month of UTC, such as "2026-11": in total, by day and by job; and the budgets."""
        from foliot.wire.usage import UsageOut  # noqa: PLC0415

        query = {"month": month, "job": job, "unit": unit}
        return self._http.get(UsageOut, "/usage", query=query)

    def me(self, *, count: bool = True) -> MeOut:
        """Return the caller, its key and its workspace, whose objects are counted unless `count` is False."""
        from foliot.wire.identity import MeOut  # noqa: PLC0415

        return self._http.get(MeOut, "/me", query={"count": count})

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
        """Return one page of changes, newest first, with the values before and after."""
        from foliot.wire.audit import AuditOut  # noqa: PLC0415

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
        return self._http.get(Page[AuditOut], "/audit", query=query)

    def events(
        self, *, types: str | None = None, job: Ref | None = None, last_event_id: str | None = None
    ) -> Iterator[EventOut]:
        """Yield events as they happen, without end. `types` such as "run.failed,freeze".

        After a broken connection it resumes after the last event.
        """
        from foliot.wire.audit import EventOut  # noqa: PLC0415

        query = {"types": types, "job": job}
        for event in events_of(self._http, ApiRequest("GET", "/events", query=query), last_event_id):
            if event.event != "reset":
                yield parse_json(EventOut, event.data, self.url)

    def batch(self, writes: Sequence[BatchWrite | Mapping[str, Any]], *, dry_run: bool = False) -> BatchOut:
        """Write jobs, calendars, limits and rooms in one transaction: if one write is refused, none is kept."""
        from foliot.wire.batch import BatchOut  # noqa: PLC0415

        request = post("/batch", body={"writes": list(writes)}, query={"dry_run": dry_run})
        return self._http.read(BatchOut, request)

    def import_jobs(self, given: ImportIn | Mapping[str, Any], *, dry_run: bool = False) -> ImportOut:
        """Import jobs of another scheduler. They arrive disabled, and importing the same text again changes nothing."""
        from foliot.wire.imports import ImportOut  # noqa: PLC0415

        return self._http.read(ImportOut, post("/imports", body=given, query={"dry_run": dry_run}))

    def workers(self) -> WorkersOut:
        """Return the workers of this workspace: those alive first, then those lost within the last day."""
        from foliot.wire.fleet import WorkersOut  # noqa: PLC0415

        return self._http.get(WorkersOut, "/workers")

    def leases(self, *, overdue: bool = False) -> LeasesOut:
        """Return the running attempts and the workers that hold them, the next deadline first."""
        from foliot.wire.fleet import LeasesOut  # noqa: PLC0415

        return self._http.get(LeasesOut, "/leases", query={"overdue": overdue})

    def queues(self) -> QueuesOut:
        """Return every queue that a job names or a worker serves, with its run counts."""
        from foliot.wire.fleet import QueuesOut  # noqa: PLC0415

        return self._http.get(QueuesOut, "/queues")

    def job_types(self) -> JobTypesOut:
        """Return the types that a job may have."""
        from foliot.wire.fleet import JobTypesOut  # noqa: PLC0415

        return self._http.get(JobTypesOut, "/job-types")

    def switch_job_type(
        self, job_type: str, *, enabled: bool, reason: str = "", dry_run: bool = False
    ) -> JobTypeOut:
        """Enable or disable a job type in this workspace. While disabled, its planned times are skipped. For administrators."""
        from foliot.wire.fleet import JobTypeOut  # noqa: PLC0415

        body = {"enabled": enabled, "reason": reason}
        query = {"dry_run": dry_run}
        request = ApiRequest("PUT", "/job-types/{job_type}", {"job_type": job_type}, query, body=body)
        return self._http.read(JobTypeOut, request)

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
