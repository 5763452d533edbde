# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.jobs.dry_run`: the same verbs, and nothing is kept. Each answers with how the job would stand and what changes ahead."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from foliot.sdk.keywords import job_body
from foliot.sdk.request import Ask, Ref, given, post, seen
from foliot.sdk.synchronous.http import Http
from foliot.wire.dry_run import DryRunOut, RunDryRunOut
from foliot.wire.jobs import JobIn, JobOut, SkipNextOut


class DryRuns:
    def __init__(self, http: Http) -> None:
        self._http = http

    def create(self, job: JobIn | Mapping[str, Any]) -> DryRunOut:
        ask = post("/jobs", body=job_body(job, {}), query={"dry_run": True})
        return self._http.ask(DryRunOut, ask)

    def replace(
        self,
        job_id: Ref,
        job: JobIn | JobOut | Mapping[str, Any],
        *,
        revision: int | None = None,
        force: bool = False,
    ) -> DryRunOut:
        query = {"dry_run": True, "force": force}
        ask = Ask("PUT", "/jobs/{job_id}", {"job_id": job_id}, query, job, seen(revision))
        return self._http.ask(DryRunOut, ask)

    def patch(
        self, job_id: Ref, changes: Mapping[str, Any], *, revision: int | None = None, force: bool = False
    ) -> DryRunOut:
        query = {"dry_run": True, "force": force}
        ask = Ask("PATCH", "/jobs/{job_id}", {"job_id": job_id}, query, changes, seen(revision))
        return self._http.ask(DryRunOut, ask)

    def delete(
        self, job_id: Ref, *, purge: bool = False, detach: bool = False, force: bool = False
    ) -> DryRunOut:
        query = {"purge": purge, "detach": detach, "force": force, "dry_run": True}
        return self._http.ask(DryRunOut, Ask("DELETE", "/jobs/{job_id}", {"job_id": job_id}, query))

    def pause(
        self, job_id: Ref, *, reason: str | None = None, until: datetime | str | None = None
    ) -> DryRunOut:
        body = given(reason=reason, until=until)
        ask = post("/jobs/{job_id}/pause", {"job_id": job_id}, body=body, query={"dry_run": True})
        return self._http.ask(DryRunOut, ask)

    def resume(self, job_id: Ref, *, catch_up: bool = False) -> DryRunOut:
        body = given(catch_up=catch_up)
        ask = post("/jobs/{job_id}/resume", {"job_id": job_id}, body=body, query={"dry_run": True})
        return self._http.ask(DryRunOut, ask)

    def disable(self, job_id: Ref, *, reason: str | None = None) -> DryRunOut:
        body = given(reason=reason)
        ask = post("/jobs/{job_id}/disable", {"job_id": job_id}, body=body, query={"dry_run": True})
        return self._http.ask(DryRunOut, ask)

    def run(
        self,
        job_id: Ref,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  # the name on the wire
        override: bool = False,
    ) -> RunDryRunOut:
        """The run as it would be recorded, and a sentence about it."""
        body, query = given(input=input, override=override), {"dry_run": True}
        ask = post("/jobs/{job_id}/run", {"job_id": job_id}, body=body, query=query)
        return self._http.ask(RunDryRunOut, ask)

    def skip_next(
        self,
        job_id: Ref,
        *,
        n: int | None = None,
        until: datetime | str | None = None,
        reason: str | None = None,
    ) -> SkipNextOut:
        body, query = given(n=n, until=until, reason=reason), {"dry_run": True}
        ask = post("/jobs/{job_id}/skip-next", {"job_id": job_id}, body=body, query=query)
        return self._http.ask(SkipNextOut, ask)

    def undo_skip_next(self, job_id: Ref) -> DryRunOut:
        query = {"dry_run": True}
        ask = Ask("DELETE", "/jobs/{job_id}/skip-next", {"job_id": job_id}, query)
        return self._http.ask(DryRunOut, ask)

    def revert(self, job_id: Ref, revision: int, *, force: bool = False) -> DryRunOut:
        query = {"dry_run": True, "force": force}
        ask = post("/jobs/{job_id}/revert", {"job_id": job_id}, body={"revision": revision}, query=query)
        return self._http.ask(DryRunOut, ask)
