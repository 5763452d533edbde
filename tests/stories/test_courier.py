"""A job leaves word in a room, and the room's webhook tells a receiver: even where the server is killed over it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from foliot.sdk import Client
from tests.stories.server_process import wait_until

pytestmark = pytest.mark.usefixtures("used_data_dir")

PATIENCE = 90.0  # seconds: a lease, and a busy machine


class Witness:
    """Takes what comes; while `holds`, it never answers."""

    def __init__(self) -> None:
        self.came: list[tuple[str, dict[str, Any]]] = []
        self.let_go = threading.Event()
        self.url = ""


@contextmanager
def witnessing() -> Iterator[Witness]:
    witness = Witness()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            witness.came.append((str(self.headers["webhook-id"]), body))
            witness.let_go.wait(PATIENCE)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        witness.url = f"http://127.0.0.1:{server.server_port}/hook"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield witness
        witness.let_go.set()
        server.shutdown()


@pytest.mark.slow
def test_a_server_killed_before_it_heard_the_answer_tells_again_under_the_same_id(
    start_server: Any, data_dir: Path
) -> None:
    with witnessing() as witness:
        first = start_server()
        url = first.wait_for_url()
        with Client(url, (data_dir / "admin.key").read_text().strip()) as foliot:
            room = foliot.rooms.create("Stand-up", webhook={"url": witness.url})
            foliot.jobs.create(
                name="stand-up",
                type="message",
                schedule="every second",
                max_runs=2,
                config={"room": str(room.id), "text": "What is on today?"},
            )
            wait_until(lambda: witness.came, "the first message at the receiver")
            wait_until(lambda: foliot.rooms.get(room.id).last_seq == 2, "the second message in the room")
        first.process.kill()
        first.process.wait()
        assert len(witness.came) == 1  # the second waits behind the first
        witness.let_go.set()
        again = start_server().wait_for_url()
        wait_until(lambda: len(witness.came) >= 3, "the same again, and the second", PATIENCE)
        with Client(again, (data_dir / "admin.key").read_text().strip()) as foliot:
            wait_until(lambda: _received(foliot, str(room.id)) == 2, "both written down as received")
    ids = [delivery_id for delivery_id, _ in witness.came]
    assert ids[0] == ids[1] != ids[2]
    assert [body["data"]["seq"] for _, body in witness.came] == [1, 1, 2]


def _received(foliot: Client, room_id: str) -> int | None:
    webhook = foliot.rooms.get(room_id).webhook
    return None if webhook is None else webhook.delivered_seq
