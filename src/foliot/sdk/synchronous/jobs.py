# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.jobs`: define jobs and read their history. `job_actions.py` controls them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack, overload

from foliot.sdk.job_names import the_only_job
from foliot.sdk.keywords import JobFilters, JobKeywords, RunFilters, job_body
from foliot.sdk.request import ApiRequest, Ref, if_match, post, without_none
from foliot.sdk.response import raise_for_error, read_run, reader
from foliot.sdk.synchronous.http import Changed, Gone, Transport, each_of
from foliot.sdk.synchronous.job_actions import JobActions, Ran
from foliot.wire.jobs import JobIn, JobOut, RevisionOut
from foliot.wire.schedules import TimesOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, CountedPage, Page

if TYPE_CHECKING:
    from foliot.wire.dry_run import DryRunOut, RunDryRunOut
    from foliot.wire.reports import ExplanationOut, JobStatsOut
    from foliot.wire.runs import RunOut


class JobRecords:
    _http: Transport

    def revisions(self, job_id: Ref, *, limit: int = PAGE, cursor: str | None = None) -> Page[RevisionOut]:
        """Return one page of its revisions, newest first, with what each changed."""
        query = {"limit": limit, "cursor": cursor}
        return self._http.get(Page[RevisionOut], "/jobs/{job_id}/revisions", {"job_id": job_id}, query)

    def next(self, job_id: Ref, n: int = 5) -> TimesOut:
        """Return its next planned times."""
        return self._http.get(TimesOut, "/jobs/{job_id}/next", {"job_id": job_id}, {"n": n})

    def explain(self, job_id: Ref, *, at: datetime | str | None = None) -> ExplanationOut:
        """Explain why it ran, did not run or will not run at an instant. Default: its last planned time."""
        from foliot.wire.reports import ExplanationOut  # noqa: PLC0415

        return self._http.get(ExplanationOut, "/jobs/{job_id}/explain", {"job_id": job_id}, {"at": at})

    def stats(self, job_id: Ref, *, days: int | None = None, percentiles: bool | None = None) -> JobStatsOut:
        """Return its run counts by day and in total, and the durations of the newest runs; `percentiles` adds p95 of each day."""
        from foliot.wire.reports import JobStatsOut  # noqa: PLC0415

        query = {"days": days, "percentiles": percentiles}
        return self._http.get(JobStatsOut, "/jobs/{job_id}/stats", {"job_id": job_id}, query)

    def runs(
        self, job_id: Ref, *, limit: int = PAGE, cursor: str | None = None, **wanted: Unpack[RunFilters]
    ) -> Page[RunOut]:
        """Return one page of the records of its planned times, newest first."""
        from foliot.wire.runs import RunOut  # noqa: PLC0415

        query = {**wanted, "limit": limit, "cursor": cursor}
        return self._http.get(Page[RunOut], "/jobs/{job_id}/runs", {"job_id": job_id}, query)

    def each_run(self, job_id: Ref, **wanted: Unpack[RunFilters]) -> Iterator[RunOut]:
        """Yield its whole history, newest first."""
        return each_of(lambda cursor: self.runs(job_id, limit=LONGEST_PAGE, cursor=cursor, **wanted))


class JobWrites(JobActions[Changed, Gone, Ran]):
    @overload
    def create(self, job: JobIn | Mapping[str, Any], /, *, idempotency_key: str | None = None) -> Changed: ...

    @overload
    def create(self, *, idempotency_key: str | None = None, **fields: Unpack[JobKeywords]) -> Changed: ...

    def create(  # type: ignore[misc]  # mypy does not see that **fields takes the keywords
        self,
        job: JobIn | Mapping[str, Any] | None = None,
        /,
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Changed:
        """Create a job from a shape, JSON, or keywords; `schedule` may be words such as "every weekday at 9am".

        Each call has an idempotency key: if the response is lost, the client repeats it and the job is created once. Pass
        your own key to be safe across restarts of your program.
        """
        return self._change(post("/jobs", body=job_body(job, fields), key=idempotency_key))

    def replace(
        self,
        job_id: Ref,
        job: JobIn | JobOut | Mapping[str, Any],
        *,
        revision: int | None = None,
        note: str | None = None,
        force: bool = False,
    ) -> Changed:
        """Replace the whole definition. `revision`: only if the job still has that one; `note`: why, for the revisions.

        `force`: even if code manages the job.
        """
        query = {"revision_note": note, "force": force}
        request = ApiRequest("PUT", "/jobs/{job_id}", {"job_id": job_id}, query, job, if_match(revision))
        return self._change(request)

    def patch(
        self,
        job_id: Ref,
        changes: Mapping[str, Any],
        *,
        revision: int | None = None,
        note: str | None = None,
        force: bool = False,
    ) -> Changed:
        """Change the given fields; None resets a field to its default. `revision`, `note` and `force` as in `replace`."""
        query = {"revision_note": note, "force": force}
        request = ApiRequest(
            "PATCH", "/jobs/{job_id}", {"job_id": job_id}, query, changes, if_match(revision)
        )
        return self._change(request)

    def delete(
        self,
        job_id: Ref,
        *,
        purge: bool = False,
        detach: bool = False,
        force: bool = False,
        revision: int | None = None,
    ) -> Gone:
        """Archive a job; `purge` deletes it with its history. `detach` removes it from jobs that depend on it."""
        query = {"purge": purge, "detach": detach, "force": force}
        return self._remove(
            ApiRequest("DELETE", "/jobs/{job_id}", {"job_id": job_id}, query, None, if_match(revision)),
        )

    def revert(self, job_id: Ref, revision: int, *, note: str | None = None, force: bool = False) -> Changed:
        """Revert to an earlier revision, as a new one."""
        request = post(
            "/jobs/{job_id}/revert",
            {"job_id": job_id},
            body=without_none(revision=revision, note=note),
            query={"force": force},
        )
        return self._change(request)


class JobsApi(JobWrites[JobOut, None, "RunOut"], JobRecords):
    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(JobOut), raise_for_error, read_run)

    @cached_property
    def dry_run(self) -> JobWrites[DryRunOut, DryRunOut, RunDryRunOut]:
        from foliot.wire.dry_run import DryRunOut, RunDryRunOut  # noqa: PLC0415

        preview = reader(DryRunOut)
        return JobWrites(self._http, preview, preview, reader(RunDryRunOut), dry_run=True)

    def list(
        self,
        *,
        sort: str | None = None,
        count: bool | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
        **wanted: Unpack[JobFilters],
    ) -> Page[JobOut]:
        """Return one page, newest first or in the order of `sort`. Archived jobs appear only if `status` names them.

        With `count` it is a CountedPage with the total of all pages.
        """
        query = {**wanted, "sort": sort, "count": count, "limit": limit, "cursor": cursor}
        shape = CountedPage[JobOut] if count else Page[JobOut]
        return self._http.get(shape, "/jobs", query=query)

    def each(self, *, sort: str | None = None, **wanted: Unpack[JobFilters]) -> Iterator[JobOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(sort=sort, limit=LONGEST_PAGE, cursor=cursor, **wanted))

    def get(self, job_id: Ref, *, warnings: bool | None = None) -> JobOut:
        """Return a job; with `warnings`, also what is often a mistake in it."""
        query = {"warnings": warnings}
        return self._http.get(JobOut, "/jobs/{job_id}", {"job_id": job_id}, query=query)

    def find(self, name: str) -> JobOut:
        """Return the job with exactly this name. Raise NotFound if there is none, and Invalid if several have it."""
        similar = [job for job in self.each(name=[name])] if name.strip() else []
        return the_only_job(name, similar)
