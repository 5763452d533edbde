"""Hosts for tests of services: they register, claim and report like hosts over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

from foliot.domain.access import Actor
from foliot.domain.ids import HostId, PrincipalId, RunId, WorkerId, WorkspaceId
from foliot.domain.outcomes import Outcome, Succeeded
from foliot.domain.run import Target, TargetKind
from foliot.services.workers import remote, remote_register
from foliot.services.workers.claim import Work
from foliot.services.workers.remote import RemoteReport
from foliot.services.workers.remote_register import HostIntroduction, RemoteWorkerHello, WorkerPrincipal
from foliot.storage.tx import Database

PVP = Target(TargetKind.SERVER, "pvp")
H1 = Target(TargetKind.HOST, "h1")
DONE = Succeeded()


@dataclass
class RemoteHost:
    database: Database
    speaker: WorkerPrincipal
    name: str
    worker: WorkerId
    id: HostId

    async def claim(self, permits: int = 10, types: Sequence[str] = ("python",)) -> list[Work]:
        return list((await remote.claim(self.database, self.speaker, self.worker, types, permits)).work)

    async def report(self, work: Work, outcome: Outcome = DONE) -> bool:
        reported = RemoteReport(work.claimed.run_id, work.claimed.fence, outcome)
        return work.claimed.run_id in await remote.report(
            self.database, self.speaker, self.worker, [reported]
        )

    async def beat(self, *known: Work) -> bool:
        keys = [(work.claimed.run_id, work.claimed.fence) for work in known]
        return (await remote.beat(self.database, self.speaker, self.worker, keys)).is_alive

    async def leave(self) -> None:
        await remote.leave(self.database, self.speaker, self.worker)


def worker_principal(workspace: WorkspaceId) -> WorkerPrincipal:
    principal = PrincipalId(uuid4())
    return WorkerPrincipal(workspace, principal, Actor(str(principal)))


async def register_host(
    database: Database,
    speaker: WorkerPrincipal,
    name: str = "h1",
    *instances: str,
    types: Sequence[str] = ("python",),
    lease: timedelta = timedelta(seconds=30),
) -> RemoteHost:
    hello = RemoteWorkerHello(f"{name}/1", types, 16, "1.0", host=HostIntroduction(name, None, instances))
    made = await remote_register.register(database, speaker, hello, lease=lease)
    assert made.host_id is not None
    return RemoteHost(database, speaker, name, made.worker_id, made.host_id)


def ids(works: Sequence[Work]) -> list[RunId]:
    return [work.claimed.run_id for work in works]
