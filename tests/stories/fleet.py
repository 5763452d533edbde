"""A server and its hosts as real processes, and the log of what they execute."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from foliot import Client
from foliot.wire.jobs import JobOut
from tests.fork_server import environ_without_foliot, start_foliot
from tests.stories.execution_log import ExecutionLog
from tests.stories.server_process import LoggedProcess, wait_until

FAST = {"FOLIOT_WORKER_LEASE": "3", "FOLIOT_LOG_FORMAT": "json"}


class HostProcess(LoggedProcess):
    """A `foliot host` in its own folder."""

    def __init__(
        self, folder: Path, url: str, key: str, *flags: str, environ: Mapping[str, str] | None = None
    ) -> None:
        given = {"FOLIOT_API_KEY": key, "FOLIOT_LOG_FORMAT": "json", "FOLIOT_WORKER_GRACE": "1"}
        env = environ_without_foliot() | given | dict(environ or {})
        super().__init__(
            start_foliot("host", "--server", url, "--label", "rack=7", *flags, cwd=folder, env=env)
        )


@dataclass
class Fleet(ExecutionLog):
    """A server, the folder of its hosts, and the log of executions."""

    start_server: Any
    data_dir: Path
    hosts: list[HostProcess] = field(default_factory=list)
    url: str = ""
    key: str = ""

    def open(self, **environ: str) -> Any:
        """Start the server; a second start has the same address."""
        if not self.url:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        given = {"FOLIOT_PORT": self.url.rpartition(":")[2], **FAST, **environ}
        serving = self.start_server(**given)
        serving.wait_for(r'"server.started"')
        return serving

    @property
    def client_key(self) -> str:
        return (self.data_dir / "admin.key").read_text().strip()

    def client(self, workspace: str | None = None) -> Client:
        return Client(self.url, self.client_key, workspace)

    def start_host(self, name: str = "h1", *instances: str) -> HostProcess:
        """Start a host and wait until it is registered."""
        flags = [word for each in instances for word in ("--instance", each)]
        host = self.start("--name", name, "--allow-python", *flags)
        host.wait_for(r'"worker.registered"')
        return host

    def start(self, *flags: str, url: str | None = None, **environ: str) -> HostProcess:
        """Start a host with these flags, for this server or for another address."""
        if not self.key:
            with self.client() as client:
                self.key = self.worker_key(client)
        self.hosts.append(HostProcess(self.folder, url or self.url, self.key, *flags, environ=environ))
        return self.hosts[-1]

    def worker_key(self, client: Client) -> str:
        """Create a key of the scope `worker`."""
        member = client.members.create(kind="service", name="hosts", role="viewer")
        return client.keys.create("hosts", principal=member.id, scopes=["worker"]).secret

    def job(self, client: Client, call: str, **fields: Any) -> JobOut:
        least = {
            "type": "python",
            "config": {"call": f"job_functions:{call}"},
            "payload": self.payload,
            "schedule": {"kind": "manual"},
        }
        return client.jobs.create({"name": call, "target": {"server": "pvp"}, **least, **fields})


def wait_for(client: Client, run_id: UUID, status: str) -> Any:
    wait_until(lambda: client.runs.get(run_id).status == status, f"a run with status {status}")
    return client.runs.get(run_id)
