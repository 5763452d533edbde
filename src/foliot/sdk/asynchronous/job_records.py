"""What is known of a job: its times, its runs, its revisions. A part of `client.jobs`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Unpack

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.paging import each_of
from foliot.sdk.keywords import RunFilters
from foliot.sdk.request import Ask, Ref
from foliot.wire.jobs import RevisionOut
from foliot.wire.reports import ExplanationOut, JobStatsOut
from foliot.wire.runs import RunOut
from foliot.wire.schedules import TimesOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class AsyncJobRecords:
    _http: AsyncHttp

    async def revisions(
        self, job_id: Ref, *, limit: int = PAGE, cursor: str | None = None
    ) -> Page[RevisionOut]:
        """Every definition it had, newest first, with what each changed."""
        query = {"limit": limit, "cursor": cursor}
        return await self._http.ask(
            Page[RevisionOut], Ask("GET", "/jobs/{job_id}/revisions", {"job_id": job_id}, query)
        )

    async def next(self, job_id: Ref, n: int = 5) -> TimesOut:
        """When it runs next."""
        ask = Ask("GET", "/jobs/{job_id}/next", {"job_id": job_id}, {"n": n})
        return await self._http.ask(TimesOut, ask)

    async def explain(self, job_id: Ref, *, at: datetime | str | None = None) -> ExplanationOut:
        """Why it ran, did not run, or will not run at an instant; its last planned time where none is named."""
        ask = Ask("GET", "/jobs/{job_id}/explain", {"job_id": job_id}, {"at": at})
        return await self._http.ask(ExplanationOut, ask)

    async def stats(self, job_id: Ref, *, days: int | None = None) -> JobStatsOut:
        """How its runs went: by day, in all, and how long the newest took."""
        ask = Ask("GET", "/jobs/{job_id}/stats", {"job_id": job_id}, {"days": days})
        return await self._http.ask(JobStatsOut, ask)

    async def runs(
        self, job_id: Ref, *, limit: int = PAGE, cursor: str | None = None, **wanted: Unpack[RunFilters]
    ) -> Page[RunOut]:
        """One page of the records of its planned times, newest first."""
        query = {
            "q": wanted.get("q"),
            "status": wanted.get("status"),
            "trigger": wanted.get("trigger"),
            "skip_reason": wanted.get("skip_reason"),
            "job": wanted.get("job"),
            "worker": wanted.get("worker"),
            "queue": wanted.get("queue"),
            "type": wanted.get("type"),
            "tag": wanted.get("tag"),
            "since": wanted.get("since"),
            "until": wanted.get("until"),
            "limit": limit,
            "cursor": cursor,
        }
        ask = Ask("GET", "/jobs/{job_id}/runs", {"job_id": job_id}, query)
        return await self._http.ask(Page[RunOut], ask)

    def each_run(self, job_id: Ref, **wanted: Unpack[RunFilters]) -> AsyncIterator[RunOut]:
        """Its whole history, newest first."""
        return each_of(lambda cursor: self.runs(job_id, limit=LONGEST_PAGE, cursor=cursor, **wanted))
