"""Runs handed over to real workers of Celery, RQ and BullMQ: they end as the engine says, once, whatever dies on the way."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis import Redis

from foliot.domain.access import Scope
from foliot.domain.bridge_policy import EVERYTHING, BridgePolicy
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import RunId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.policy import Backoff, Limits, Retry
from foliot.domain.schedule import Manual
from foliot.handlers.bridge.redis_notes import HandoverNotes
from foliot.services.identity.installation import first_start
from foliot.services.jobs import jobs
from foliot.services.runs import history, logs
from foliot.services.runs.explain import explain_run
from foliot.services.runs.run_control import cancel_run, run_now
from foliot.services.settlement.sweep import sweep
from foliot.storage.runs.run_history import RunRecord
from foliot.storage.tx import Database
from foliot.testing.fixtures import TEST
from foliot.worker import worker
from tests.bridges.engines import BULLMQ, KINDS, ROOT, RQ, QueueEngine, free_port, valkey
from tests.bridges.in_process_worker import run_in_process_worker
from tests.polling import wait_until

pytestmark = pytest.mark.anyio
AT_ONCE = Retry(max=3, strategy=Backoff.FIXED, base=timedelta(0))
SECOND = timedelta(seconds=1)
NAMES = {"celery": "Celery", "rq": "RQ", "bullmq": "BullMQ"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="foliot-bridges-", ignore_cleanup_errors=True) as made:
        yield Path(made)


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[str]:
    with valkey(folder / "valkey", free_port()) as server:
        yield server.connection_url


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.type)
def kind(request: pytest.FixtureRequest, broker: str, folder: Path) -> Iterator[QueueEngine]:
    """With a worker of that engine at work."""
    found: QueueEngine = request.param
    with found.worker(broker, folder / f"{found.type}.log"):
        yield found


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No hints come here, so the worker looks often."""
    monkeypatch.setattr(worker, "CHECK_EVERY", 0.05)


@pytest.fixture
async def live(login_url: str) -> AsyncIterator[Database]:
    """By the real time of day, which the engines go by."""
    async with Database(login_url) as database:
        yield database


@dataclass
class Bench:
    """A job of one type, and what its runs left behind."""

    database: Database
    workspace: WorkspaceId
    kind: QueueEngine
    folder: Path
    owner: psycopg.Connection[Any]

    @property
    def gate(self) -> Path:
        return self.folder / "gate"

    def begun(self) -> int:
        """How often an engine's worker has begun, by its own account."""
        sink = self.folder / "sink"
        return len(sink.read_text().splitlines()) if sink.exists() else 0

    async def start(
        self, *, ends: timedelta = timedelta(minutes=1), retry: Retry = AT_ONCE, **given: Any
    ) -> RunId:
        spec = Spec(Manual(), self.kind.type, retry=retry, limits=Limits(timeout=ends))
        payload = {"sink": str(self.folder / "sink"), **given}
        definition = Definition("chore", spec, config=dict(self.kind.config), payload=payload)
        job = await jobs.create(self.database, Scope(self.workspace, TEST), definition)
        return await run_now(self.database, Scope(self.workspace, TEST), job.id)

    async def run(self, run_id: RunId) -> RunRecord:
        return await history.run(self.database, Scope(self.workspace), run_id)

    async def lines(self, run_id: RunId) -> list[str]:
        return [
            each.line.text for each in (await logs.read(self.database, Scope(self.workspace), run_id)).lines
        ]

    async def ended(self, run_id: RunId, within: float = 30.0) -> RunRecord:
        await wait_until(lambda: self._status(run_id) is not None, within)
        return await self.run(run_id)

    async def says(self, run_id: RunId, words: str) -> bool:
        return any(words in line for line in await self.lines(run_id))

    async def attempted(self, times: int, within: float = 30.0) -> None:
        await wait_until(lambda: self._attempts() >= times, within)

    async def handed_over(self) -> str:
        await wait_until(lambda: self._lease() is not None)
        return str(self._lease())

    def _status(self, run_id: RunId) -> Any:
        return self._one("SELECT status FROM foliot.runs WHERE id = %s", [run_id])

    def _attempts(self) -> Any:
        return self._one("SELECT count(*) FROM foliot.attempts")

    def _lease(self) -> Any:
        return self._one("SELECT external_id FROM foliot.leases")

    def _one(self, query: str, params: Any = ()) -> Any:
        found = self.owner.execute(query, params).fetchone()
        return None if found is None else found[0]


@pytest.fixture
async def bench(live: Database, kind: QueueEngine, tmp_path: Path, owner: psycopg.Connection[Any]) -> Bench:
    return await _bench(live, kind, tmp_path, owner)


