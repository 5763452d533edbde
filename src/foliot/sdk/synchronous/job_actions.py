# Made from sdk/asynchronous by ./dev format; edit it there.
"""Control jobs, one or many at a time: a part of `client.jobs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from foliot.sdk.request import ApiRequest, Ref, post, without_none
from foliot.sdk.response import Reader, reader
from foliot.sdk.synchronous.http import Changed, Gone, Transport, Writes
from foliot.wire.jobs import BackfillOut, SkipNextOut

if TYPE_CHECKING:
    from foliot.wire.bulk import BulkAction, BulkArgs, BulkOut

Ran = TypeVar("Ran")


class JobActions(Writes[Changed, Gone], Generic[Changed, Gone, Ran]):
    def __init__(
        self,
        http: Transport,
        changed: Reader[Changed],
        gone: Reader[Gone],
        ran: Reader[Ran],
        *,
        dry_run: bool = False,
    ) -> None:
        super().__init__(http, changed, gone, dry_run=dry_run)
        self._ran = ran

    def run(
        self,
        job_id: Ref,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  # the name on the wire
        override: bool = False,
        idempotency_key: str | None = None,
    ) -> Ran:
        """Run a job now. `input` is merged over its payload; `override` runs it even during a freeze."""
        body = without_none(input=input, override=override)
        request = post("/jobs/{job_id}/run", {"job_id": job_id}, body=body, key=idempotency_key)
        return self._write(self._ran, request)

    def pause(
        self,
        job_id: Ref,
        *,
        reason: str | None = None,
        until: datetime | str | None = None,
        drop_queued: bool = False,
    ) -> Changed:
        """Pause a job: its schedule starts no run until it is resumed, or until `until`. `drop_queued` skips scheduled runs that
        no worker has yet.
        """
        body = without_none(reason=reason, until=until, drop_queued=drop_queued or None)
        return self._change(post("/jobs/{job_id}/pause", {"job_id": job_id}, body=body))

    def resume(self, job_id: Ref, *, catch_up: bool = False) -> Changed:
        """Resume a job. `catch_up` runs the missed times, as its misfire policy says."""
        request = post("/jobs/{job_id}/resume", {"job_id": job_id}, body=without_none(catch_up=catch_up))
        return self._change(request)

    def disable(self, job_id: Ref, *, reason: str | None = None) -> Changed:
        """Disable a job until it is resumed."""
        request = post("/jobs/{job_id}/disable", {"job_id": job_id}, body=without_none(reason=reason))
        return self._change(request)

    def restore(self, job_id: Ref) -> Changed:
        """Bring a job back from the archive, with its history. It is disabled until `resume`."""
        return self._change(post("/jobs/{job_id}/restore", {"job_id": job_id}))

    def skip_next(
        self,
        job_id: Ref,
        *,
        n: int | None = None,
        until: datetime | str | None = None,
        reason: str | None = None,
    ) -> SkipNextOut:
        """Skip the next planned time, the next `n`, or all `until` an instant."""
        body = without_none(n=n, until=until, reason=reason)
        request = post("/jobs/{job_id}/skip-next", {"job_id": job_id}, body=body)
        return self._write(reader(SkipNextOut), request)

    def undo_skip_next(self, job_id: Ref) -> Changed:
        """Undo `skip_next`."""
        return self._change(ApiRequest("DELETE", "/jobs/{job_id}/skip-next", {"job_id": job_id}))

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
        """Create runs for past planned times that have no record. With `dry_run` only count them."""
        body = {"from": start, "to": end, "skipped": skipped, "dry_run": dry_run} | without_none(
            order=order, max=max
        )
        request = post("/jobs/{job_id}/backfill", {"job_id": job_id}, body=body)
        return self._http.read(BackfillOut, request)

    def bulk(
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
        """Pause, resume, disable, enable, archive, run, tag, untag or hand over many jobs: by ids, or by a filter and its expected count.

        While some are `remaining`, call again with `after` set to `next_after` of the result.
        """
        from foliot.wire.bulk import BulkOut  # noqa: PLC0415

        body = without_none(
            action=action,
            ids=ids,
            q=q,
            expected_count=expected_count,
            after=after,
            dry_run=dry_run,
            args=args,
        )
        return self._http.read(BulkOut, post("/jobs/bulk", body=body))

    def batch_delete(
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
        """Archive many jobs, or delete them with their history (`purge`)."""
        from foliot.wire.bulk import BulkOut  # noqa: PLC0415

        body = without_none(
            ids=ids,
            q=q,
            expected_count=expected_count,
            after=after,
            dry_run=dry_run,
            purge=purge,
            detach=detach,
            force=force,
        )
        return self._http.read(BulkOut, post("/jobs/batch-delete", body=body))
