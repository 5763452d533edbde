"""The link of a remote host: the protocol of `link.py` over HTTPS, through the client."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, assert_never

from foliot import __version__
from foliot.domain.artifacts import MOST_BYTES, check_artifact
from foliot.domain.errors import Conflict, Denied, FoliotError, Invalid, NotFound, Unavailable, WorkerGone
from foliot.domain.ids import JobId, RunId, WorkerId, WorkspaceId
from foliot.domain.outcomes import (
    AskedRetry,
    AskedSkip,
    Cancelled,
    Expired,
    Failed,
    HandedBack,
    Lost,
    Outcome,
    Succeeded,
    TimedOut,
)
from foliot.domain.run import Trigger
from foliot.sdk import AsyncClient, errors
from foliot.sdk.request import to_json
from foliot.services.jobs.job_types import JobTypeDescription
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.runs.logs import LogChunk, Progress
from foliot.services.settlement.report import Report
from foliot.services.workers.claim import Claimed, ClaimSize, Work
from foliot.services.workers.workers import LEASE, HeartbeatReply
from foliot.wire import worker as wire

WAIT = timedelta(seconds=20)  # for work, in one request
ANSWER_WITHIN = 30.0  # seconds; longer than the wait
LARGEST = 3 << 20  # bytes of one request, about; the server accepts more
Key = tuple[RunId, int]  # a run and its fence
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerIntroduction:
    """A worker's registration. Without a host it serves queues of the workspace."""

    name: str
    host: wire.HostIn | None = None
    queues: Sequence[str] = ("*",)
    described: Sequence[JobTypeDescription] = ()  # its job types and the schemas of their configs


