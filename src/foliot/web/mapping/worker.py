"""The worker protocol over HTTP: mapping, and long polls, which hold no database connection while they wait."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from random import SystemRandom
from typing import TypeVar, assert_never

from fastapi import Request

from foliot.clock import monotonic
from foliot.domain.access import Permission
from foliot.domain.errors import Invalid, Unavailable
from foliot.domain.ids import RunId, WorkerId, WorkspaceId
from foliot.domain.logs import LogLine, LogStream, lines_of
from foliot.domain.outcomes import (
    AskedRetry,
    AskedSkip,
    Cancelled,
    Failed,
    HandedBack,
    Outcome,
    Succeeded,
    TimedOut,
)
from foliot.domain.run import RunError
from foliot.domain.schedule import SkipReason
from foliot.services.identity.authentication import Authenticator, Caller
from foliot.services.jobs.job_types import JobTypeDescription
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.runs.logs import LogChunk, Progress
from foliot.services.workers import remote
from foliot.services.workers.claim import Work
from foliot.services.workers.remote import RemoteReport
from foliot.services.workers.remote_register import HostIntroduction, RemoteWorkerHello, WorkerPrincipal
from foliot.services.workers.workers import HeartbeatReply
from foliot.web.admission import release_place
from foliot.web.work_signal import WorkSignal
from foliot.wire import worker as wire

LOOK_EVERY = 3.0  # seconds at most between queries without a signal
MOST_WAITING, MOST_OF_A_WORKSPACE = 5_000, 1_000  # at once in one process
MOST_OUTPUT = 4 << 20  # bytes of ASCII JSON; workers keep to less
_UNSAID = RunError("failed", "The attempt failed.")
_chance = SystemRandom()
Found = TypeVar("Found")


async def poll_work(request: Request, caller: Caller, asked: wire.ClaimIn) -> Sequence[Work]:
    """Claim at once, and again on each signal, when the next run may start, and every few seconds, while the key is valid."""
    state, speaker = request.app.state, speaker_from(caller)

    async def look() -> tuple[Sequence[Work], timedelta | None]:
        worker_id = WorkerId(asked.worker_id)
        offer = await remote.claim(
            state.database,
            speaker,
            worker_id,
            asked.types,
            asked.permits,
            state.vault,
            longest=caller.quotas.longest_timeout,
        )
        return offer.work, offer.next_in

    return await _patiently(request, caller, state.bell, asked.wait, look) or ()


async def poll_stops(request: Request, caller: Caller, asked: wire.StopsIn) -> HeartbeatReply:
    """Wait for runs to stop, woken by the signal for cancels."""
    state, speaker = request.app.state, speaker_from(caller)
    working_on, stopping = held_runs_from(asked.working_on), held_runs_from(asked.stopping)

    async def look() -> tuple[HeartbeatReply | None, None]:
        beat = await remote.stops(state.database, speaker, WorkerId(asked.worker_id), working_on, stopping)
        return beat if beat.cancels or beat.gone else None, None

    found = await _patiently(request, caller, state.cancel_bell, asked.wait, look)
    return found or HeartbeatReply(is_alive=True)


async def _patiently(
    request: Request,
    caller: Caller,
    bell: WorkSignal,
    wait: timedelta,
    look: Callable[[], Awaitable[tuple[Found | None, timedelta | None]]],
) -> Found | None:
    """Repeat a query until it finds something or the time is up. A query also returns when the next is worthwhile, if known."""
    state = request.app.state
    stopping: asyncio.Event = state.stopping
    until = monotonic() + min(wait, wire.LONGEST_WAIT).total_seconds()
    waiting: Counter[WorkspaceId] = state.waiting
    if waiting.total() >= MOST_WAITING or waiting[caller.workspace_id] >= MOST_OF_A_WORKSPACE:
        raise Unavailable("Too many workers wait here.", hint="Try again in a moment.")
    waiting[caller.workspace_id] += 1
    try:
        while True:
            mark = bell.mark()
            found, next_in = await look()
            left = until - monotonic()
            if found or left <= 0 or stopping.is_set():
                return found
            naps = [left, LOOK_EVERY * _chance.uniform(0.5, 1)]
            if next_in is not None:
                naps.append(next_in.total_seconds())
            release_place(request)
            await bell.wait(mark, stopping, min(naps))
            if await request.is_disconnected() or not await _still_counts(request, caller):
                return None
    finally:
        waiting[caller.workspace_id] -= 1


def speaker_from(caller: Caller) -> WorkerPrincipal:
    return WorkerPrincipal(caller.workspace_id, caller.holder.principal.id, caller.actor)


def registration_from(given: wire.RegisterIn) -> RemoteWorkerHello:
    host = given.host
    introduction = None if host is None else HostIntroduction(host.name, host.labels, host.instances)
    types = [JobTypeDescription(each.name, each.description, each.config_schema) for each in given.described]
    return RemoteWorkerHello(
        given.name, given.types, given.capacity, given.version, given.queues, introduction, types
    )


def held_runs_from(given: Iterable[wire.RunHeld]) -> list[tuple[RunId, int]]:
    return [(RunId(each.run_id), each.fence) for each in given]


def heartbeat_out(beat: HeartbeatReply) -> wire.HeartbeatOut:
    return wire.HeartbeatOut(alive=beat.is_alive, cancels=_held(beat.cancels), gone=_held(beat.gone))


def stops_out(beat: HeartbeatReply) -> wire.StopsOut:
    return wire.StopsOut(cancels=_held(beat.cancels), gone=_held(beat.gone))


def work_out(work: Work) -> wire.WorkOut:
    claimed = work.claimed
    return wire.WorkOut.from_value(
        claimed,
        job=work.job,
        trigger=claimed.trigger.value,
        left=max(work.left, timedelta(0)),
        config=work.config,
        input=work.input,
        workspace=work.workspace,
        number=work.number,
        triggered_by=work.triggered_by,
        upstream=work.upstream,
        masks=list(work.masks),
    )


def log_chunk_from(given: wire.ChunkIn) -> LogChunk:
    """Replace line breaks inside a line: it is counted as one."""
    lines = [LogLine(line.at, LogStream(line.stream), " ".join(lines_of(line.text))) for line in given.lines]
    return LogChunk(RunId(given.run_id), given.attempt, given.fence, given.first, lines)


def progress_from(reported: Sequence[wire.ProgressIn]) -> dict[tuple[RunId, int], Progress]:
    return {
        (RunId(each.run_id), each.fence): Progress(each.done, each.total, each.note, each.at)
        for each in reported
    }


def artifact_from(given: wire.ArtifactIn) -> NewArtifact:
    try:
        data = b64decode(given.content, validate=True)
    except ValueError:
        raise Invalid("This is not base64.", pointer="/content") from None
    return NewArtifact(
        RunId(given.run_id),
        given.fence,
        WorkerId(given.worker_id),
        given.attempt,
        given.name,
        given.media_type,
        data,
    )


def report_from(place: int, given: wire.ReportItem) -> RemoteReport:
    if len(json.dumps(given.output)) > MOST_OUTPUT:
        raise Invalid(
            f"The output is larger than {MOST_OUTPUT // 1024} KiB as JSON.",
            pointer=f"/reports/{place}/output",
            hint="Keep large results elsewhere and report their address.",
        )
    usage = {unit: amount for unit, amount in given.usage.items() if amount}
    return RemoteReport(RunId(given.run_id), given.fence, _outcome(given), given.output, usage)


def _held(keys: Iterable[tuple[RunId, int]]) -> list[wire.RunHeld]:
    return [wire.RunHeld(run_id=run_id, fence=fence) for run_id, fence in keys]


def _outcome(given: wire.ReportItem) -> Outcome:
    match given.outcome:
        case "succeeded":
            return Succeeded()
        case "failed":
            error = _UNSAID
            if (reported := given.error) is not None:
                error = RunError(reported.code, reported.message, reported.traceback)
            return Failed(error, given.permanent, given.after)
        case "timed_out":
            return TimedOut()
        case "cancelled":
            return Cancelled()
        case "handed_back":
            return HandedBack()
        case "retry":
            return AskedRetry(given.after or timedelta(0))
        case "skipped":
            return AskedSkip(SkipReason.OPERATOR, given.note)
        case _:
            assert_never(given.outcome)


async def _still_counts(request: Request, caller: Caller) -> bool:
    """Return whether the key is still valid after the wait."""
    authenticator: Authenticator = request.app.state.authenticator
    presented = request.headers.get("authorization", "").partition(" ")[2].strip()
    found = await authenticator.enter(presented, None)
    return (
        found is not None
        and found.holder.may(Permission.WORKER)
        and found.workspace_id == caller.workspace_id
    )
