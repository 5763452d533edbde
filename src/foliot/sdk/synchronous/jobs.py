# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.jobs`: define them, look at them, operate them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack, overload

from foliot.sdk.asking import Ask, Ref, given, post, seen
from foliot.sdk.keywords import JobFilters, JobKeywords, RunFilters, job_body
from foliot.sdk.synchronous.dry_runs import DryRuns
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.paging import each_of
from foliot.wire.bulk import BulkAction, BulkArgs, BulkOut
from foliot.wire.explaining import ExplanationOut
from foliot.wire.jobs import BackfillOut, JobIn, JobOut, SkipNextOut
from foliot.wire.pages import LONGEST_PAGE, PAGE, CountedPage, Page
from foliot.wire.revisions import RevisionOut
from foliot.wire.runs import RunOut
from foliot.wire.schedules import TimesOut
from foliot.wire.stats import JobStatsOut


class Jobs:
    def __init__(self, http: Http) -> None:
        self._http = http
        self.dry_run = DryRuns(http)

    def list(
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
        return self._http.ask(shape, Ask("GET", "/jobs", query=query))

    def each(self, *, sort: str | None = None, **wanted: Unpack[JobFilters]) -> Iterator[JobOut]:
        """All of them, page after page."""
        return each_of(lambda cursor: self.list(sort=sort, limit=LONGEST_PAGE, cursor=cursor, **wanted))

    def get(self, job_id: Ref) -> JobOut:
        return self._http.ask(JobOut, Ask("GET", "/jobs/{job_id}", {"job_id": job_id}))

    @overload
    def create(self, job: JobIn | Mapping[str, Any], /, *, idempotency_key: str | None = None) -> JobOut: ...

    @overload
    def create(self, *, idempotency_key: str | None = None, **fields: Unpack[JobKeywords]) -> JobOut: ...

    def create(  # type: ignore[misc]  # mypy does not see that **fields takes the keywords
        self,
        job: JobIn | Mapping[str, Any] | None = None,
        /,
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> JobOut:
        """A job as a shape, as JSON, or in keywords; `schedule` may be words such as "every weekday at 9am".

        Repeated by itself where the answer is lost, and made once: each call has an idempotency key. Give your own to be
        as safe across restarts of your program.
        """
        return self._http.ask(JobOut, post("/jobs", body=job_body(job, fields), key=idempotency_key))

    def replace(
        self,
        job_id: Ref,
        job: JobIn | JobOut | Mapping[str, Any],
        *,
        revision: int | None = None,
        note: str | None = None,
        force: bool = False,
    ) -> JobOut:
        """Put a whole definition in place. `revision`: only if it is still at that one; `note`: why, for its history.

        `force`: even if it is managed by code.
        """
        query = {"revision_note": note, "force": force}
        ask = Ask("PUT", "/jobs/{job_id}", {"job_id": job_id}, query, job, seen(revision))
        return self._http.ask(JobOut, ask)

    def patch(
        self,
        job_id: Ref,
        changes: Mapping[str, Any],
        *,
        revision: int | None = None,
        note: str | None = None,
        force: bool = False,
    ) -> JobOut:
        """Change what is named; None gives a field its default. `revision`, `note` and `force` as in `replace`."""
        query = {"revision_note": note, "force": force}
        ask = Ask("PATCH", "/jobs/{job_id}", {"job_id": job_id}, query, changes, seen(revision))
        return self._http.ask(JobOut, ask)

    def delete(
        self,
        job_id: Ref,
        *,
        purge: bool = False,
        detach: bool = False,
        force: bool = False,
        revision: int | None = None,
    ) -> None:
        """Archive it; `purge` removes it with its history. `detach` takes it out of the jobs that depend on it."""
        query = {"purge": purge, "detach": detach, "force": force}
        self._http.tell(Ask("DELETE", "/jobs/{job_id}", {"job_id": job_id}, query, None, seen(revision)))

    def revisions(self, job_id: Ref, *, limit: int = PAGE, cursor: str | None = None) -> Page[RevisionOut]:
        """Every definition it had, newest first, with what each changed."""
        query = {"limit": limit, "cursor": cursor}
        return self._http.ask(
            Page[RevisionOut], Ask("GET", "/jobs/{job_id}/revisions", {"job_id": job_id}, query)
        )

    def revert(self, job_id: Ref, revision: int, *, note: str | None = None, force: bool = False) -> JobOut:
        """Put an old revision in force again, as a new one."""
        ask = post(
            "/jobs/{job_id}/revert",
            {"job_id": job_id},
            body=given(revision=revision, note=note),
            query={"force": force},
        )
        return self._http.ask(JobOut, ask)

    def run(
        self,
        job_id: Ref,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  # the name on the wire
        override: bool = False,
        idempotency_key: str | None = None,
    ) -> RunOut:
        """Run it now. `input` is laid over the job's payload; `override` runs it even while frozen."""
        body = given(input=input, override=override)
        ask = post("/jobs/{job_id}/run", {"job_id": job_id}, body=body, key=idempotency_key)
        return self._http.ask(RunOut, ask)

    def pause(self, job_id: Ref, *, reason: str | None = None, until: datetime | str | None = None) -> JobOut:
        """No run starts by schedule until it is resumed, or `until` has come."""
        ask = post("/jobs/{job_id}/pause", {"job_id": job_id}, body=given(reason=reason, until=until))
        return self._http.ask(JobOut, ask)

    def resume(self, job_id: Ref, *, catch_up: bool = False) -> JobOut:
        """Back to work; `catch_up` runs what went by meanwhile, as the job's misfire policy says."""
        ask = post("/jobs/{job_id}/resume", {"job_id": job_id}, body=given(catch_up=catch_up))
        return self._http.ask(JobOut, ask)

    def disable(self, job_id: Ref, *, reason: str | None = None) -> JobOut:
        """Switch it off: a pause without an end. `resume` switches it on again."""
        ask = post("/jobs/{job_id}/disable", {"job_id": job_id}, body=given(reason=reason))
        return self._http.ask(JobOut, ask)

    def skip_next(
        self,
        job_id: Ref,
        *,
        n: int | None = None,
        until: datetime | str | None = None,
        reason: str | None = None,
    ) -> SkipNextOut:
        """Let the next planned time pass, the next `n`, or all `until` an instant."""
        body = given(n=n, until=until, reason=reason)
        ask = post("/jobs/{job_id}/skip-next", {"job_id": job_id}, body=body)
        return self._http.ask(SkipNextOut, ask)

    def undo_skip_next(self, job_id: Ref) -> JobOut:
        """No planned time is to pass after all."""
        return self._http.ask(JobOut, Ask("DELETE", "/jobs/{job_id}/skip-next", {"job_id": job_id}))

    def backfill(
        self,
        job_id: Ref,
        start: datetime | str,
        end: datetime | str,
        *,
        order: Literal["oldest_first", "newest_first"] | None = None,
        max: int | None = None,  # noqa: A002  # the name on the wire
        skipped: bool = False,
        dry_run: bool = False,
    ) -> BackfillOut:
        """Runs for planned times of the past that have no record. With `dry_run` they are only counted."""
        body = {"from": start, "to": end, "skipped": skipped, "dry_run": dry_run} | given(
            order=order, max=max
        )
        ask = post("/jobs/{job_id}/backfill", {"job_id": job_id}, body=body)
        return self._http.ask(BackfillOut, ask)

    def bulk(
        self,
        action: BulkAction,
        *,
        ids: Sequence[Ref] | None = None,
        q: str | None = None,
        expected_count: int | None = None,
        dry_run: bool = False,
        args: BulkArgs | Mapping[str, Any] | None = None,
    ) -> BulkOut:
        """Pause, resume, disable, enable, archive, run, tag or untag many: by ids, or by a filter and how many it should find."""
        body = given(action=action, ids=ids, q=q, expected_count=expected_count, dry_run=dry_run, args=args)
        return self._http.ask(BulkOut, post("/jobs/bulk", body=body))

    def batch_delete(
        self,
        *,
        ids: Sequence[Ref] | None = None,
        q: str | None = None,
        expected_count: int | None = None,
        dry_run: bool = False,
        purge: bool = False,
        detach: bool = False,
        force: bool = False,
    ) -> BulkOut:
        """Archive many, or remove them with their history (`purge`)."""
        body = given(
            ids=ids,
            q=q,
            expected_count=expected_count,
            dry_run=dry_run,
            purge=purge,
            detach=detach,
            force=force,
        )
        return self._http.ask(BulkOut, post("/jobs/batch-delete", body=body))

    def next(self, job_id: Ref, n: int = 5) -> TimesOut:
        """When it runs next."""
        ask = Ask("GET", "/jobs/{job_id}/next", {"job_id": job_id}, {"n": n})
        return self._http.ask(TimesOut, ask)

    def explain(self, job_id: Ref, *, at: datetime | str | None = None) -> ExplanationOut:
        """Why it ran, did not run, or will not run at an instant; its last planned time where none is named."""
        ask = Ask("GET", "/jobs/{job_id}/explain", {"job_id": job_id}, {"at": at})
        return self._http.ask(ExplanationOut, ask)

    def stats(self, job_id: Ref, *, days: int | None = None) -> JobStatsOut:
        """How its runs went: by day, in all, and how long the newest took."""
        ask = Ask("GET", "/jobs/{job_id}/stats", {"job_id": job_id}, {"days": days})
        return self._http.ask(JobStatsOut, ask)

    def runs(
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
        return self._http.ask(Page[RunOut], ask)

    def each_run(self, job_id: Ref, **wanted: Unpack[RunFilters]) -> Iterator[RunOut]:
        """Its whole history, newest first."""
        return each_of(lambda cursor: self.runs(job_id, limit=LONGEST_PAGE, cursor=cursor, **wanted))