async def _bench(live: Database, kind: QueueEngine, tmp_path: Path, owner: psycopg.Connection[Any]) -> Bench:
    await first_start(live, tzdata_version="2026a")
    found = owner.execute("SELECT id FROM foliot.workspaces").fetchone()
    assert found is not None
    return Bench(live, WorkspaceId(found[0]), kind, tmp_path, owner)


async def test_a_result_comes_back_and_the_run_shows_what_the_engine_called_it(
    bench: Bench, broker: str
) -> None:
    async with run_in_process_worker(bench.database, bench.kind.type, bench.kind.urls(broker)):
        run_id = await bench.start(value=[1, {"two": None}])
        run = await bench.ended(run_id)
    assert (run.status, run.output) == (RunStatus.SUCCEEDED, {"value": [1, {"two": None}]})
    assert run.attempts is not None
    assert [(each.number, each.external_id) for each in run.attempts] == [(1, f"foliot-{run_id}-1")]
    assert bench.begun() == 1


async def test_what_the_operator_does_not_allow_is_not_handed_over_and_is_not_tried_again(
    bench: Bench, broker: str
) -> None:
    for bridge_policy, named in (
        (BridgePolicy(("jobs-{workspace}",), ("shop.*",)), "FOLIOT_BRIDGE_TASKS"),
        (BridgePolicy(("jobs-{workspace}.*",), EVERYTHING), "FOLIOT_BRIDGE_QUEUES"),
    ):
        async with run_in_process_worker(
            bench.database, bench.kind.type, bench.kind.urls(broker), bridge_policy=bridge_policy
        ):
            run = await bench.ended(await bench.start())
        assert run.error is not None
        assert (run.status, run.error.code, run.attempt_count) == (RunStatus.FAILED, "handover_refused", 1)
        assert named in run.error.message
    bridge_policy = BridgePolicy(("jobs-{workspace}",), ("tests.bridges.**", "engine_functions.*", "work"))
    async with run_in_process_worker(
        bench.database, bench.kind.type, bench.kind.urls(broker), bridge_policy=bridge_policy
    ):
        assert (await bench.ended(await bench.start())).status is RunStatus.SUCCEEDED
    assert bench.begun() == 1


@pytest.mark.requirement("S0-24", "X-12")
async def test_a_failure_comes_back_in_the_engines_words_and_is_retried_by_foliot(
    bench: Bench, broker: str
) -> None:
    flag = bench.folder / "fails-once"
    flag.touch()
    async with run_in_process_worker(bench.database, bench.kind.type, bench.kind.urls(broker)):
        run_id = await bench.start(fail=str(flag), value=2)
        run = await bench.ended(run_id)
    assert (run.status, run.output) == (RunStatus.SUCCEEDED, {"value": 2})
    first, second = run.attempts or ()
    assert first.error is not None
    assert "no such invoice" in first.error.message
    assert (first.status, second.status) == ("failed", "succeeded")
    assert (first.external_id, second.external_id) == (f"foliot-{run_id}-1", f"foliot-{run_id}-2")
    assert bench.begun() == 2


