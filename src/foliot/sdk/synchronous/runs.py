# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.runs`: the records of what ran and what did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from foliot.sdk.keywords import RunFilters
from foliot.sdk.request import Ask, Ref, given, post
from foliot.sdk.response import check, read_text, reader
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.paging import each_of
from foliot.sdk.synchronous.sse import events_of
from foliot.sdk.synchronous.writes import Changed, Writes
from foliot.wire.dry_run import RunDryRunOut
from foliot.wire.reports import ExplanationOut
from foliot.wire.runs import ArtifactsOut, AttemptsOut, LogEndOut, LogLineOut, LogsOut, RunOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class RunWrites(Writes[Changed, None]):
    def cancel(self, run_id: Ref, *, reason: str | None = None, force: bool = False) -> Changed:
        """End it; one that is running is asked to stop, and `force` does not wait for that."""
        body = given(reason=reason, force=force)
        return self._write(self._changed, post("/runs/{run_id}/cancel", {"run_id": run_id}, body=body))

    def retry(
        self,
        run_id: Ref,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  # the name on the wire
        override: bool = False,
        idempotency_key: str | None = None,
    ) -> Changed:
        """Do a finished run again, as a new run. `input` is laid over what the first was given."""
        body = given(input=input, override=override)
        ask = post("/runs/{run_id}/retry", {"run_id": run_id}, body=body, key=idempotency_key)
        return self._write(self._changed, ask)


class Runs(RunWrites[RunOut]):
    def __init__(self, http: Http) -> None:
        super().__init__(http, reader(RunOut), check)
        self.dry_run = RunWrites(http, reader(RunDryRunOut), check, dry_run=True)

    def list(
        self, *, limit: int = PAGE, cursor: str | None = None, **wanted: Unpack[RunFilters]
    ) -> Page[RunOut]:
        """One page, newest first. A page may be short, or empty, and still have a next one."""
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
        return self._http.ask(Page[RunOut], Ask("GET", "/runs", query=query))

    def each(self, **wanted: Unpack[RunFilters]) -> Iterator[RunOut]:
        """All of them, page after page."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor, **wanted))

    def get(self, run_id: Ref) -> RunOut:
        """With its newest attempts."""
        return self._http.ask(RunOut, Ask("GET", "/runs/{run_id}", {"run_id": run_id}))

    def attempts(self, run_id: Ref) -> AttemptsOut:
        """Every try, oldest first."""
        return self._http.ask(AttemptsOut, Ask("GET", "/runs/{run_id}/attempts", {"run_id": run_id}))

    def explain(self, run_id: Ref) -> ExplanationOut:
        """What became of it; of one that waits, what for, and its place in the line."""
        return self._http.ask(ExplanationOut, Ask("GET", "/runs/{run_id}/explain", {"run_id": run_id}))

    def artifacts(self, run_id: Ref) -> ArtifactsOut:
        """The files that it kept, also while it runs."""
        return self._http.ask(ArtifactsOut, Ask("GET", "/runs/{run_id}/artifacts", {"run_id": run_id}))

    def artifact(self, run_id: Ref, name: str) -> bytes:
        """The content of one of them."""
        path = {"run_id": run_id, "artifact_name": name}
        return self._http.fetch(Ask("GET", "/runs/{run_id}/artifacts/{artifact_name}", path))

    def logs(self, run_id: Ref, *, limit: int = PAGE, cursor: str | None = None) -> LogsOut:
        """One page of what it wrote, from the beginning, or after the line with the number `cursor`."""
        query = {"follow": False, "limit": limit, "cursor": cursor}
        return self._http.ask(LogsOut, Ask("GET", "/runs/{run_id}/logs", {"run_id": run_id}, query))

    def follow_logs(self, run_id: Ref, *, cursor: str | None = None) -> Iterator[LogLineOut | LogEndOut]:
        """What it wrote and writes, line by line, until it ends: that is the last thing to come."""
        query = {"follow": True, "limit": None, "cursor": cursor}
        ask = Ask("GET", "/runs/{run_id}/logs", {"run_id": run_id}, query)
        for event in events_of(self._http, ask):
            if event.event == "end":
                yield read_text(LogEndOut, event.data, self._http.url)
                return
            if event.event == "line":
                yield read_text(LogLineOut, event.data, self._http.url)
