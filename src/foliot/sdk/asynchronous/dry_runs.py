"""`client.jobs.dry_run`: the same verbs, and nothing is kept. Each answers with how the job would stand and what changes ahead."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.keywords import job_body
from foliot.sdk.request import Ask, Ref, given, post, seen
from foliot.wire.dry_run import DryRunOut, RunDryRunOut
from foliot.wire.jobs import JobIn, JobOut, SkipNextOut


class AsyncDryRuns:
    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def create(self, job: JobIn | Mapping[str, Any]) -> DryRunOut:
        ask = post("/jobs", body=job_body(job, {}), query={"dry_run": True})
        return await self._http.ask(DryRunOut, ask)

    async def replace(
        self,
        job_id: Ref,
        job: JobIn | JobOut | Mapping[str, Any],
        *,
        revision: int | None = None,
        force: bool = False,
    ) -> DryRunOut:
        query = {"dry_run": True, "force": force}
        ask = Ask("PUT", "/jobs/{job_id}", {"job_id": job_id}, query, job, seen(revision))
        return await self._http.ask(DryRunOut, ask)

    async def patch(
        self, job_id: Ref, changes: Mapping[str, Any], *, revision: int | None = None, force: bool = False
    ) -> DryRunOut:
        query = {"dry_run": True, "force": force}
        ask = Ask("PATCH", "/jobs/{job_id}", {"job_id": job_id}, query, changes, seen(revision))
        return await self._http.ask(DryRunOut, ask)

    async def delete(
        self, job_id: Ref, *, purge: bool = False, detach: bool = False, force: bool = False
    ) -> DryRunOut:
        query = {"purge": purge, "detach": detach, "force": force, "dry_run": True}
        return await self._http.ask(DryRunOut, Ask("DELETE", "/jobs/{job_id}", {"job_id": job_id}, query))

    async def pause(
        self, job_id: Ref, *, reason: str | None = None, until: datetime | str | None = None
    ) -> DryRunOut:
        body = given(reason=reason, until=until)
        ask = post("/jobs/{job_id}/pause", {"job_id": job_id}, body=body, query={"dry_run": True})
        return await self._http.ask(DryRunOut, ask)

    async def resume(self, job_id: Ref, *, catch_up: bool = False) -> DryRunOut:
        body = given(catch_up=catch_up)
        ask = post("/jobs/{job_id}/resume", {"job_id": job_id}, body=body, query={"dry_run": True})
        return await self._http.ask(DryRunOut, ask)

    async def disable(self, job_id: Ref, *, reason: str | None = None) -> DryRunOut:
        body = given(reason=reason)
        ask = post("/jobs/{job_id}/disable", {"job_id": job_id}, body=body, query={"dry_run": True})
        return await self._http.ask(DryRunOut, ask)

    async def run(
        self,
        job_id: Ref,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  # the name on the wire
        override: bool = False,
    ) -> RunDryRunOut:
        """The run as it would be recorded, and a sentence about it."""
        body, query = given(input=input, override=override), {"dry_run": True}
        ask = post("/jobs/{job_id}/run", {"job_id": job_id}, body=body, query=query)
        return await self._http.ask(RunDryRunOut, ask)

    async def skip_next(
        self,
        job_id: Ref,
        *,
        n: int | None = None,
        until: datetime | str | None = None,
        reason: str | None = None,
    ) -> SkipNextOut:
        body, query = given(n=n, until=until, reason=reason), {"dry_run": True}
        ask = post("/jobs/{job_id}/skip-next", {"job_id": job_id}, body=body, query=query)
        return await self._http.ask(SkipNextOut, ask)

    async def undo_skip_next(self, job_id: Ref) -> DryRunOut:
        query = {"dry_run": True}
        ask = Ask("DELETE", "/jobs/{job_id}/skip-next", {"job_id": job_id}, query)
        return await self._http.ask(DryRunOut, ask)

    async def revert(self, job_id: Ref, revision: int, *, force: bool = False) -> DryRunOut:
        query = {"dry_run": True, "force": force}
        ask = post("/jobs/{job_id}/revert", {"job_id": job_id}, body={"revision": revision}, query=query)
        return await self._http.ask(DryRunOut, ask)
