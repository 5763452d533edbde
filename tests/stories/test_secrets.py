"""Secrets in a real server with a real worker and a real peer: the peer gets them, and nobody else ever sees one."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import psycopg
import pytest

from foliot.services.secrets.vault import MasterKey
from foliot.testing.database import pool_url
from tests.cli.test_commands import PATIENCE
from tests.fork_server import environ_without_foliot, run_foliot
from tests.stories.server_process import ServerProcess, get_json, wait_until
from tests.stories.test_revocation import as_address, call

pytestmark = pytest.mark.timeout(PATIENCE)
VALUE = "plain/8c1e0f+canary=value"
SPELLED = (
    VALUE,
    quote(VALUE, safe=""),
    quote(VALUE),
    base64.b64encode(VALUE.encode()).decode(),
    base64.urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
    VALUE.encode().hex(),  # as bytea shows it
)
LOOPBACK = {"FOLIOT_EGRESS_ALLOW": "127.0.0.0/8"}


@dataclass
class Peer:
    """Answers with all it was sent, in several spellings."""

    url: str
    came: list[str] = field(default_factory=list)


@pytest.fixture
def peer() -> Iterator[Peer]:
    class Echo(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.headers.get("x-token", "")
            here.came.append(sent)
            reported = {
                "headers": dict(self.headers),
                "path": self.path,
                "spelled": [quote(sent), *SPELLED[:-1]],
            }
            body = json.dumps(reported).encode() + sent[:15].encode()
            self.send_response(500 if self.path.startswith("/fails") else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        here = Peer(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield here
        server.shutdown()
        thread.join()


class Office:
    """A member with a key, who asks by API and by command line."""

    def __init__(self, url: str, key: str, folder: Path) -> None:
        self.url, self.key, self.folder = url, key, folder

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        status, answer = call(f"{self.url}/api/v1{path}", self.key, method, body)
        assert status < 300, (path, answer)
        return answer

    def cli(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        env = environ_without_foliot() | {
            "FOLIOT_API_URL": self.url,
            "FOLIOT_API_KEY": self.key,
            "FOLIOT_OUTPUT": "json",
        }
        return run_foliot(*args, cwd=self.folder, env=env, stdin=stdin or "")

    def job(self, name: str, peer: Peer, path: str = "/works") -> str:
        made = self.ask(
            "POST",
            "/jobs",
            {
                "name": name,
                "type": "http",
                "config": {"url": peer.url + path, "headers": {"x-token": {"secret": "crm-token"}}},
                "schedule": {"kind": "manual"},
                "retry": {"max": 0, "strategy": "none"},
            },
        )
        found: str = made["id"]
        return found

    def run(self, job_id: str) -> dict[str, Any]:
        run_id = self.ask("POST", f"/jobs/{job_id}/run", {})["id"]
        found: dict[str, Any] = {}

        def ended() -> bool:
            found.update(self.ask("GET", f"/runs/{run_id}"))
            return found["finished_at"] is not None

        wait_until(ended, "the run's end")
        return found


def text_of(office: Office, path: str) -> str:
    request = Request(office.url + path, headers={"Authorization": f"Bearer {office.key}"})
    with urlopen(request, timeout=20) as answer:
        return str(answer.read().decode())


@pytest.mark.requirement("S2-36")
def test_the_peer_gets_the_value_and_no_answer_log_event_audit_export_or_row_ever_has_it(
    start_server: Any, data_dir: Path, owner_url: str, peer: Peer
) -> None:
    serving: ServerProcess = start_server(
        FOLIOT_DATABASE_URL=as_address(pool_url(owner_url)),
        FOLIOT_MIGRATE_URL=as_address(owner_url),
        FOLIOT_LOG_LEVEL="debug",
        **LOOPBACK,
    )
    office = Office(serving.wait_for_url(), (data_dir / "admin.key").read_text().strip(), data_dir.parent)
    heard: list[str] = []
    listening = Request(f"{office.url}/api/v1/events", headers={"Authorization": f"Bearer {office.key}"})
    stream = urlopen(listening, timeout=60)
    threading.Thread(target=lambda: heard.extend(line.decode() for line in stream), daemon=True).start()
    shown = [json.dumps(office.ask("POST", "/secrets", {"name": "crm-token", "value": VALUE}))]
    good, bad = office.job("works", peer), office.job("fails", peer, "/fails")
    runs = [office.run(good), office.run(bad)]
    assert [run["status"] for run in runs] == ["succeeded", "failed"]
    assert peer.came == [VALUE, VALUE]
    assert "***" in json.dumps(runs[0]["output"])
    assert runs[0]["output"]["status"] == 200
    wait_until(lambda: sum("event: run.failed" in line for line in heard), "the event of the failure")
    paths = [
        "/jobs",
        "/runs",
        "/secrets",
        "/audit",
        "/agenda",
        "/stats",
        "/queues",
        "/workers",
        "/master-key",
    ]
    paths += [
        f"/jobs/{each}{rest}"
        for each in (good, bad)
        for rest in ("", "/runs", "/revisions", "/explain", "/next", "/stats")
    ]
    paths += [f"/runs/{run['id']}{rest}" for run in runs for rest in ("", "/attempts", "/logs", "/explain")]
    shown += [text_of(office, f"/api/v1{path}") for path in paths]
    commands = [
        ("export",), ("secrets", "list"), ("secrets", "show", "crm-token"), ("runs", "list"), ("jobs", "show", "works"),
        ("runs", "logs", "fails#1"), ("audit", "list"), ("why", "fails"),
    ]  # fmt: skip
    for command in commands:
        done = office.cli(*command)
        assert done.returncode == 0, (command, done.stderr)
        shown += [done.stdout, done.stderr]
    assert (
        '"secret": "crm-token"' in shown[-len(commands) * 2]
        or "secret: crm-token" in shown[-len(commands) * 2]
    )
    serving.stop()
    shown += [serving.output, "".join(heard), *rows(owner_url)]
    leaks = [(piece, text[:200]) for piece in SPELLED for text in shown if piece in text]
    assert leaks == []


def rows(owner_url: str) -> Iterator[str]:
    """Every row of every table, and no more than that is in the database."""
    with psycopg.connect(owner_url) as owner:
        tables = owner.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind = 'r'"
        ).fetchall()
        for (name,) in tables:
            for (row,) in owner.execute(f"SELECT it::text FROM foliot.{name} AS it").fetchall():
                yield row


@pytest.mark.slow
def test_the_first_start_keeps_a_key_that_is_rotated_without_a_restart_and_a_wrong_one_is_reported(
    start_server: Any, data_dir: Path, peer: Peer
) -> None:
    serving: ServerProcess = start_server(**LOOPBACK)
    url = serving.wait_for_url()
    file = data_dir / "master.key"
    assert file.stat().st_mode & 0o777 == 0o600
    office = Office(url, (data_dir / "admin.key").read_text().strip(), data_dir.parent)
    kept = office.cli("secrets", "set", "crm-token", stdin=f"{VALUE}\n")
    assert (kept.returncode, json.loads(kept.stdout)["version"]) == (0, 1), kept.stderr
    job = office.job("works", peer)
    assert office.run(job)["status"] == "succeeded"

    first = file.read_text()
    rotated = office.cli("secrets", "rotate", "--new-key")
    assert json.loads(rotated.stdout)["rotated"] == 1, rotated.stderr
    assert len(file.read_text().splitlines()) == len(first.splitlines()) + 1
    assert file.stat().st_mode & 0o777 == 0o600
    assert office.run(job)["status"] == "succeeded"  # the worker, another process, has found the new key
    assert peer.came == [VALUE, VALUE]
    serving.stop()

    wrong: ServerProcess = start_server(FOLIOT_MASTER_KEY=MasterKey.new().text, **LOOPBACK)
    office.url = wrong.wait_for_url()
    assert any("do not open" in each for each in get_json(f"{office.url}/readyz")[1]["warnings"])
    [reported] = [each for each in wrong.events() if each["event"] == "secrets.unreadable"]
    assert reported["names"] == ["default/crm-token"]
    failed = office.run(job)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "secret_unreadable")
    assert office.cli("secrets", "set", "other", stdin="value").returncode != 0
    wrong.stop()

    right: ServerProcess = start_server(**LOOPBACK)
    office.url = right.wait_for_url()
    assert not any("do not open" in each for each in get_json(f"{office.url}/readyz")[1]["warnings"])
    assert office.run(job)["status"] == "succeeded"
    right.stop()


@pytest.mark.parametrize("key", ["changeme", "A" * 43])
def test_a_key_that_anybody_could_guess_stops_the_start(start_server: Any, key: str) -> None:
    serving: ServerProcess = start_server(FOLIOT_MASTER_KEY=key)
    serving.wait_for("FOLIOT_MASTER_KEY holds")
    serving.process.wait(60)
    assert serving.process.returncode != 0
    assert key not in serving.output
