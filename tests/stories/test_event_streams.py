"""A client listens: to a run as it works, to a workspace across a restart of the server, and to a server that stops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.request import Request, urlopen

import pytest

from foliot.clock import monotonic, pause
from foliot.services.workers.workers import BEATS_PER_LEASE, LEASE

pytestmark = pytest.mark.usefixtures("used_data_dir")

TESTS = str(Path(__file__).resolve().parents[2])


class Client:
    def __init__(self, url: str, data_dir: Path) -> None:
        self.url = f"{url}/api/v1"
        self.headers = {
            "Authorization": f"Bearer {(data_dir / 'admin.key').read_text().strip()}",
            "Content-Type": "application/json",
        }

    def post(self, path: str, **body: Any) -> Any:
        request = Request(f"{self.url}{path}", json.dumps(body).encode(), self.headers, method="POST")
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)

    @contextmanager
    def listen(self, path: str, **headers: str) -> Iterator[Iterator[tuple[str, str, Any]]]:
        with urlopen(Request(f"{self.url}{path}", headers=self.headers | headers), timeout=30) as answer:
            answer.readline()  # it has begun
            yield frames(answer)


def frames(answer: IO[bytes]) -> Iterator[tuple[str, str, Any]]:
    """(event, id, data) of each that has data."""
    fields: dict[str, str] = {}
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "data" in fields:
            yield fields["event"], fields.get("id", ""), json.loads(fields.pop("data"))


def talker(data_dir: Path) -> dict[str, Any]:
    """A manual job whose function waits for a file."""
    return {
        "name": "talker",
        "type": "python",
        "config": {"call": "tests.stories.job_functions:talking"},
        "payload": {"sink": str(data_dir / "sink"), "gate": str(data_dir / "gate")},
        "schedule": {"kind": "manual"},
    }


def test_a_run_is_followed_to_its_end_and_its_story_survives_a_restart(
    start_server: Any, data_dir: Path
) -> None:
    server = start_server(PYTHONPATH=TESTS)
    client = Client(server.wait_for_url(), data_dir)
    with client.listen("/events") as events:
        job = client.post("/jobs", **talker(data_dir))
        run = client.post(f"/jobs/{job['id']}/run")
        heard = [next(events) for _ in range(3)]
    assert [kind for kind, _, _ in heard] == ["job.created", "run.requested", "run.started"]
    with client.listen(f"/runs/{run['id']}/logs?follow=true") as lines:
        assert next(lines)[2]["text"] == "before the gate"
        (data_dir / "gate").touch()
        assert next(lines)[2]["text"] == "behind the gate"
        assert next(lines)[::2] == ("end", {"status": "succeeded", "truncated": False})
        assert next(lines, None) is None
    server.stop()
    again = start_server(PYTHONPATH=TESTS)
    client = Client(again.wait_for_url(), data_dir)
    with client.listen("/events", **{"Last-Event-ID": heard[-1][1]}) as events:
        kind, _, reported = next(events)
        assert (kind, reported["run_id"], reported["job_name"]) == ("run.succeeded", run["id"], "talker")


@pytest.mark.slow
@pytest.mark.requirement("S2-7", "S2-35")
def test_a_run_cancelled_by_force_is_stopped_where_it_works_without_waiting_for_a_heartbeat(
    start_server: Any, data_dir: Path
) -> None:
    client = Client(start_server(PYTHONPATH=TESTS).wait_for_url(), data_dir)
    body = talker(data_dir) | {"config": {"call": "tests.stories.job_functions:telling_its_pid"}}
    run = client.post(f"/jobs/{client.post('/jobs', **body)['id']}/run")
    with client.listen(f"/runs/{run['id']}/logs?follow=true") as lines:
        pid = int(next(lines)[2]["text"])
    began = monotonic()
    assert client.post(f"/runs/{run['id']}/cancel", force=True)["status"] == "cancelled"
    while is_alive(pid):
        assert monotonic() - began < LEASE.total_seconds() / BEATS_PER_LEASE / 2, "it works on"
        pause(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_open_streams_do_not_hold_up_the_end_of_a_server(start_server: Any, data_dir: Path) -> None:
    server = start_server(FOLIOT_SHUTDOWN_GRACE="10", FOLIOT_LOG_FORMAT="json")
    [url] = server.wait_for(r'"url": "(http://127\.0\.0\.1:\d+)"').groups()
    client = Client(url, data_dir)
    with client.listen("/events") as one, client.listen("/events?types=run") as other:
        server.stop()
        assert (next(one, None), next(other, None)) == (None, None)
    assert "graceful shutdown exceeded" not in server.output
