"""The worker's link to Foliot: directly to the services here; `http_link.py` implements the same protocol over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from foliot.domain.artifacts import MOST_BYTES
from foliot.domain.ids import RunId, WorkerId
from foliot.domain.logs import DEFAULT_LIMITS, LogLimits
from foliot.domain.outcomes import HandedBack
from foliot.domain.policy import LONGEST_WAIT
from foliot.services import Database
from foliot.services.jobs.job_types import JobTypeDescription
from foliot.services.runs import artifacts, logs
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.runs.logs import LogChunk, Progress
from foliot.services.secrets.vault import Vault
from foliot.services.settlement.report import Report, report
from foliot.services.workers import workers
from foliot.services.workers.claim import Claimer, ClaimSize, Turns, Work, claim_work
from foliot.services.workers.refusals import audit_refused
from foliot.services.workers.workers import HeartbeatReply

log = logging.getLogger(__name__)


class Link(Protocol):
    most_artifact_bytes: int  # larger artifacts are not sent

    async def register(self, types: Sequence[str], capacity: int) -> WorkerId: ...

    async def beat(
        self, worker_id: WorkerId, working_on: Collection[tuple[RunId, int]], *, draining: bool
    ) -> HeartbeatReply: ...

    async def leave(self, worker_id: WorkerId) -> None: ...

    async def claim(self, worker_id: WorkerId, types: Sequence[str], size: ClaimSize) -> list[Work]: ...

    async def report(self, reports: Sequence[Report]) -> frozenset[RunId]: ...

    async def log(self, chunks: Sequence[LogChunk]) -> None: ...

    async def artifact(self, given: NewArtifact) -> None:
        """Store an artifact, or raise the error that refuses it."""
        ...

    async def progress(self, latest: Mapping[tuple[RunId, int], Progress]) -> None: ...

    async def unknown(self, worker_id: WorkerId, known: frozenset[tuple[RunId, int]]) -> list[Report]:
        """Return hand-backs of the runs that the database leases to this worker and that it does not know: a claim's answer was lost."""
        ...


@dataclass(slots=True)
class LocalLink:
    database: Database
    name: str
    lease: timedelta = workers.LEASE
    queues: Sequence[str] = ("*",)
    vault: Vault | None = None  # without one, runs that need secrets fail
    most_artifact_bytes: int = MOST_BYTES
    described: Sequence[JobTypeDescription] = ()  # its job types, for servers that do not have them
    longest_timeout: timedelta = LONGEST_WAIT  # jobs with a longer one are ended after this
    artifact_quota: int | None = None  # bytes, for workspaces without a quota of their own
    log_limits: LogLimits = DEFAULT_LIMITS
    _turns: dict[tuple[str, ...], Turns] = field(default_factory=dict)  # by the types of a claim

    async def register(self, types: Sequence[str], capacity: int) -> WorkerId:
        return await workers.register(
            self.database, self.name, self.queues, types, capacity, lease=self.lease, described=self.described
        )

    async def beat(
        self, worker_id: WorkerId, working_on: Collection[tuple[RunId, int]], *, draining: bool
    ) -> HeartbeatReply:
        return await workers.beat(
            self.database, worker_id, draining=draining, working_on=working_on, lease=self.lease
        )

    async def leave(self, worker_id: WorkerId) -> None:
        await workers.leave(self.database, worker_id)

    async def claim(self, worker_id: WorkerId, types: Sequence[str], size: ClaimSize) -> list[Work]:
        found: list[Work] = []
        turns = self._turns.setdefault(tuple(types), Turns())
        for queue in self.queues:
            if len(found) < size.permits:
                left = size._replace(permits=size.permits - len(found))
                claimer = Claimer(worker_id, queue, types, left, turns, longest=self.longest_timeout)
                loaded, orphans = await claim_work(self.database, claimer, self.vault)
                found += loaded
                for each in orphans:  # the sweeper ends its lease at its deadline
                    log.error("run.orphaned", extra={"run": str(each.run_id), "job": str(each.job_id)})
        return found

    async def report(self, reports: Sequence[Report]) -> frozenset[RunId]:
        accepted = await report(self.database, reports)
        if len(accepted) < len(reports):
            await audit_refused(self.database, [each for each in reports if each.run_id not in accepted])
        return accepted

    async def log(self, chunks: Sequence[LogChunk]) -> None:
        await logs.append(self.database, chunks, self.log_limits)

    async def artifact(self, given: NewArtifact) -> None:
        await artifacts.keep(
            self.database, given, most_bytes=self.most_artifact_bytes, default_quota=self.artifact_quota
        )

    async def progress(self, latest: Mapping[tuple[RunId, int], Progress]) -> None:
        await logs.store_progress(self.database, latest)

    async def unknown(self, worker_id: WorkerId, known: frozenset[tuple[RunId, int]]) -> list[Report]:
        return [
            Report(each.run_id, each.job_id, each.fence, each.worker_id, HandedBack())
            for each in await workers.held(self.database, worker_id)
            if (each.run_id, each.fence) not in known
        ]
