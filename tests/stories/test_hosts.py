"""Story A0: a host on another machine, with nothing but a key, does what its servers need: through failures, kills, freezes and
restarts of the server. The witness is a file that every execution writes to before it does anything else.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from foliot import Client
from foliot.sdk import NotFound
from foliot.wire.jobs import JobOut
from foliot.wire.runs import AttemptOut
from tests.stories.serving import FOLIOT, STOP_WITHIN, Speaking, wait_until

FAST = {"FOLIOT_WORKER_LEASE": "3", "FOLIOT_LOG_FORMAT": "json"}
RESTARTS = {"max": 2, "strategy": "exponential", "base": "1s", "past_next": True}


class HostProcess(Speaking):
    """A `foliot host` in a folder of its own."""

    def __init__(self, folder: Path, url: str, key: str, name: str, *instances: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
        flags = [word for each in instances for word in ("--instance", each)]
        super().__init__(
            (FOLIOT, "host", "--server", url, "--name", name, "--allow-python", "--label", "rack=7", *flags),
            env=kept | {"FOLIOT_API_KEY": key, "FOLIOT_LOG_FORMAT": "json", "FOLIOT_WORKER_GRACE": "1"},
            cwd=folder,
        )


@dataclass
class Alpha:
    """An org with a server, a machine's folder, and the witness."""

    folder: Path
    serve: Any
    data_dir: Path
    hosts: list[HostProcess] = field(default_factory=list)
    url: str = ""
    key: str = ""

    def open(self, **environ: str) -> Any:
        """A server at an address that stays the same when it is started again."""
        if not self.url:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        given = {"FOLIOT_PORT": self.url.rpartition(":")[2], **FAST, **environ}
        serving = self.serve(**given)
        serving.wait_for(r'"server.started"')
        return serving

    def client(self, workspace: str | None = None) -> Client:
        return Client(self.url, (self.data_dir / "admin.key").read_text().strip(), workspace)

    def pair(self, name: str = "h1", *instances: str) -> HostProcess:
        """The host starts and is there."""
        with self.client() as client:
            if not self.key:
                member = client.members.create(kind="service", name="hosts", role="viewer")
                made = client.keys.create("hosts", principal=member.id, scopes=["worker"])
                self.key = made.secret
        self.hosts.append(HostProcess(self.folder, self.url, self.key, name, *instances))
        self.hosts[-1].wait_for(r'"worker.registered"')
        return self.hosts[-1]

    def job(self, client: Client, call: str, **fields: Any) -> JobOut:
        given = {"sink": str(self.folder / "sink"), "gate": str(self.folder / "gate")}
        least = {
            "type": "python",
            "config": {"call": f"errands:{call}"},
            "payload": given,
            "schedule": {"kind": "manual"},
        }
        return client.jobs.create({"name": call, "target": {"server": "pvp"}, **least, **fields})

    def witnessed(self, what: str) -> list[tuple[str, int, int]]:
        """(run, attempt, fence) of each execution that came this far."""
        sink = self.folder / "sink"
        lines = [line.split() for line in sink.read_text().splitlines()] if sink.exists() else []
        return [(run, int(attempt), int(fence)) for word, run, attempt, fence in lines if word == what]

    def open_gate(self) -> None:
        (self.folder / "gate").touch()


@pytest.fixture
def alpha(tmp_path: Path, data_dir: Path, serve: Any) -> Iterator[Alpha]:
    folder = tmp_path / "machine"
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("errands.py"), folder)
    made = Alpha(folder, serve, data_dir)
    yield made
    made.open_gate()
    for host in made.hosts:
        host.end()


def wait_for(client: Client, run_id: UUID, status: str) -> Any:
    wait_until(lambda: client.runs.get(run_id).status == status, f"a run that {status}")
    return client.runs.get(run_id)


