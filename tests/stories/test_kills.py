"""Real processes on a real PostgreSQL, killed, frozen and cut off in the middle of their work: nothing is lost, nothing is
doubled. The witness is a file that every execution writes to before it does anything else.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from foliot.domain.access import Actor, Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import WorkspaceId
from foliot.domain.policy import Limits
from foliot.embedded.server import start as start_postgres
from foliot.services.jobs import jobs
from foliot.storage.tx import Database
from tests.pgbouncer import PGBOUNCER, PgBouncer
from tests.stories.installation import EVERY_SECOND, SECOND, Installation, start_node, worker_pid
from tests.stories.server_process import STOP_WITHIN, get_json, wait_until


def as_address(conninfo: str) -> str:
    """The same in the form that settings take."""
    given = conninfo_to_dict(conninfo)
    return f"postgresql://{given['user']}@/{given['dbname']}?host={given['host']}&port={given['port']}"


@pytest.mark.requirement("S4-AC-3")
def test_jobs_of_every_kind_run_every_second_and_succeed(
    start_server: Any, installation: Installation
) -> None:
    came: list[str] = []

    class Target(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(str(self.headers["Foliot-Run-Id"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    serving = start_node(start_server, installation, FOLIOT_EGRESS_ALLOW="127.0.0.0/8")
    with ThreadingHTTPServer(("127.0.0.1", 0), Target) as target:
        threading.Thread(target=target.serve_forever, daemon=True).start()
        installation.create("quickly", EVERY_SECOND)
        installation.create("gated", EVERY_SECOND)
        installation.open_gate()
        [(workspace,)] = installation.rows("SELECT id FROM foliot.workspaces")
        config = {"url": f"http://127.0.0.1:{target.server_port}/"}
        definition = Definition("call", Spec(EVERY_SECOND, "http"), config=config)

        async def create() -> None:
            async with Database(installation.url) as database:
                await jobs.create(database, Scope(WorkspaceId(workspace), Actor("story")), definition)

        asyncio.run(create())
        per_job = "SELECT count(*) FROM foliot.runs WHERE status = 'succeeded' GROUP BY job_id"
        wait_until(lambda: [row[0] >= 3 for row in installation.rows(per_job)] == [True] * 3, "three of each")
        url = serving.wait_for_url()
        assert get_json(f"{url}/readyz")[1]["missing"] == []
        assert not any("worker" in warning for warning in get_json(f"{url}/readyz")[1]["warnings"])
        assert serving.stop() < STOP_WITHIN
        target.shutdown()
    assert set(installation.statuses()) <= {"succeeded", "skipped", None}
    assert len(came) == len(set(came)) >= 3
    installation.check_every_second_has_its_record()


@pytest.mark.requirement("S1-SC-007", "S1-T4")
def test_a_run_whose_worker_is_killed_is_lost_and_repeated_under_a_higher_fence(
    start_server: Any, installation: Installation
) -> None:
    serving = start_node(start_server, installation)
    installation.create("gated")
    wait_until(lambda: installation.executions("began"), "the first attempt")
    os.kill(worker_pid(serving), signal.SIGKILL)
    wait_until(lambda: len(installation.executions("began")) == 2, "the second attempt")
    installation.open_gate()
    installation.wait_for_successes(1)
    [(run, *_), _] = installation.executions("began")
    assert installation.executions("began") == [(run, 1, 1), (run, 2, 2)]
    assert installation.executions("ended") == [(run, 2, 2)]
    assert installation.rows("SELECT attempt_count, fence FROM foliot.runs") == [(2, 2)]
    attempts = installation.rows("SELECT number, status FROM foliot.attempts ORDER BY number")
    assert attempts == [(1, "lost"), (2, "succeeded")]
    assert '"worker.died"' in serving.output


@pytest.mark.slow
def test_the_result_of_a_worker_frozen_past_its_lease_is_refused(
    start_server: Any, installation: Installation
) -> None:
    serving = start_node(start_server, installation)
    installation.create("gated")
    wait_until(lambda: installation.executions("began"), "the first attempt")
    os.kill(worker_pid(serving), signal.SIGSTOP)
    installation.open_gate()
    wait_until(lambda: installation.executions("ended"), "the work of the frozen worker")
    serving.wait_for(r'"run.swept".*"as": "Lost"')
    assert installation.statuses() == {None: 1}
    os.kill(worker_pid(serving), signal.SIGCONT)
    serving.wait_for(r'"report.refused".*"fence": 1')
    installation.wait_for_successes(1)
    assert [fence for _, _, fence in installation.executions("ended")] == [1, 2]
    assert installation.rows("SELECT status, fence FROM foliot.runs") == [("succeeded", 2)]
    attempts = installation.rows("SELECT number, status FROM foliot.attempts ORDER BY number")
    assert attempts == [(1, "lost"), (2, "succeeded")]


@pytest.mark.slow
@pytest.mark.requirement("S0-15")
def test_a_serve_killed_in_the_middle_of_everything_loses_and_doubles_nothing(
    start_server: Any, installation: Installation
) -> None:
    first = start_node(start_server, installation)
    installation.create("quickly", EVERY_SECOND, 10)
    installation.create("gated")
    wait_until(lambda: installation.executions("began"), "the run that will be interrupted")
    installation.wait_for_successes(20)
    first.stop(signal.SIGKILL)
    installation.open_gate()
    start_node(start_server, installation)
    before = installation.statuses()["succeeded"]
    installation.wait_for_successes(before + 20)
    gated = "SELECT runs.status FROM foliot.runs JOIN foliot.jobs ON jobs.id = job_id WHERE name = 'gated 0'"
    wait_until(lambda: installation.rows(gated) == [("succeeded",)], "the interrupted run")
    installation.check_every_second_has_its_record()
    installation.check_every_success_was_witnessed()
    assert set(installation.statuses()) <= {"succeeded", "skipped", None}


@pytest.mark.slow
def test_a_serve_killed_before_its_commit_has_recorded_nothing_and_the_next_one_does(
    start_server: Any, installation: Installation
) -> None:
    first = start_node(start_server, installation)
    with psycopg.connect(installation.url) as holding:
        # The tick moves its timer and waits here, before it can record the run.
        holding.execute("LOCK TABLE foliot.runs IN SHARE MODE")
        installation.create("quickly")
        waits = "SELECT FROM pg_locks WHERE relation = 'foliot.runs'::regclass AND NOT granted"
        wait_until(lambda: installation.rows(waits), "a tick in the middle of its transaction")
        first.stop(signal.SIGKILL)
    left = "SELECT FROM pg_stat_activity WHERE application_name LIKE 'foliot%'"
    wait_until(lambda: not installation.rows(left), "the end of its sessions")
    assert installation.statuses().total() == 0
    start_node(start_server, installation)
    installation.wait_for_successes(1)
    assert len(installation.executions("done")) == installation.statuses().total() == 1


@pytest.mark.slow
def test_a_signal_under_load_hands_runs_back_without_spending_anything(
    start_server: Any, installation: Installation
) -> None:
    first = start_node(start_server, installation, FOLIOT_WORKER_GRACE="1")
    installation.create("gated", count=12)
    wait_until(lambda: len(installation.executions("began")) == 10, "all permits in use")
    assert first.stop() < STOP_WITHIN
    assert first.process.returncode == 0
    assert installation.rows("SELECT count(*) FROM foliot.leases") == [(0,)]
    assert installation.rows("SELECT retries, losses, count(*) FROM foliot.ready GROUP BY 1, 2") == [
        (0, 0, 12)
    ]
    assert installation.rows("SELECT count(*) FROM foliot.workers") == [(0,)]
    installation.open_gate()
    start_node(start_server, installation)
    installation.wait_for_successes(12)
    assert sorted(fence for _, _, fence in installation.executions("ended")) == [1, 1, *[2] * 10]


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_postgresql_restarted_under_load_costs_time_and_nothing_else(
    start_server: Any, installation: Installation, by: signal.Signals
) -> None:
    serving = start_node(start_server, installation, FOLIOT_WORKER_LEASE="10")
    installation.create("quickly", EVERY_SECOND, 20)
    installation.wait_for_successes(40)
    os.kill(installation.server.pid, by)
    installation.server.exited.wait(30)
    installation.server.stop()
    installation.server = start_postgres(replace(installation.config, port=installation.server.port))
    before = installation.statuses()["succeeded"]
    installation.wait_for_successes(before + 60)
    assert serving.stop() < STOP_WITHIN
    assert installation.rows("SELECT count(*) FROM foliot.leases") == [(0,)]
    installation.check_every_second_has_its_record()
    installation.check_every_success_was_witnessed()


@pytest.mark.slow
@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
def test_behind_a_pooler_that_is_killed_under_load_nothing_is_lost(
    start_server: Any, installation: Installation
) -> None:
    """In transaction mode, where no two transactions need share a session; hints come by a line of their own."""
    with PgBouncer(installation.url) as bouncer:
        urls = {"FOLIOT_DATABASE_URL": as_address(bouncer.url), "FOLIOT_MIGRATE_URL": installation.url}
        serving = start_node(
            start_server, installation, FOLIOT_WORKER_LEASE="10", FOLIOT_LISTEN_URL=installation.url, **urls
        )
        installation.create("quickly", EVERY_SECOND, 10)
        installation.wait_for_successes(20)
        os.kill(worker_pid(serving), signal.SIGKILL)
        bouncer.kill()
        bouncer.start()
        before = installation.statuses()["succeeded"]
        installation.wait_for_successes(before + 30)
        assert serving.stop() < STOP_WITHIN
    installation.check_every_second_has_its_record()
    installation.check_every_success_was_witnessed()


@pytest.mark.slow
@pytest.mark.requirement("X-8")
def test_code_that_blocks_the_worker_does_not_cost_it_its_lease(
    start_server: Any, installation: Installation
) -> None:
    serving = start_node(start_server, installation)
    installation.create("blocking")
    wait_until(lambda: installation.executions("began"), "the run")
    [(before,)] = installation.rows("SELECT alive_until FROM foliot.workers")
    later = f"SELECT FROM foliot.workers WHERE alive_until > '{before + 3 * SECOND}'"
    wait_until(lambda: installation.rows(later), "heartbeats of more than a lease")
    installation.open_gate()
    installation.wait_for_successes(1)
    assert [fence for _, _, fence in installation.executions("ended")] == [1]
    assert "worker.struck_off" not in serving.output


@pytest.mark.slow
def test_code_that_blocks_the_worker_past_its_deadline_is_ended_with_it(
    start_server: Any, installation: Installation
) -> None:
    serving = start_node(start_server, installation)
    installation.create("blocking", limits=Limits(timeout=SECOND))
    serving.wait_for(r'"worker.stuck"')
    serving.wait_for(r'"worker.died", "exit_code": 70')
    wait_until(
        lambda: len(installation.executions("began")) == 2, "the run to be repeated by the next worker"
    )
    installation.open_gate()
    assert installation.executions("ended") == []
