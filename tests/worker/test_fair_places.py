"""Fair places: a workspace or a receiver whose runs hang never takes the last places of a worker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.run import Trigger
from foliot.services.workers.claim import Claimed, ClaimSize, Work
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.worker.link import LocalLink
from foliot.worker.places import RESERVE_PAUSE, Places
from foliot.worker.worker import AT_ONCE, Worker
from tests.polling import wait_until
from tests.worker.test_worker import Gate

pytestmark = pytest.mark.anyio
Owner = psycopg.Connection[Any]
HOG, SECOND, THIRD = (WorkspaceId(UUID(int=number)) for number in (1, 2, 3))
NOW = 100.0


def work_of(workspace_id: WorkspaceId, url: str | None = None) -> Work:
    kind, config = ("python", {}) if url is None else ("http", {"url": url})
    at = ManualClock().now()
    claimed = Claimed(
        workspace_id,
        RunId(uuid4()),
        JobId(uuid4()),
        1,
        kind,
        at,
        1,
        at + timedelta(hours=1),
        Trigger.SCHEDULE,
    )
    return Work(claimed, "job", config, {}, timedelta(hours=1))


def test_one_workspace_alone_takes_all_permits_and_nothing_of_the_reserve() -> None:
    places = Places(10, reserve=10)
    assert places.claim_size(NOW) == ClaimSize(10)
    places.take([work_of(HOG)] * 10)
    assert places.claim_size(NOW) == ClaimSize(5, share=1, without=frozenset({HOG}))


def test_whoever_holds_few_takes_of_the_reserve_and_leaves_the_last_place_to_those_that_hold_none() -> None:
    places, second = Places(10, reserve=10), list[Work]()
    places.take([work_of(HOG)] * 10)
    while (size := places.claim_size(NOW)) and SECOND not in size.without:
        second.append(work_of(SECOND))
        places.take(second[-1:])
    assert len(second) == 4
    for number in range(3, 9):
        size = places.claim_size(NOW)
        assert size is not None
        assert size.without >= {HOG, SECOND}
        places.take([work_of(WorkspaceId(UUID(int=number)))])
    assert places.claim_size(NOW) is None
    places.give_back(second[0])
    assert places.claim_size(NOW) == ClaimSize(
        1, share=1, without=frozenset({HOG, SECOND, *(WorkspaceId(UUID(int=n)) for n in range(3, 9))})
    )


def test_a_receiver_that_fills_the_permits_gets_nothing_of_the_reserve() -> None:
    places = Places(4, reserve=4)
    places.take(
        [
            work_of(WorkspaceId(UUID(int=n)), f"{scheme}://Slow.example:81{path}")
            for n, scheme, path in zip(range(4), ("http", "HTTPS") * 2, ("", "/a", "?b", "#c"), strict=True)
        ]
    )
    size = places.claim_size(NOW)
    assert size is not None
    assert not size.without
    assert size.elsewhere == {"slow.example:81"}


def test_a_full_worker_asks_for_its_reserve_again_only_after_a_pause() -> None:
    places = Places(1, reserve=1)
    places.take([work_of(HOG)])
    places.found_none(NOW)
    assert places.claim_size(NOW) is None
    assert places.reserve_pause(NOW) == RESERVE_PAUSE
    assert places.claim_size(NOW + RESERVE_PAUSE) is not None


def put(
    owner: Owner, workspace: WorkspaceId, at: object, kind: str = "python", url: str | None = None
) -> None:
    job_id = uuid4()
    owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, %s, 'any', now()) ON CONFLICT DO NOTHING",
        [workspace, f"w{workspace.int}"],
    )
    owner.execute(
        "INSERT INTO foliot.jobs (workspace_id, id, name, queue, type, definition, status, status_at, created_by, created_at,"
        " updated_at) VALUES (%s, %s, %s, 'default', %s, jsonb_build_object('config', jsonb_build_object('url', %s::text)), 'active', now(),"
        " 'ana', now(), now())",
        [workspace, job_id, str(job_id), kind, url],
    )
    owner.execute(
        "INSERT INTO foliot.ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive,"
        " timeout, trigger) VALUES (%s, %s, %s, 'default', %s, 0, %s, %s, true, '1 day', 'schedule')",
        [workspace, uuid4(), job_id, kind, at, at],
    )


class Started:
    def __init__(self, database: Database, kind: str, permits: int = 10) -> None:
        self.gate = Gate()
        self.worker = Worker(LocalLink(database, "test"), {kind: self.gate}, permits, reserve=permits)

    def of(self, workspace: WorkspaceId) -> int:
        return sum(each.ctx.workspace_id == str(workspace) for each in self.gate.begun)

    async def claim_all(self) -> None:
        while await self.worker.step() == AT_ONCE:
            pass


async def test_beside_300_hung_runs_of_one_workspace_the_run_of_another_starts(
    database: Database, clock: ManualClock, owner: Owner
) -> None:
    for _ in range(300):
        put(owner, HOG, clock.now())
    started = Started(database, "python")
    await started.claim_all()
    await wait_until(lambda: started.of(HOG) == 10)
    for workspace in (SECOND, THIRD):
        put(owner, workspace, clock.now())
    started.worker._places._reserve_at = 0.0  # the pause after the last claim is over
    await started.claim_all()
    await wait_until(lambda: (started.of(SECOND), started.of(THIRD)) == (1, 1))
    assert started.of(HOG) == 10


async def test_beside_a_hung_receiver_of_many_workspaces_another_receiver_is_called(
    database: Database, clock: ManualClock, owner: Owner
) -> None:
    for number in range(1, 31):
        for _ in range(2):
            put(owner, WorkspaceId(UUID(int=number)), clock.now(), "http", "https://slow.example/hook")
    started = Started(database, "http", permits=4)
    await started.claim_all()
    await wait_until(lambda: len(started.gate.begun) == 4)
    put(owner, THIRD, clock.now(), "http", "https://fine.example/hook")
    started.worker._places._reserve_at = 0.0
    await started.claim_all()
    await wait_until(lambda: len(started.gate.begun) == 5)
    assert started.gate.begun[-1].config == {"url": "https://fine.example/hook"}


async def test_an_attempt_ends_at_the_longest_timeout_that_the_operator_allows(
    database: Database, clock: ManualClock, owner: Owner
) -> None:
    link = LocalLink(database, "test", longest_timeout=timedelta(minutes=5))
    worker = await link.register(["python"], 1)
    put(owner, HOG, clock.now())
    [work] = await link.claim(worker, ["python"], ClaimSize(1))
    assert work.claimed.deadline_at == clock.now() + timedelta(minutes=5)
    owner.execute("INSERT INTO foliot.limits (workspace_id, key, cap) VALUES (%s, '', 5)", [HOG])
    put(owner, HOG, clock.now())
    [work] = await link.claim(worker, ["python"], ClaimSize(1))
    assert work.claimed.deadline_at == clock.now() + timedelta(minutes=5), "under a limit as well"