def test_a_host_restarts_its_server_at_the_third_attempt_and_beta_sees_none_of_it(alpha: Alpha) -> None:
    alpha.open()
    host = alpha.pair("h1", "pvp")
    with alpha.client() as client:
        nightly = {"kind": "cron", "expr": "0 2 * * *", "timezone": "UTC"}
        window = {"start": "02:00", "end": "06:00"}
        job = alpha.job(client, "third_time_lucky", schedule=nightly, window=window, retry=RESTARTS)
        assert _clock(job) == (2, 0)
        run = client.jobs.run(job.id)
        done = wait_for(client, run.id, "succeeded")
        tries = client.runs.attempts(run.id).items
        assert [each.status for each in tries] == ["failed", "failed", "succeeded"]
        waits = [_waited(*each) for each in pairwise(tries)]
        assert [wait >= least for wait, least in zip(waits, (1, 2), strict=True)] == [True, True], waits
        assert done.attempt_count == 3
        assert [attempt for _, attempt, _ in alpha.witnessed("tried")] == [1, 2, 3]
        after = client.jobs.get(job.id)
        assert (after.last_run_status, after.run_count, after.failure_count) == ("succeeded", 1, 0)
        earlier = client.jobs.patch(job.id, {"schedule": {"expr": "0 1 * * *"}})
        assert _clock(earlier) == (2, 0), "one o'clock is put off until the window opens"
        [seen] = client.hosts.list().items
        assert (seen.name, seen.status, seen.labels) == ("h1", "online", {"rack": "7"})
        assert [line.text for line in client.runs.logs(run.id).items] == [
            "attempt 1",
            "attempt 2",
            "attempt 3",
        ]
        client.workspaces.create("beta")
    with alpha.client("beta") as system:
        theirs = system.keys.create(
            "beta", principal=system.members.create(kind="service", name="b", role="admin").id
        )
    with Client(alpha.url, theirs.secret) as beta:
        for ask in (
            lambda: beta.hosts.get(seen.id),
            lambda: beta.runs.get(run.id),
            lambda: beta.jobs.get(job.id),
        ):
            with pytest.raises(NotFound):
                ask()
        assert beta.hosts.list().items == []
    assert host.stop() < STOP_WITHIN


def test_a_scheduled_job_runs_on_the_host_and_says_when_the_host_is_offline(alpha: Alpha) -> None:
    alpha.open()
    host = alpha.pair("h1", "pvp")
    with alpha.client() as client:
        job = alpha.job(client, "quickly", schedule={"kind": "interval", "every": "1s"}, start_deadline="1s")
        wait_until(lambda: client.jobs.get(job.id).success_count >= 3, "three runs by schedule")
        host.stop()
        assert client.hosts.list().items[0].status == "offline"
        wait_until(
            lambda: client.runs.list(skip_reason="host_offline").items, "a run that was skipped for its host"
        )
        skipped = client.runs.list(skip_reason="host_offline").items[0]
        assert "Host h1 has been offline since" in (skipped.note or "")
        patient = client.jobs.run(alpha.job(client, "quickly", name="patient").id)
        told = client.runs.explain(patient.id).sentence
        assert told.startswith('Run 1 waits for server "pvp": host h1 has been offline since ')
        alpha.pair("h2", "pvp")
        wait_for(client, patient.id, "succeeded")
    succeeded = alpha.witnessed("done")
    assert len(succeeded) == len(set(succeeded)), "two executions under one fence"


def test_a_run_whose_host_is_killed_is_lost_and_repeated_when_the_host_is_back(alpha: Alpha) -> None:
    alpha.open()
    host = alpha.pair("h1", "pvp")
    with alpha.client() as client:
        run = client.jobs.run(alpha.job(client, "gated").id)
        wait_until(lambda: alpha.witnessed("began"), "the first attempt")
        host.process.kill()
        host.process.wait()
        alpha.pair("h1", "pvp")
        wait_until(lambda: len(alpha.witnessed("began")) == 2, "the second attempt")
        alpha.open_gate()
        wait_for(client, run.id, "succeeded")
        assert [each.status for each in client.runs.attempts(run.id).items] == ["lost", "succeeded"]
    assert alpha.witnessed("began") == [(str(run.id), 1, 1), (str(run.id), 2, 2)]


