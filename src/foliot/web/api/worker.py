"""/worker: the protocol of hosts and remote workers. Only for keys of the scope `worker`."""

from __future__ import annotations

from fastapi import Request, Response

from foliot.domain.ids import WorkerId
from foliot.services.hints import Hint
from foliot.services.workers import remote, remote_register
from foliot.web.api.params import Announcer, Db
from foliot.web.auth import Works
from foliot.web.mapping.worker import (
    artifact_from,
    heartbeat_out,
    held_runs_from,
    log_chunk_from,
    poll_stops,
    poll_work,
    progress_from,
    registration_from,
    report_from,
    speaker_from,
    stops_out,
    work_out,
)
from foliot.web.routes import CONFLICT, WITH_BODY, api_router, max_body_size
from foliot.wire import worker as wire

routes = api_router("worker")
LARGEST = 8 << 20  # bytes: a batch of reports, each with up to a mebibyte of output


@routes.post("/worker/register", status_code=201, responses={**CONFLICT, **WITH_BODY})
async def register_worker(
    hello: wire.RegisterIn, caller: Works, db: Db, request: Request
) -> wire.RegisterOut:
    """Register a worker under a new id. A host keeps its name; the server instances that it names move to it."""
    lease = request.app.state.lease
    made = await remote_register.register(db, speaker_from(caller), registration_from(hello), lease=lease)
    most = request.app.state.artifact_bytes
    return wire.RegisterOut(
        worker_id=made.worker_id, lease=made.lease, host_id=made.host_id, artifact_bytes=most
    )


@routes.post("/worker/heartbeat", responses=WITH_BODY)
async def send_heartbeat(
    sign: wire.HeartbeatIn, caller: Works, db: Db, request: Request
) -> wire.HeartbeatOut:
    """Extend the leases; send it every third of the lease. The answer lists runs to stop."""
    beat = await remote.beat(
        db,
        speaker_from(caller),
        WorkerId(sign.worker_id),
        held_runs_from(sign.working_on),
        draining=sign.draining,
        lease=request.app.state.lease,
    )
    return heartbeat_out(beat)


@routes.post("/worker/stops", responses={**CONFLICT, **WITH_BODY})
async def wait_for_stops(asked: wire.StopsIn, caller: Works, request: Request) -> wire.StopsOut:
    """Wait for runs to stop. Without this call they come with the next heartbeat."""
    return stops_out(await poll_stops(request, caller, asked))


@routes.post("/worker/claim", responses={**CONFLICT, **WITH_BODY})
async def claim_work(
    asked: wire.ClaimIn, caller: Works, request: Request, response: Response
) -> wire.ClaimOut:
    """Claim runs, leased to this worker, with the secrets they need. It waits as long as requested, and answers with none
    when none come.
    """
    response.headers["Cache-Control"] = "no-store"
    found = await poll_work(request, caller, asked)
    return wire.ClaimOut(items=[work_out(each) for each in found])


@routes.post("/worker/log", responses=WITH_BODY)
@max_body_size(LARGEST)
async def write_log(log: wire.LogIn, caller: Works, db: Db, request: Request) -> wire.LogTaken:
    """Append log lines of running runs, numbered by the worker: a repeated line is stored once."""
    chunks, progress = [log_chunk_from(each) for each in log.chunks], progress_from(log.progress)
    return wire.LogTaken(
        taken=await remote.write(
            db,
            speaker_from(caller),
            WorkerId(log.worker_id),
            chunks,
            progress,
            limits=request.app.state.log_limits,
        )
    )


@routes.post("/worker/artifact", status_code=204, responses={**CONFLICT, **WITH_BODY})
@max_body_size(wire.MOST_CONTENT + LARGEST)
async def keep_artifact(artifact: wire.ArtifactIn, caller: Works, db: Db, request: Request) -> None:
    """Store a file of a running run. Refused if another worker holds the run."""
    most, quota = request.app.state.artifact_bytes, caller.quotas.artifact_bytes
    await remote.keep(db, speaker_from(caller), artifact_from(artifact), most_bytes=most, default_quota=quota)


@routes.post("/worker/report", responses=WITH_BODY)
@max_body_size(LARGEST)
async def report_work(report: wire.ReportIn, caller: Works, db: Db, tell: Announcer) -> wire.ReportOut:
    """Report the results of attempts. A result without a valid lease is refused alone, with 409, and audited."""
    ends = [report_from(place, each) for place, each in enumerate(report.reports)]
    accepted = await remote.report(db, speaker_from(caller), WorkerId(report.worker_id), ends)
    if accepted:
        tell(Hint.TIMERS)
        tell(Hint.READY)  # the end of a run may start another
    return wire.ReportOut(
        items=[
            wire.ReportTaken(run_id=each.run_id, fence=each.fence, status=200, code=None)
            if each.run_id in accepted
            else wire.ReportTaken(run_id=each.run_id, fence=each.fence, status=409, code="lease_lost")
            for each in report.reports
        ]
    )


@routes.post("/worker/leave", status_code=204, responses=WITH_BODY)
async def leave_work(leaving: wire.LeaveIn, caller: Works, db: Db, tell: Announcer) -> None:
    """Leave in good order: its runs go to other workers, and no attempt is counted."""
    await remote.leave(db, speaker_from(caller), WorkerId(leaving.worker_id))
    tell(Hint.READY)
