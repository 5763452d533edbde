# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.worker`: claim runs and report their results, with a key of the scope `worker`, as `foliot host` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foliot.sdk.job_fields import DurationLike
from foliot.sdk.request import ApiRequest, Ref, without_none
from foliot.sdk.synchronous.http import Transport
from foliot.wire.worker import (
    ArtifactIn,
    ChunkIn,
    ClaimOut,
    DescribedType,
    HeartbeatOut,
    HostIn,
    LogTaken,
    ProgressIn,
    RegisterOut,
    ReportItem,
    ReportOut,
    RunHeld,
    StopsOut,
)

Object = Mapping[str, Any]


class WorkerApi:
    """The client repeats none of these: if the response to a claim is lost, the next heartbeat omits the run and it goes to others."""

    def __init__(self, http: Transport) -> None:
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
        described: Sequence[DescribedType | Object] | None = None,
    ) -> RegisterOut:
        """Register a host, or a worker for queues of the workspace. Send a heartbeat within each third of the lease.

        `described` has the config schemas of its types, so that the server validates jobs when they are written.
        """
        body = {"name": name, "types": list(types), "capacity": capacity}
        body |= without_none(queues=queues, host=host, version=version, described=described)
        return self._http.read(RegisterOut, ApiRequest("POST", "/worker/register", body=body))

    def claim(
        self, worker_id: Ref, types: Sequence[str], permits: int = 1, *, wait: DurationLike | None = None
    ) -> ClaimOut:
        """Claim runs; wait up to 30 seconds for one. The client's timeout must be longer."""
        body = {"worker_id": worker_id, "types": list(types), "permits": permits} | without_none(wait=wait)
        return self._http.read(ClaimOut, ApiRequest("POST", "/worker/claim", body=body))

    def heartbeat(
        self, worker_id: Ref, working_on: Sequence[RunHeld | Object] = (), *, draining: bool = False
    ) -> HeartbeatOut:
        """Extend the leases. `working_on` lists all runs, including those not yet reported."""
        body = {"worker_id": worker_id, "working_on": list(working_on), "draining": draining}
        return self._http.read(HeartbeatOut, ApiRequest("POST", "/worker/heartbeat", body=body))

    def stops(
        self,
        worker_id: Ref,
        working_on: Sequence[RunHeld | Object] = (),
        *,
        stopping: Sequence[RunHeld | Object] = (),
        wait: DurationLike | None = None,
    ) -> StopsOut:
        """Wait up to 30 seconds for runs to stop, other than those in `stopping`. A heartbeat returns the same, later."""
        body = {"worker_id": worker_id, "working_on": list(working_on), "stopping": list(stopping)}
        return self._http.read(
            StopsOut, ApiRequest("POST", "/worker/stops", body=body | without_none(wait=wait))
        )

    def log(
        self,
        worker_id: Ref,
        chunks: Sequence[ChunkIn | Object] = (),
        *,
        progress: Sequence[ProgressIn | Object] = (),
    ) -> LogTaken:
        """Send log lines and progress of runs under way."""
        body = {"worker_id": worker_id, "chunks": list(chunks), "progress": list(progress)}
        return self._http.read(LogTaken, ApiRequest("POST", "/worker/log", body=body))

    def keep(self, artifact: ArtifactIn | Object) -> None:
        """Store a file of a run under way, as base64."""
        self._http.call(ApiRequest("POST", "/worker/artifact", body=artifact))

    def report(self, worker_id: Ref, reports: Sequence[ReportItem | Object]) -> ReportOut:
        """Report results. Each is accepted or refused on its own; a repeated report changes nothing."""
        body = {"worker_id": worker_id, "reports": list(reports)}
        return self._http.read(ReportOut, ApiRequest("POST", "/worker/report", body=body))

    def leave(self, worker_id: Ref) -> None:
        """Deregister. Its runs go to others at once."""
        self._http.call(ApiRequest("POST", "/worker/leave", body={"worker_id": worker_id}))
