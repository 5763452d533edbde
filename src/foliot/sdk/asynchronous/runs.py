"""`client.runs`: records of runs and skips."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Unpack

from foliot.sdk.asynchronous.http import AsyncTransport, AsyncWrites, Changed, each_of, events_of
from foliot.sdk.keywords import RunFilters
from foliot.sdk.request import ApiRequest, Ref, async_sleep, post, without_none
from foliot.sdk.response import parse_json, raise_for_error, reader
from foliot.wire.dry_run import RunDryRunOut
from foliot.wire.reports import ExplanationOut
from foliot.wire.runs import (
    ArtifactsOut,
    AttemptsOut,
    LogEndOut,
    LogLineOut,
    LogsOut,
    RecentOut,
    RunOut,
    RunSummaryOut,
)
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page

if TYPE_CHECKING:
    from foliot.wire.bulk import RunBulkOut

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between two looks at a run that goes on


class AsyncRunWrites(AsyncWrites[Changed, None]):
    async def cancel(self, run_id: Ref, *, reason: str | None = None, force: bool = False) -> Changed:
        """Cancel a run. A running one is stopped by its worker; `force` does not wait for it."""
        body = without_none(reason=reason, force=force)
        return await self._change(post("/runs/{run_id}/cancel", {"run_id": run_id}, body=body))

    async def retry(
        self,
        run_id: Ref,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  # the name on the wire
        override: bool = False,
        idempotency_key: str | None = None,
    ) -> Changed:
        """Repeat a finished run, as a new run. `input` is merged over its input."""
        body = without_none(input=input, override=override)
        request = post("/runs/{run_id}/retry", {"run_id": run_id}, body=body, key=idempotency_key)
        return await self._change(request)

    async def report_usage(
        self, run_id: Ref, usage: Mapping[str, Decimal | str | float], *, idempotency_key: str | None = None
    ) -> Changed:
        """Add usage that the run's handler did not report, such as {"tokens": 1200}. Each call adds."""
        body = {"usage": {unit: str(amount) for unit, amount in usage.items()}}
        request = post("/runs/{run_id}/usage", {"run_id": run_id}, body=body, key=idempotency_key)
        return await self._change(request)


class AsyncRunsApi(AsyncRunWrites[RunOut]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(RunOut), raise_for_error)
        self.dry_run = AsyncRunWrites(http, reader(RunDryRunOut), raise_for_error, dry_run=True)

    async def list(
        self, *, limit: int = PAGE, cursor: str | None = None, **wanted: Unpack[RunFilters]
    ) -> Page[RunOut]:
        """Return one page, newest first. A page may be short or empty and still have a next one."""
        query = {**wanted, "limit": limit, "cursor": cursor}
        return await self._http.get(Page[RunOut], "/runs", query=query)

    async def summary(self, *, buckets: int | None = None, **wanted: Unpack[RunFilters]) -> RunSummaryOut:
        """Count them by planned time, by status and by error, among the newest 5,000 records."""
        query = {**wanted, "buckets": buckets}
        return await self._http.get(RunSummaryOut, "/runs/summary", query=query)

    async def bulk(
        self,
        action: Literal["retry", "cancel"],
        *,
        ids: Sequence[Ref] | None = None,
        q: str | None = None,
        expected_count: int | None = None,
        reason: str | None = None,
        override: bool = False,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> RunBulkOut:
        """Retry or cancel at most 500 runs: by ids, or by a filter and its expected count."""
        from foliot.wire.bulk import RunBulkOut  # noqa: PLC0415

        body = without_none(
            action=action,
            ids=ids,
            q=q,
            expected_count=expected_count,
            reason=reason,
            override=override,
            dry_run=dry_run,
        )
        return await self._http.read(RunBulkOut, post("/runs/bulk", body=body, key=idempotency_key))

    def each(self, **wanted: Unpack[RunFilters]) -> AsyncIterator[RunOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor, **wanted))

    async def recent(
        self, job: Sequence[Ref], *, limit: int | None = None, since: datetime | str | None = None
    ) -> RecentOut:
        """Return the newest records of up to 100 jobs, at most 60 of each, planned from `since` on."""
        query = {"job": [str(each) for each in job], "limit": limit, "since": since}
        return await self._http.get(RecentOut, "/recent-runs", query=query)

    async def get(self, run_id: Ref) -> RunOut:
        """Return a run with its newest attempts."""
        return await self._http.get(RunOut, "/runs/{run_id}", {"run_id": run_id})

    async def wait(self, run_id: Ref, *, within: float | None = None) -> RunOut:
        """Return the run once it has ended. Raise TimeoutError after `within` seconds."""
        until = None if within is None else monotonic() + within
        pause = FIRST_PAUSE
        while (run := await self.get(run_id)).finished_at is None:
            if until is not None and monotonic() + pause > until:
                raise TimeoutError(f"run {run_id} is {run.status} after {within:g} s")
            await async_sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return run

    async def attempts(self, run_id: Ref) -> AttemptsOut:
        """Return all attempts, oldest first."""
        return await self._http.get(AttemptsOut, "/runs/{run_id}/attempts", {"run_id": run_id})

    async def explain(self, run_id: Ref) -> ExplanationOut:
        """Explain a run; if it waits, why, and its position in line."""
        return await self._http.get(ExplanationOut, "/runs/{run_id}/explain", {"run_id": run_id})

    async def artifacts(self, run_id: Ref) -> ArtifactsOut:
        """Return the files that it stored, also while it runs."""
        return await self._http.get(ArtifactsOut, "/runs/{run_id}/artifacts", {"run_id": run_id})

    async def artifact(self, run_id: Ref, name: str) -> bytes:
        """Return the content of a file."""
        path = {"run_id": run_id, "artifact_name": name}
        return await self._http.download(ApiRequest("GET", "/runs/{run_id}/artifacts/{artifact_name}", path))

    async def logs(
        self, run_id: Ref, *, limit: int = PAGE, cursor: str | None = None, tail: int | None = None
    ) -> LogsOut:
        """Return one page of its log: from the beginning, after line number `cursor`, or the last `tail` lines."""
        query = {"follow": False, "limit": limit, "cursor": cursor, "tail": tail}
        return await self._http.get(LogsOut, "/runs/{run_id}/logs", {"run_id": run_id}, query)

    async def follow_logs(
        self, run_id: Ref, *, cursor: str | None = None
    ) -> AsyncIterator[LogLineOut | LogEndOut]:
        """Yield its log line by line until it ends; the last item is the end."""
        query = {"follow": True, "limit": None, "cursor": cursor}
        request = ApiRequest("GET", "/runs/{run_id}/logs", {"run_id": run_id}, query)
        async for event in events_of(self._http, request):
            if event.event == "end":
                yield parse_json(LogEndOut, event.data, self._http.url)
                return
            if event.event == "line":
                yield parse_json(LogLineOut, event.data, self._http.url)