def test_the_result_of_a_host_frozen_past_its_lease_is_refused(alpha: Alpha) -> None:
    serving = alpha.open()
    host = alpha.pair("h1", "pvp")
    with alpha.client() as client:
        run = client.jobs.run(alpha.job(client, "gated").id)
        wait_until(lambda: alpha.witnessed("began"), "the first attempt")
        host.process.send_signal(signal.SIGSTOP)
        alpha.open_gate()
        wait_until(lambda: alpha.witnessed("ended"), "the work of the frozen host")
        serving.wait_for(r'"run.swept".*"as": "Lost"')
        host.process.send_signal(signal.SIGCONT)
        serving.wait_for(r'"report.refused".*"fence": 1')
        wait_for(client, run.id, "succeeded")
        assert [each.status for each in client.runs.attempts(run.id).items] == ["lost", "succeeded"]
        [refused] = client.audit(action="report.refused").items
        assert refused.object.id == str(run.id)
    assert [fence for _, _, fence in alpha.witnessed("ended")] == [1, 2]


def test_a_server_restarted_in_the_middle_of_a_run_takes_its_result_afterwards(alpha: Alpha) -> None:
    serving = alpha.open(FOLIOT_WORKER_LEASE="60")
    host = alpha.pair("h1", "pvp")
    with alpha.client() as client:
        run = client.jobs.run(alpha.job(client, "gated").id)
        wait_until(lambda: alpha.witnessed("began"), "the attempt")
    serving.stop()
    alpha.open_gate()
    wait_until(lambda: alpha.witnessed("ended"), "the work, while nobody listens")
    alpha.open(FOLIOT_WORKER_LEASE="60")
    with alpha.client() as client:
        done = wait_for(client, run.id, "succeeded")
        assert (done.attempt_count, alpha.witnessed("ended")) == (1, [(str(run.id), 1, 1)])
        again = client.jobs.run(alpha.job(client, "quickly").id)
        wait_for(client, again.id, "succeeded")
    assert host.process.poll() is None


def test_a_host_that_is_told_to_stop_hands_back_what_it_cannot_finish(alpha: Alpha) -> None:
    alpha.open()
    host = alpha.pair("h1", "pvp")
    with alpha.client() as client:
        run = client.jobs.run(alpha.job(client, "gated").id)
        wait_until(lambda: alpha.witnessed("began"), "the attempt")
        assert host.stop() < STOP_WITHIN
        assert client.runs.get(run.id).status == "ready"
        assert "offline since" in client.runs.explain(run.id).sentence
        alpha.open_gate()
        alpha.pair("h1", "pvp")
        done = wait_for(client, run.id, "succeeded")
        assert [each.status for each in client.runs.attempts(run.id).items] == ["cancelled", "succeeded"]
        assert done.error is None


def test_a_host_with_a_key_that_is_not_for_workers_is_refused_with_the_reason(alpha: Alpha) -> None:
    alpha.open()
    admin = (alpha.data_dir / "admin.key").read_text().strip()
    done = subprocess.run(
        (FOLIOT, "host", "--server", alpha.url, "--key", admin),
        env={name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")},
        cwd=alpha.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 5, done.stderr
    assert "keys of the scope worker" in done.stderr
    assert admin not in done.stderr


def _clock(job: JobOut) -> tuple[int, int]:
    at: datetime | None = job.next_run_at
    assert at is not None
    return at.hour, at.minute


def _waited(earlier: AttemptOut, later: AttemptOut) -> float:
    assert earlier.finished_at is not None
    return (later.started_at - earlier.finished_at).total_seconds()
