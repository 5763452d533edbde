"""BullMQ as Node has it: npm's own worker receives Foliot's jobs and answers."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import RunId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.policy import Backoff, Retry
from foliot.domain.schedule import Cron, Manual, Timetable, preview
from foliot.services.identity.installation import first_start
from foliot.services.jobs import jobs
from foliot.services.runs import history, logs
from foliot.services.runs.run_control import run_now
from foliot.storage.runs.run_history import RunRecord
from foliot.storage.tx import Database
from foliot.testing.fixtures import TEST
from foliot.worker import worker
from tests.bridges.engines import BULLMQ, ROOT, free_port, valkey
from tests.bridges.in_process_worker import run_in_process_worker

pytestmark = pytest.mark.anyio
MODULES = ROOT / ".cache" / "node"
WORKER = """
const { Worker, UnrecoverableError } = require("bullmq");
const [host, port, queue, prefix] = process.argv.slice(2);
const worker = new Worker(queue, async (job) => {
  if (job.name === "doomed") throw new UnrecoverableError("never again");
  await job.updateProgress({ current: 3, total: 4 });
  await job.log("from node");
  return { data: job.data, priority: job.opts.priority ?? 0 };
}, { connection: { host, port: Number(port) }, prefix });
worker.on("ready", () => console.log("ready"));
process.on("SIGTERM", () => worker.close(true).then(() => process.exit(0)));
"""


@pytest.fixture(scope="module")
def node() -> Path:
    """Return the folder with npm's bullmq."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node or npm is not installed")
    if not (MODULES / "node_modules" / "bullmq").exists():
        MODULES.mkdir(parents=True, exist_ok=True)
        command = (
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--silent",
            "--prefix",
            str(MODULES),
            "bullmq",
            "ioredis",
        )
        if subprocess.run(command, capture_output=True, timeout=100, check=False).returncode:
            pytest.skip("npm could not install bullmq")
    (MODULES / "worker.js").write_text(WORKER)
    return MODULES


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    chosen = free_port()
    with valkey(tmp_path_factory.mktemp("valkey"), chosen):
        yield chosen


@contextmanager
def node_worker(node: Path, port: int, queue: str, prefix: str = "bull") -> Iterator[None]:
    process = subprocess.Popen(
        ("node", "worker.js", "127.0.0.1", str(port), queue, prefix),
        cwd=node,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.terminate()
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()


@asynccontextmanager
async def bridged(
    login_url: str, owner: psycopg.Connection[Any], port: int, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Database, WorkspaceId]]:
    monkeypatch.setattr(worker, "CHECK_EVERY", 0.05)
    async with Database(login_url) as database:
        await first_start(database, tzdata_version="2026a")
        found = owner.execute("SELECT id FROM foliot.workspaces").fetchone()
        assert found is not None
        async with run_in_process_worker(database, "bullmq", BULLMQ.urls(f"redis://127.0.0.1:{port}")):
            yield database, WorkspaceId(found[0])


async def run(
    database: Database, workspace: WorkspaceId, config: dict[str, Any], priority: int = 0, **payload: Any
) -> RunRecord:
    retry = Retry(max=2, strategy=Backoff.FIXED)
    spec = Spec(Manual(), "bullmq", priority=priority, retry=retry)
    definition = Definition("charge", spec, config=config, payload=payload)
    job = await jobs.create(database, Scope(workspace, TEST), definition)
    run_id: RunId = await run_now(database, Scope(workspace, TEST), job.id)
    for _ in range(600):
        found = await history.run(database, Scope(workspace), run_id)
        if found.finished_at is not None:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"the run has not ended: {found.status}")


async def test_a_worker_of_node_gets_the_run_beside_its_input(
    node: Path, port: int, login_url: str, owner: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with node_worker(node, port, "jobs-default"):
        async with bridged(login_url, owner, port, monkeypatch) as (database, workspace):
            done = await run(database, workspace, {"name": "charge", "target": "h1"}, 7, invoice="{{run.id}}")
            lines = [each.line.text for each in (await logs.read(database, Scope(workspace), done.id)).lines]
            doomed = await run(database, workspace, {"name": "doomed"})
    assert done.status is RunStatus.SUCCEEDED
    data = done.output["data"]
    facts = data.pop("foliot")
    assert data == {"invoice": str(done.id)}
    assert facts == {
        "run_id": str(done.id), "job_id": str(done.job_id), "job": "charge", "workspace_id": str(workspace),
        "workspace": "default", "planned_for": facts["planned_for"], "trigger": "manual", "attempt": 1, "fence": 1,
        "target": "h1",
    }  # fmt: skip
    assert done.output["priority"] == 7
    assert "from node" in lines
    assert "75 % (3 of 4)" in lines
    assert (doomed.status, doomed.attempt_count) == (RunStatus.FAILED, 1)


@pytest.mark.requirement("S0-18")
async def test_the_queue_and_the_data_of_the_seed_reach_a_worker_of_node(
    node: Path, port: int, login_url: str, owner: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with node_worker(node, port, "default", "bull:jobs"):  # Node's BullMQ refuses a colon in the name itself
        async with bridged(login_url, owner, port, monkeypatch) as (database, workspace):
            config = {"name": "charge", "queue": "jobs:{orgId}", "data": "envelope", "target": "h1"}
            done = await run(database, workspace, config, currency="EUR")
    assert json.loads(json.dumps(done.output["data"])) == {
        "jobId": str(done.job_id), "jobRunId": str(done.id), "hostId": "h1", "type": "charge",
        "payload": {"currency": "EUR"}, "attempt": 1, "plannedFor": done.output["data"]["plannedFor"], "trigger": "manual",
    }  # fmt: skip


async def test_cron_parser_takes_either_day_where_foliot_takes_both(node: Path) -> None:
    """The table "Cron from elsewhere" of docs/how-to/schedules.md."""
    program = """
    const { CronExpressionParser } = require("cron-parser");
    for (const expression of ["0 0 13 * FRI", "0 0 1-31/2 * MON", "0 0 */2 * MON"]) {
      const times = CronExpressionParser.parse(expression, { currentDate: "2027-01-01T12:00:00Z", tz: "UTC" });
      console.log(JSON.stringify(times.take(30).map((each) => each.toDate().getTime() / 1000)));
    }
    """
    done = await asyncio.to_thread(
        subprocess.run,
        ("node", "-e", program),
        cwd=node,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    named = [json.loads(line) for line in done.stdout.splitlines()]
    noon = datetime(2027, 1, 1, 12, tzinfo=UTC)
    ours = [
        [each.planned_for.timestamp() for each in preview(Timetable(Cron(expression, "UTC")), noon, 30)]
        for expression in ("0 0 13 * FRI", "0 0 1-31/2 * MON", "0 0 */2 * MON")
    ]
    assert named[:2] == ours[:2]
    assert named[2] == named[1], "odd days, and every Monday"
    assert ours[2] != named[2]
