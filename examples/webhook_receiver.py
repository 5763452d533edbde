"""A receiver of a room's webhook: it checks signatures and ignores repeats. `./dev serve` must be running."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer

from foliot import Client

KEY = secrets.token_bytes(32)
OLDEST = 300  # seconds: an older signature may be a replay
done: set[str] = set()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if not is_genuine(self.headers, body):
            self.send_error(401)
            return
        if self.headers["webhook-id"] not in done:  # an answer that got lost brings the same again
            print(f"received: {json.loads(body)['data']['text']}")
            done.add(self.headers["webhook-id"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


def is_genuine(headers: Message, body: bytes) -> bool:
    at = headers["webhook-timestamp"]
    signed = f"{headers['webhook-id']}.{at}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
    signatures = headers["webhook-signature"].split()  # several, while one secret replaces another
    is_fresh = abs(time.time() - int(at)) < OLDEST  # noqa: TID251  # a receiver elsewhere has no clock of Foliot's
    return is_fresh and any(hmac.compare_digest(each, expected) for each in signatures)


with Client() as foliot, HTTPServer(("127.0.0.1", 0), Receiver) as server:
    secret = foliot.secrets.set("standup-hook", "whsec_" + base64.b64encode(KEY).decode())
    room = foliot.rooms.create("Stand-up")
    foliot.rooms.set_webhook(room.id, f"http://127.0.0.1:{server.server_port}/standup", secret=secret.name)
    for text in ("What is on today?", "Three tickets and the release."):
        foliot.rooms.post(room.id, text)
    while len(done) < 2:
        server.handle_request()
print("both were genuine")
