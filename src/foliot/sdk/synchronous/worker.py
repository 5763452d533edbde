# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.worker`: fetch work and say what came of it, with a key of the scope `worker`. What `foliot host` does, in your own program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foliot.sdk.job_fields import DurationLike
from foliot.sdk.request import Ask, Ref, given
from foliot.sdk.synchronous.http import Http
from foliot.wire.worker import (
    ArtifactIn,
    ChunkIn,
    ClaimOut,
    HeartbeatOut,
    HostIn,
    LogTaken,
    ProgressIn,
    RegisterOut,
    ReportItem,
    ReportOut,
    RunHeld,
    StopsOut,
    TypeTold,
)

Object = Mapping[str, Any]


class Worker:
    """None of this is sent again by itself: a claim whose answer was lost is given to others when a heartbeat does not name it."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def register(
        self,
        name: str,
        types: Sequence[str],
        capacity: int,
        *,
        queues: Sequence[str] | None = None,
        host: HostIn | Object | None = None,
        version: str | None = None,
        described: Sequence[TypeTold | Object] | None = None,
    ) -> RegisterOut:
        """A host, or a worker for queues of the workspace. Within each third of the lease it must be heard of.

        `described` says what configs of its types look like, for the server to check them when jobs are written.
        """
        body = {"name": name, "types": list(types), "capacity": capacity}
        body |= given(queues=queues, host=host, version=version, described=described)
        return self._http.ask(RegisterOut, Ask("POST", "/worker/register", body=body))

    def claim(
        self, worker_id: Ref, types: Sequence[str], permits: int = 1, *, wait: DurationLike | None = None
    ) -> ClaimOut:
        """Waits for work, 30 seconds at most: the client's timeout must be longer."""
        body = {"worker_id": worker_id, "types": list(types), "permits": permits} | given(wait=wait)
        return self._http.ask(ClaimOut, Ask("POST", "/worker/claim", body=body))

    def heartbeat(
        self, worker_id: Ref, working_on: Sequence[RunHeld | Object] = (), *, draining: bool = False
    ) -> HeartbeatOut:
        """`working_on` is everything it has, what is still to be reported included."""
        body = {"worker_id": worker_id, "working_on": list(working_on), "draining": draining}
        return self._http.ask(HeartbeatOut, Ask("POST", "/worker/heartbeat", body=body))

    def stops(
        self,
        worker_id: Ref,
        working_on: Sequence[RunHeld | Object] = (),
        *,
        stopping: Sequence[RunHeld | Object] = (),
        wait: DurationLike | None = None,
    ) -> StopsOut:
        """Waits until something is to be stopped beside `stopping`, 30 seconds at most. A heartbeat says the same, later."""
        body = {"worker_id": worker_id, "working_on": list(working_on), "stopping": list(stopping)}
        return self._http.ask(StopsOut, Ask("POST", "/worker/stops", body=body | given(wait=wait)))

    def log(
        self,
        worker_id: Ref,
        chunks: Sequence[ChunkIn | Object] = (),
        *,
        progress: Sequence[ProgressIn | Object] = (),
    ) -> LogTaken:
        """Lines of runs under way, and how far these are."""
        body = {"worker_id": worker_id, "chunks": list(chunks), "progress": list(progress)}
        return self._http.ask(LogTaken, Ask("POST", "/worker/log", body=body))

    def keep(self, artifact: ArtifactIn | Object) -> None:
        """A file of a run under way, as base64."""
        self._http.tell(Ask("POST", "/worker/artifact", body=artifact))

    def report(self, worker_id: Ref, reports: Sequence[ReportItem | Object]) -> ReportOut:
        """Each is taken or refused by itself; one that was taken before is taken again, and changes nothing."""
        body = {"worker_id": worker_id, "reports": list(reports)}
        return self._http.ask(ReportOut, Ask("POST", "/worker/report", body=body))

    def leave(self, worker_id: Ref) -> None:
        """What it still holds goes to others at once."""
        self._http.tell(Ask("POST", "/worker/leave", body={"worker_id": worker_id}))