class HttpLink:
    """A client belongs to one event loop: the heartbeat, in its own thread, has a link of its own."""

    def __init__(self, client: AsyncClient, introduction: WorkerIntroduction) -> None:
        self.lease = LEASE  # until the server names another
        self.most_artifact_bytes = MOST_BYTES  # until the server names another
        self._worker_id: WorkerId | None = None
        self._client = client
        self._introduction = introduction

    async def register(self, types: Sequence[str], capacity: int) -> WorkerId:
        me = self._introduction
        queues = None if me.host else list(me.queues)
        described = [
            wire.DescribedType(
                name=each.name, description=each.description, config_schema=dict(each.config_schema)
            )
            for each in me.described
        ]
        with _translate_refusals():
            answer = await self._client.worker.register(
                me.name,
                types,
                capacity,
                queues=queues,
                host=me.host,
                version=__version__,
                described=described or None,
            )
        self.lease = answer.lease
        self.most_artifact_bytes = answer.artifact_bytes
        self._worker_id = WorkerId(answer.worker_id)
        return self._worker_id

    async def beat(
        self, worker_id: WorkerId, working_on: Collection[Key], *, draining: bool
    ) -> HeartbeatReply:
        with _translate_errors():
            answer = await self._client.worker.heartbeat(worker_id, _held(working_on), draining=draining)
        return HeartbeatReply(answer.alive, _keys(answer.cancels), _keys(answer.gone))

    async def stops(
        self, worker_id: WorkerId, working_on: Collection[Key], stopping: Collection[Key]
    ) -> HeartbeatReply:
        """Wait until there is a run to stop, or the time is up."""
        with _translate_errors():
            answer = await self._client.worker.stops(
                worker_id, _held(working_on), stopping=_held(stopping), wait=WAIT
            )
        return HeartbeatReply(is_alive=True, cancels=_keys(answer.cancels), gone=_keys(answer.gone))

    async def leave(self, worker_id: WorkerId) -> None:
        with _translate_errors():
            await self._client.worker.leave(worker_id)

    async def claim(self, worker_id: WorkerId, types: Sequence[str], size: ClaimSize) -> list[Work]:
        """Claim up to the permits: the server gives this worker the runs of one workspace only."""
        with _translate_errors():
            answer = await self._client.worker.claim(worker_id, types, size.permits, wait=WAIT)
        return [_work(each) for each in answer.items]

    async def report(self, reports: Sequence[Report]) -> frozenset[RunId]:
        accepted: set[RunId] = set()
        for worker_id, items in _by_worker(reports):
            for piece in _pieces(items, wire.MOST_REPORTS):
                with _translate_errors():
                    answer = await self._client.worker.report(worker_id, piece)
                accepted.update(RunId(each.run_id) for each in answer.items if each.status == 200)
        return frozenset(accepted)

    async def log(self, chunks: Sequence[LogChunk]) -> None:
        """Send lines as the worker that registered last; the server drops lines of runs that it does not hold."""
        worker_id = self._worker_id
        if worker_id is None:
            return
        for piece in _pieces([_chunk(each) for each in chunks], 100):
            with _translate_errors():
                await self._client.worker.log(worker_id, piece)

    async def artifact(self, given: NewArtifact) -> None:
        # The server's own check: what it would refuse is not sent.
        most = min(self.most_artifact_bytes, wire.MOST_CONTENT // 4 * 3)
        check_artifact(given.name, given.media_type, len(given.data), most)
        sent = wire.ArtifactIn(
            worker_id=given.worker_id,
            run_id=given.run_id,
            fence=given.fence,
            attempt=given.attempt,
            name=given.name,
            media_type=given.media_type,
            content=b64encode(given.data).decode(),
        )
        with _translate_errors():
            await self._client.worker.keep(sent)

    async def progress(self, latest: Mapping[tuple[RunId, int], Progress]) -> None:
        if (worker_id := self._worker_id) is None:
            return
        items = [
            wire.ProgressIn(
                run_id=run_id, fence=fence, done=each.done, total=each.total, note=each.note, at=each.at
            )
            for (run_id, fence), each in latest.items()
        ]
        for piece in _pieces(items, wire.MOST_REPORTS):
            with _translate_errors():
                await self._client.worker.log(worker_id, progress=piece)

    async def unknown(self, worker_id: WorkerId, known: frozenset[tuple[RunId, int]]) -> list[Report]:
        """Return none: the server itself gives runs that no heartbeat names to other workers."""
        return []


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate errors of the client. A refused key may become valid again, so it is Unavailable: reports are kept until then."""
    try:
        yield
    except (errors.Unauthorized, errors.Denied) as error:
        raise Unavailable(error.message, hint=error.hint) from error
    except errors.FoliotApiError as error:
        raise _translated(error) from error


@contextmanager
def _translate_refusals() -> Iterator[None]:
    """Translate errors of a registration: the operator must see why the server refuses this host."""
    try:
        yield
    except (errors.Unauthorized, errors.Denied) as error:
        raise Denied(error.message, hint=error.hint) from error
    except errors.NotFound as error:
        raise NotFound(
            "What answers at this address takes no workers, or has no such workspace.",
            hint="--server is the address of the server alone, such as https://foliot.example.com.",
        ) from error
    except errors.FoliotApiError as error:
        raise _translated(error) from error


def _translated(error: errors.FoliotApiError) -> FoliotError:
    if error.code == WorkerGone.code:
        return WorkerGone(error.message, hint=error.hint)
    if isinstance(error, errors.Conflict):
        return Conflict(error.message, hint=error.hint)
    if isinstance(error, errors.Invalid):
        return Invalid(str(error), hint=error.hint)
    return Unavailable(error.message, hint=error.hint)


def _by_worker(reports: Sequence[Report]) -> Iterator[tuple[WorkerId, list[wire.ReportItem]]]:
    """Group reports by worker id. A run started under an earlier id is reported under that one, and refused."""
    for worker_id in dict.fromkeys(each.worker_id for each in reports):
        yield worker_id, [_report_item(each) for each in reports if each.worker_id == worker_id]


def _pieces(items: Sequence[T], most: int) -> Iterator[list[T]]:
    piece: list[T] = []
    size = 0
    for item in items:
        weight = len(to_json(item))
        if piece and (size + weight > LARGEST or len(piece) >= most):
            yield piece
            piece, size = [], 0
        piece.append(item)
        size += weight
    if piece:
        yield piece


def _report_item(report: Report) -> wire.ReportItem:
    fields: dict[str, Any] = {"run_id": report.run_id, "fence": report.fence}
    if report.output is not None:
        fields["output"] = report.output
    if report.usage:
        fields["usage"] = dict(report.usage)
    return wire.ReportItem(**fields, **_outcome(report.outcome))


def _outcome(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Succeeded():
            return {"outcome": "succeeded"}
        case Failed(error=error, permanent=permanent, not_before=least):
            reported = wire.ReportError(
                code=error.code or "failed", message=error.message, traceback=error.traceback
            )
            return {"outcome": "failed", "error": reported, "permanent": permanent, "after": least}
        case TimedOut():
            return {"outcome": "timed_out"}
        case Cancelled():
            return {"outcome": "cancelled"}
        case AskedRetry(after=after):
            return {"outcome": "retry", "after": after}
        case AskedSkip(note=note):
            return {"outcome": "skipped", "note": note}
        case HandedBack() | Lost() | Expired():  # a worker never reports the last two
            return {"outcome": "handed_back"}
        case _:
            assert_never(outcome)


def _chunk(chunk: LogChunk) -> wire.ChunkIn:
    lines = [wire.LineIn(at=line.at, stream=line.stream.value, text=line.text) for line in chunk.lines]
    return wire.ChunkIn(
        run_id=chunk.run_id, fence=chunk.fence, attempt=chunk.attempt, first=chunk.first, lines=lines
    )


def _work(item: wire.WorkOut) -> Work:
    claimed = Claimed(
        WorkspaceId(item.workspace_id),
        RunId(item.run_id),
        JobId(item.job_id),
        item.fence,
        item.type,
        item.planned_for,
        item.attempt,
        item.deadline_at,
        Trigger(item.trigger),
    )
    facts = item.job, item.config, item.input, item.left, tuple(item.masks)
    return Work(claimed, *facts, item.workspace, item.number, item.triggered_by, item.upstream)


def _held(keys: Iterable[Key]) -> list[wire.RunHeld]:
    return [wire.RunHeld(run_id=run_id, fence=fence) for run_id, fence in keys]


def _keys(held: Iterable[wire.RunHeld]) -> list[Key]:
    return [(RunId(each.run_id), each.fence) for each in held]
