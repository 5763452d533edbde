"""`client.jobs`: define jobs. `job_actions.py` operates them, `job_records.py` reads their history."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Unpack, overload

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.job_actions import AsyncJobActions, Ran
from foliot.sdk.asynchronous.job_records import AsyncJobRecords
from foliot.sdk.asynchronous.paging import each_of
from foliot.sdk.asynchronous.writes import Changed, Gone
from foliot.sdk.keywords import JobFilters, JobKeywords, job_body
from foliot.sdk.request import Ask, Ref, given, post, seen
from foliot.sdk.response import check, reader
from foliot.wire.dry_run import DryRunOut, RunDryRunOut
from foliot.wire.jobs import JobIn, JobOut
from foliot.wire.runs import RunOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, CountedPage, Page


class AsyncJobWrites(AsyncJobActions[Changed, Gone, Ran]):
    @overload
    async def create(
        self, job: JobIn | Mapping[str, Any], /, *, idempotency_key: str | None = None
    ) -> Changed: ...

    @overload
    async def create(
        self, *, idempotency_key: str | None = None, **fields: Unpack[JobKeywords]
    ) -> Changed: ...

    async def create(  # type: ignore[misc]  # mypy does not see that **fields takes the keywords
        self,
        job: JobIn | Mapping[str, Any] | None = None,
        /,
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Changed:
        """A job as a shape, as JSON, or in keywords; `schedule` may be words such as "every weekday at 9am".

        Repeated by itself where the answer is lost, and made once: each call has an idempotency key. Give your own to be
        as safe across restarts of your program.
        """
        return await self._write(
            self._changed, post("/jobs", body=job_body(job, fields), key=idempotency_key)
        )

    async def replace(
        self,
        job_id: Ref,
        job: JobIn | JobOut | Mapping[str, Any],
        *,
        revision: int | None = None,
        note: str | None = None,
        force: bool = False,
    ) -> Changed:
        """Put a whole definition in place. `revision`: only if it is still at that one; `note`: why, for its history.

        `force`: even if it is managed by code.
        """
        query = {"revision_note": note, "force": force}
        ask = Ask("PUT", "/jobs/{job_id}", {"job_id": job_id}, query, job, seen(revision))
        return await self._write(self._changed, ask)

    async def patch(
        self,
        job_id: Ref,
        changes: Mapping[str, Any],
        *,
        revision: int | None = None,
        note: str | None = None,
        force: bool = False,
    ) -> Changed:
        """Change what is named; None gives a field its default. `revision`, `note` and `force` as in `replace`."""
        query = {"revision_note": note, "force": force}
        ask = Ask("PATCH", "/jobs/{job_id}", {"job_id": job_id}, query, changes, seen(revision))
        return await self._write(self._changed, ask)

    async def delete(
        self,
        job_id: Ref,
        *,
        purge: bool = False,
        detach: bool = False,
        force: bool = False,
        revision: int | None = None,
    ) -> Gone:
        """Archive it; `purge` removes it with its history. `detach` takes it out of the jobs that depend on it."""
        query = {"purge": purge, "detach": detach, "force": force}
        return await self._write(
            self._gone, Ask("DELETE", "/jobs/{job_id}", {"job_id": job_id}, query, None, seen(revision))
        )

    async def revert(
        self, job_id: Ref, revision: int, *, note: str | None = None, force: bool = False
    ) -> Changed:
        """Put an old revision in force again, as a new one."""
        ask = post(
            "/jobs/{job_id}/revert",
            {"job_id": job_id},
            body=given(revision=revision, note=note),
            query={"force": force},
        )
        return await self._write(self._changed, ask)


class AsyncJobs(AsyncJobWrites[JobOut, None, RunOut], AsyncJobRecords):
    def __init__(self, http: AsyncHttp) -> None:
        super().__init__(http, reader(JobOut), check, reader(RunOut))
        preview = reader(DryRunOut)
        self.dry_run = AsyncJobWrites(http, preview, preview, reader(RunDryRunOut), dry_run=True)

    async def list(
        self,
        *,
        sort: str | None = None,
        count: bool | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
        **wanted: Unpack[JobFilters],
    ) -> Page[JobOut]:
        """One page, newest first, or as `sort` says. Archived jobs only when `status` names them.

        With `count` it is a CountedPage, which knows how many there are on all pages.
        """
        query = {
            "q": wanted.get("q"),
            "status": wanted.get("status"),
            "tag": wanted.get("tag"),
            "type": wanted.get("type"),
            "queue": wanted.get("queue"),
            "owner": wanted.get("owner"),
            "name": wanted.get("name"),
            "since": wanted.get("since"),
            "until": wanted.get("until"),
            "sort": sort,
            "count": count,
            "limit": limit,
            "cursor": cursor,
        }
        shape = CountedPage[JobOut] if count else Page[JobOut]
        return await self._http.ask(shape, Ask("GET", "/jobs", query=query))

    def each(self, *, sort: str | None = None, **wanted: Unpack[JobFilters]) -> AsyncIterator[JobOut]:
        """All of them, page after page."""
        return each_of(lambda cursor: self.list(sort=sort, limit=LONGEST_PAGE, cursor=cursor, **wanted))

    async def get(self, job_id: Ref) -> JobOut:
        return await self._http.ask(JobOut, Ask("GET", "/jobs/{job_id}", {"job_id": job_id}))
