"""The child process that calls one plain function at a time for its worker, so that a deadline can really end it.

Requests and answers are JSON behind their length in four bytes. When the worker dies, this process and everything it started die too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from types import FrameType
from typing import Any, BinaryIO

from foliot.clock import monotonic
from foliot.domain.logs import MOST_BYTES, MOST_LINES
from foliot.handlers.python_call import bind_arguments, encode_error, resolve
from foliot.sdk.context import Context

PROGRESS_EVERY = 0.25  # seconds
_stopped = threading.Event()


def main() -> None:
    sys.path.append(os.getcwd())  # noqa: PTH109  # last, so that no file there replaces a library
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # the function's output must not be taken for an answer
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # so that output arrives as it is printed
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    received: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(requests, received), daemon=True).start()
    writer = AnswerWriter(answers)
    while True:
        request = json.loads(received.get())
        writer.reset()
        _mark_output(request["mark"])
        answer = _call(request, writer)
        _mark_output(request["mark"])
        writer.send(answer)


class AnswerWriter:
    """Send the answer, and before it the lines, artifacts and progress of the function, from any of its threads."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._lines_left = 0
        self._progress_at = 0.0  # on the monotonic clock

    def reset(self) -> None:
        """Prepare for the next call."""
        self._lines_left = MOST_LINES + 1  # one more than is kept shows that there were more
        self._progress_at = 0.0

    def write(self, stream: str, text: str) -> None:
        if self._lines_left > 0:
            self._lines_left -= 1
            self.send({"log": [stream, text[:MOST_BYTES]]})

    def keep(self, name: str, data: bytes, media_type: str) -> None:
        self.send({"artifact": [name, media_type, len(data)]}, data)

    def tell(self, done: float, total: float, note: str) -> None:
        """Send progress at intervals: functions may report every row."""
        now = monotonic()
        if now >= self._progress_at or done >= total:
            self._progress_at = now + PROGRESS_EVERY
            self.send({"progress": [done, total, note]})

    def send(self, message: dict[str, Any], raw: bytes = b"") -> None:
        """Send a message, and raw bytes behind it."""
        sent = json.dumps(message).encode()
        with self._lock:
            self._answers.write(len(sent).to_bytes(4, "big") + sent)
            self._answers.write(raw)
            self._answers.flush()


def _receive(requests: BinaryIO, received: SimpleQueue[bytes]) -> None:
    while head := requests.read(4):
        received.put(requests.read(int.from_bytes(head, "big")))
    os.killpg(0, signal.SIGKILL)  # the worker is gone; this process leads a group of its own


def _call(request: dict[str, Any], writer: AnswerWriter) -> dict[str, Any]:
    try:
        function = resolve(request["call"])
        ctx = Context.of_json(request["ctx"], writer.write, _stopped.is_set, writer.keep, writer.tell)
        output = bind_arguments(function, request["input"], ctx, request.get("config"))()
        json.dumps(output, allow_nan=False)
    except BaseException as error:  # noqa: BLE001  # sys.exit() in a function ends the attempt, not this process
        return encode_error(error)
    return {"output": output}


def _mark_output(mark: str) -> None:
    """Mark the start and the end of a call's output: the worker reads it from another pipe than the answer."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the function may have closed or replaced it
            stream.flush()
    with suppress(OSError):
        os.write(2, mark.encode())


def _stop(number: int, frame: FrameType | None) -> None:
    """Let the function's own `finally` run; SIGKILL follows soon."""
    _stopped.set()
    raise SystemExit("the attempt was stopped")


if __name__ == "__main__":
    main()
