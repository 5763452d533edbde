"""Operate jobs, one or many at once: a part of `client.jobs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.writes import AsyncWrites, Changed, Gone
from foliot.sdk.request import Ask, Ref, given, post
from foliot.sdk.response import Reader, reader
from foliot.wire.bulk import BulkAction, BulkArgs, BulkOut
from foliot.wire.jobs import BackfillOut, SkipNextOut

Ran = TypeVar("Ran")


class AsyncJobActions(AsyncWrites[Changed, Gone], Generic[Changed, Gone, Ran]):
    def __init__(
        self,
        http: AsyncHttp,
        changed: Reader[Changed],
        gone: Reader[Gone],
        ran: Reader[Ran],
        *,
        dry_run: bool = False,
    ) -> None:
        super().__init__(http, changed, gone, dry_run=dry_run)
        self._ran = ran

    async def run(
        self,
        job_id: Ref,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  # the name on the wire
        override: bool = False,
        idempotency_key: str | None = None,
    ) -> Ran:
        """Run it now. `input` is laid over the job's payload; `override` runs it even while frozen."""
        body = given(input=input, override=override)
        ask = post("/jobs/{job_id}/run", {"job_id": job_id}, body=body, key=idempotency_key)
        return await self._write(self._ran, ask)

    async def pause(
        self, job_id: Ref, *, reason: str | None = None, until: datetime | str | None = None
    ) -> Changed:
        """No run starts by schedule until it is resumed, or `until` has come."""
        ask = post("/jobs/{job_id}/pause", {"job_id": job_id}, body=given(reason=reason, until=until))
        return await self._write(self._changed, ask)

    async def resume(self, job_id: Ref, *, catch_up: bool = False) -> Changed:
        """Back to work; `catch_up` runs what went by meanwhile, as the job's misfire policy says."""
        ask = post("/jobs/{job_id}/resume", {"job_id": job_id}, body=given(catch_up=catch_up))
        return await self._write(self._changed, ask)

    async def disable(self, job_id: Ref, *, reason: str | None = None) -> Changed:
        """Switch it off: a pause without an end. `resume` switches it on again."""
        ask = post("/jobs/{job_id}/disable", {"job_id": job_id}, body=given(reason=reason))
        return await self._write(self._changed, ask)

    async def skip_next(
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
        return await self._write(reader(SkipNextOut), ask)

    async def undo_skip_next(self, job_id: Ref) -> Changed:
        """No planned time is to pass after all."""
        return await self._write(self._changed, Ask("DELETE", "/jobs/{job_id}/skip-next", {"job_id": job_id}))

    async def backfill(
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
        return await self._http.ask(BackfillOut, ask)

    async def bulk(
        self,
        action: BulkAction,
        *,
        ids: Sequence[Ref] | None = None,
        q: str | None = None,
        expected_count: int | None = None,
        after: Ref | None = None,
        dry_run: bool = False,
        args: BulkArgs | Mapping[str, Any] | None = None,
    ) -> BulkOut:
        """Pause, resume, disable, enable, archive, run, tag or untag many: by ids, or by a filter and how many it should find.

        Where some `remaining`, ask again with `after`: the answer's `next_after`.
        """
        body = given(
            action=action,
            ids=ids,
            q=q,
            expected_count=expected_count,
            after=after,
            dry_run=dry_run,
            args=args,
        )
        return await self._http.ask(BulkOut, post("/jobs/bulk", body=body))

    async def batch_delete(
        self,
        *,
        ids: Sequence[Ref] | None = None,
        q: str | None = None,
        expected_count: int | None = None,
        after: Ref | None = None,
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
            after=after,
            dry_run=dry_run,
            purge=purge,
            detach=detach,
            force=force,
        )
        return await self._http.ask(BulkOut, post("/jobs/batch-delete", body=body))
