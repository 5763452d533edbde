"""/worker: how hosts and workers elsewhere fetch work and say what came of it. For keys of the scope `worker` alone."""

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
LARGEST = 8 << 20  # bytes: a report carries up to a mebibyte of output, and comes with others


@routes.post("/worker/register", status_code=201, responses={**CONFLICT, **WITH_BODY})
async def register_worker(
    hello: wire.RegisterIn, caller: Works, db: Db, request: Request
) -> wire.RegisterOut:
    """Under a fresh id each time. A host keeps its name; server instances that it names are where it is from now on."""
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
    """A third of the lease apart. What is to be stopped comes back with it."""
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
    """What is to be stopped, as soon as there is anything. Who does not ask hears of it with its next heartbeat."""
    return stops_out(await poll_stops(request, caller, asked))


@routes.post("/worker/claim", responses={**CONFLICT, **WITH_BODY})
async def claim_work(
    asked: wire.ClaimIn, caller: Works, request: Request, response: Response
) -> wire.ClaimOut:
    """Runs to do, leased to this worker, with the secrets they need. Waits for some for as long as is asked, and answers with none
    when none come.
    """
    response.headers["Cache-Control"] = "no-store"
    found = await poll_work(request, caller, asked)
    return wire.ClaimOut(items=[work_out(each) for each in found])


@routes.post("/worker/log", responses=WITH_BODY)
@max_body_size(LARGEST)
async def write_log(told: wire.LogIn, caller: Works, db: Db) -> wire.LogTaken:
    """Lines of runs under way, numbered by their writer: one that comes twice is kept once."""
    chunks, how_far = [log_chunk_from(each) for each in told.chunks], progress_from(told.progress)
    return wire.LogTaken(
        taken=await remote.write(db, speaker_from(caller), WorkerId(told.worker_id), chunks, how_far)
    )


@routes.post("/worker/artifact", status_code=204, responses={**CONFLICT, **WITH_BODY})
@max_body_size(wire.MOST_CONTENT + LARGEST)
async def keep_artifact(artifact: wire.ArtifactIn, caller: Works, db: Db, request: Request) -> None:
    """Keep a file with a run under way. Refused where the run is somebody else's by now."""
    most, room = request.app.state.artifact_bytes, caller.quotas.artifact_bytes
    await remote.keep(db, speaker_from(caller), artifact_from(artifact), most_bytes=most, room=room)


@routes.post("/worker/report", responses=WITH_BODY)
@max_body_size(LARGEST)
async def report_work(told: wire.ReportIn, caller: Works, db: Db, tell: Announcer) -> wire.ReportOut:
    """What came of attempts. One whose lease is somebody else's by now is refused by itself, with 409, and stands in the audit."""
    ends = [report_from(place, each) for place, each in enumerate(told.reports)]
    accepted = await remote.report(db, speaker_from(caller), WorkerId(told.worker_id), ends)
    if accepted:
        tell(Hint.TIMERS)
        tell(Hint.READY)  # the end of one may let another go
    return wire.ReportOut(
        items=[
            wire.ReportTaken(run_id=each.run_id, fence=each.fence, status=200, code=None)
            if each.run_id in accepted
            else wire.ReportTaken(run_id=each.run_id, fence=each.fence, status=409, code="lease_lost")
            for each in told.reports
        ]
    )


@routes.post("/worker/leave", status_code=204, responses=WITH_BODY)
async def leave_work(leaving: wire.LeaveIn, caller: Works, db: Db, tell: Announcer) -> None:
    """In good order: what it still holds goes to others, and nothing is spent."""
    await remote.leave(db, speaker_from(caller), WorkerId(leaving.worker_id))
    tell(Hint.READY)