async def test_an_end_that_comes_before_the_push_is_confirmed_is_not_met_again_by_the_next_attempt(
    bench: Bench, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine confirms late. The note of an attempt that failed must stay closed."""
    flag, closed = bench.folder / "fails-once", asyncio.Event()
    flag.touch()
    confirm, close = HandoverNotes.confirm, HandoverNotes.close

    async def confirm_late(notes: HandoverNotes, handovers: Any) -> None:
        await wait_until(lambda: not flag.exists())
        with suppress(TimeoutError):
            await asyncio.wait_for(closed.wait(), 1)  # in the wrong order it is closed first
        await confirm(notes, handovers)

    async def close_and_tell(notes: HandoverNotes, handover: Any) -> None:
        await close(notes, handover)
        closed.set()

    monkeypatch.setattr(HandoverNotes, "confirm", confirm_late)
    monkeypatch.setattr(HandoverNotes, "close", close_and_tell)
    async with run_in_process_worker(bench.database, bench.kind.type, bench.kind.urls(broker)):
        run = await bench.ended(await bench.start(fail=str(flag), value=2))
    assert [each.status for each in run.attempts or ()] == ["failed", "succeeded"]


async def test_facts_of_the_run_are_filled_into_its_input(bench: Bench, broker: str) -> None:
    async with run_in_process_worker(bench.database, bench.kind.type, bench.kind.urls(broker)):
        run_id = await bench.start(
            value={"run": "{{run.id}}", "text": "attempt {{run.attempt}}, {{unknown}}"}
        )
        run = await bench.ended(run_id)
    assert run.output == {"value": {"run": str(run_id), "text": "attempt 1, {{unknown}}"}}


@pytest.mark.parametrize(
    "kind", [each for each in KINDS if each.type != "rq"], ids=lambda kind: kind.type, indirect=True
)
async def test_progress_and_log_lines_of_the_engine_reach_the_run(bench: Bench, broker: str) -> None:
    async with run_in_process_worker(bench.database, bench.kind.type, bench.kind.urls(broker)):
        run_id = await bench.start(talk=True, gate=str(bench.gate))
        share = "40 % (40 of 100)" if bench.kind.type == "bullmq" else "50 % (40 of 80)"
        await _until(lambda: bench.says(run_id, share))
        bench.gate.touch()
        await bench.ended(run_id)
        if bench.kind.type == "bullmq":
            assert await bench.says(run_id, "half of it")


async def test_an_unrecoverable_error_of_bullmq_is_not_retried(
    live: Database, broker: str, folder: Path, tmp_path: Path, owner: psycopg.Connection[Any]
) -> None:
    bench = await _bench(live, BULLMQ, tmp_path, owner)
    with BULLMQ.worker(broker, folder / "unrecoverable.log"):
        async with run_in_process_worker(live, "bullmq", BULLMQ.urls(broker)):
            run = await bench.ended(await bench.start(unrecoverable=True))
    assert (run.status, run.attempt_count) == (RunStatus.FAILED, 1)
    assert run.error is not None
    assert "never again" in run.error.message


async def test_a_run_that_no_worker_of_the_engine_takes_says_so(
    live: Database, broker: str, tmp_path: Path, owner: psycopg.Connection[Any]
) -> None:
    kind = replace(BULLMQ, config={"name": "work", "queue": "nobody-serves-this"})
    bench = await _bench(live, kind, tmp_path, owner)
    sentence = "It waits in the queue nobody-serves-this of BullMQ, and no worker there has taken it."

    async def is_explained() -> bool:
        return sentence in (await explain_run(live, Scope(bench.workspace), run_id)).explanation.facts

    async with run_in_process_worker(live, "bullmq", kind.urls(broker)):
        run_id = await bench.start(ends=6 * SECOND, retry=Retry(max=0))
        await _until(is_explained)
        run = await bench.ended(run_id)
    assert run.error is not None
    assert (run.status, run.error.code) == (RunStatus.FAILED, "not_taken")
    assert sentence in run.error.message


@pytest.mark.slow
async def test_a_bridge_killed_between_push_and_note_is_followed_by_one_that_finds_the_push(
    bench: Bench, broker: str, login_url: str
) -> None:
    run_id = await bench.start(gate=str(bench.gate), value=3)
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bridges.killed_bridge", login_url, broker, bench.kind.type, cwd=ROOT
    )
    assert await asyncio.wait_for(killed.wait(), 30) == -signal.SIGKILL
    await _swept(bench)
    async with run_in_process_worker(bench.database, bench.kind.type, bench.kind.urls(broker)):
        assert await bench.handed_over() == f"foliot-{run_id}-1"
        bench.gate.touch()
        run = await bench.ended(run_id)
    assert (run.status, run.output) == (RunStatus.SUCCEEDED, {"value": 3})
    assert [each.status for each in run.attempts or ()] == ["lost", "succeeded"]
    assert bench.begun() == 1, "the engine did it once"


async def test_a_bridge_that_leaves_hands_back_its_runs_and_the_next_one_waits_for_them(
    bench: Bench, broker: str
) -> None:
    async with run_in_process_worker(bench.database, bench.kind.type, bench.kind.urls(broker)):
        run_id = await bench.start(gate=str(bench.gate), value=4)
        await bench.handed_over()
        await wait_until(lambda: bench.begun() == 1)
    assert (await bench.run(run_id)).status is RunStatus.READY
    bench.gate.touch()
    async with run_in_process_worker(bench.database, bench.kind.type, bench.kind.urls(broker)):
        run = await bench.ended(run_id)
    assert (run.status, run.output) == (RunStatus.SUCCEEDED, {"value": 4})
    assert bench.begun() == 1


async def test_a_cancelled_run_is_revoked_and_what_waits_in_the_queue_is_not_begun(
    bench: Bench, broker: str
) -> None:
    async with run_in_process_worker(bench.database, bench.kind.type, bench.kind.urls(broker)) as here:
        busy = [
            await bench.start(gate=str(bench.gate)) for _ in range(2)
        ]  # all that their worker does at once
        await wait_until(lambda: bench.begun() >= (1 if bench.kind.type == "rq" else 2))
        run_id = await bench.start(value=5)
        await wait_until(lambda: len(here.worker.working_on()) == 3)
        await _noted(broker, run_id)
        await cancel_run(bench.database, Scope(bench.workspace, TEST), run_id)
        await here.beat()
        assert (await bench.ended(run_id)).status is RunStatus.CANCELLED
        bench.gate.touch()
        for each in busy:
            assert (await bench.ended(each)).status is RunStatus.SUCCEEDED
        after = await bench.start(value=6)
        await bench.ended(after)
    assert bench.begun() == 3


@pytest.mark.parametrize(
    "kind", [each for each in KINDS if each.type != "bullmq"], ids=lambda kind: kind.type, indirect=True
)
async def test_a_run_that_outlives_its_timeout_is_stopped_in_the_engine_and_the_retry_begins_anew(
    bench: Bench, broker: str
) -> None:
    async with run_in_process_worker(bench.database, bench.kind.type, bench.kind.urls(broker)):
        run_id = await bench.start(gate=str(bench.gate), value=7, ends=2 * SECOND)
        await bench.attempted(1)
        await wait_until(lambda: bench.begun() == 2)
        bench.gate.touch()
        run = await bench.ended(run_id)
    assert [each.status for each in run.attempts or ()] == ["timed_out", "succeeded"]
    assert [each.external_id for each in run.attempts or ()] == [f"foliot-{run_id}-{n}" for n in (1, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("engine", KINDS, ids=lambda kind: kind.type)
async def test_a_broker_that_is_away_fails_pushes_with_since_when_and_loses_nothing_that_was_pushed(
    engine: QueueEngine, live: Database, tmp_path: Path, owner: psycopg.Connection[Any]
) -> None:
    bench = await _bench(live, engine, tmp_path, owner)
    server = valkey(tmp_path / "valkey", free_port())
    url = f"redis://127.0.0.1:{server._desired_port}"
    try:
        async with run_in_process_worker(live, engine.type, engine.urls(url)):
            run_id = await bench.start(retry=Retry(max=20, strategy=Backoff.FIXED, base=SECOND), value=8)
            await bench.attempted(1)
            server.start()
            external_id = await bench.handed_over()
            server.stop()
            await _until(lambda: bench.says(run_id, "is unreachable since"))
            server.start()
            with engine.worker(url, tmp_path / "log"):
                run = await bench.ended(run_id)
    finally:
        server.stop()
    *away, last = run.attempts or ()
    assert all(each.error and each.error.code == "broker_unreachable" for each in away)
    assert f"The broker of {NAMES[engine.type]} is unreachable since 20" in away[0].error.message  # type: ignore[union-attr]
    assert (run.status, run.output, last.external_id) == (RunStatus.SUCCEEDED, {"value": 8}, external_id)
    assert bench.begun() == 1


async def test_a_deadline_met_while_the_broker_is_away_says_so_and_the_retry_takes_up_the_push(
    live: Database, tmp_path: Path, owner: psycopg.Connection[Any]
) -> None:
    bench = await _bench(live, RQ, tmp_path, owner)
    server = valkey(tmp_path / "valkey", free_port())
    server.start()
    url = server.connection_url
    try:
        async with run_in_process_worker(live, "rq", RQ.urls(url)):
            run_id = await bench.start(
                ends=4 * SECOND, retry=Retry(max=20, strategy=Backoff.FIXED, base=SECOND), value=9
            )
            external_id = await bench.handed_over()
            server.stop()
            await bench.attempted(1)
            server.start()
            with RQ.worker(url, tmp_path / "log"):
                run = await bench.ended(run_id)
    finally:
        server.stop()
    first, *_, last = run.attempts or ()
    assert first.error is not None
    assert (first.status, first.error.code) == ("failed", "broker_unreachable")
    assert first.error.message.startswith("No result came in time. The broker of RQ is unreachable since")
    assert (last.status, last.external_id) == ("succeeded", external_id)
    assert bench.begun() == 1


async def _until(holds: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(30):
        while not await holds():  # noqa: ASYNC110  # nobody here can set an event
            await asyncio.sleep(0.05)


async def _swept(bench: Bench) -> None:
    async def lost() -> int:
        return (await sweep(bench.database)).lost

    await _until(lost)


async def _noted(broker: str, run_id: RunId) -> None:
    with Redis.from_url(broker) as redis:
        await wait_until(lambda: b"pushed" in (redis.get(f"foliot:{run_id}:1") or b""))
