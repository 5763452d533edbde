"""The child process that calls one plain function at a time for its worker, so that a deadline can really end it.

It serves one workspace. Requests and answers are JSON behind their length in four bytes; each message carries the token of its call. When the
worker dies, this process and everything it started die too.
"""

from __future__ import annotations

import _thread
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any, BinaryIO

from foliot.clock import monotonic
from foliot.domain.logs import MOST_BYTES, MOST_LINES
from foliot.handlers.python_call import bind_arguments, encode_error, is_async
from foliot.handlers.python_names import find_allowed
from foliot.sdk.context import Context
from foliot.wire.amounts import add_usage

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
    lock = threading.Lock()
    while True:
        request = json.loads(received.get())
        writer = AnswerWriter(answers, lock, request["token"])
        _mark_output(writer.mark)
        answer = _call(request, writer)
        _mark_output(writer.mark)
        writer.finish(answer | {"has_left_work": _has_left_work()})


class AnswerWriter:
    """Send the answer of one call, and before it the lines, artifacts, progress and usage of the function, from any of its threads.

    What a thread says that outlives the call is dropped.
    """

    def __init__(self, answers: BinaryIO, lock: threading.Lock, token: str) -> None:
        self._answers = answers
        self._lock = lock
        self._token = token
        self._is_over = False
        self._lines_left = MOST_LINES + 1  # one more than is kept shows that there were more
        self._progress_at = 0.0  # on the monotonic clock
        self._used: Mapping[str, Decimal] = {}

    @property
    def mark(self) -> str:
        return f"\0{self._token}\0"

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

    def spend(self, usage: Mapping[str, Decimal]) -> None:
        self._used = add_usage(self._used, usage)  # what is too much is the function's own error
        self.send({"usage": {unit: str(amount) for unit, amount in usage.items()}})

    def finish(self, answer: dict[str, Any]) -> None:
        self.send({"answer": answer}, is_last=True)

    def send(self, message: dict[str, Any], raw: bytes = b"", *, is_last: bool = False) -> None:
        """Send a message, and raw bytes behind it."""
        sent = json.dumps(message | {"token": self._token}).encode()
        with self._lock:
            if self._is_over:
                return
            self._is_over = is_last
            self._answers.write(len(sent).to_bytes(4, "big") + sent)
            self._answers.write(raw)
            self._answers.flush()


def _receive(requests: BinaryIO, received: SimpleQueue[bytes]) -> None:
    while head := requests.read(4):
        received.put(requests.read(int.from_bytes(head, "big")))
    os.killpg(0, signal.SIGKILL)  # the worker is gone; this process leads a group of its own


def _call(request: dict[str, Any], writer: AnswerWriter) -> dict[str, Any]:
    try:
        function = find_allowed(request["call"], request["packages"], is_loaded=request["is_loaded"])
        if request.get("only_find"):
            return {"output": is_async(function)}
        ctx = Context.of_json(
            request["ctx"], writer.write, _stopped.is_set, writer.keep, writer.tell, writer.spend
        )
        output = bind_arguments(function, request["input"], ctx, request.get("config"))()
        json.dumps(output, allow_nan=False)
    except BaseException as error:  # noqa: BLE001  # sys.exit() in a function ends the attempt, not this process
        return encode_error(error)
    return {"output": output}


def _has_left_work() -> bool:
    """Return whether a thread or a process that the function started goes on: what it prints would be taken for that of the next call."""
    if _thread._count() > 1:  # noqa: SLF001  # `_receive` has one; `threading` does not know them all
        return True
    # The supervisor adopts processes whose parents have ended.
    return len(_children(os.getpid())) > 0 or len(_children(os.getppid())) > 1


def _children(pid: int) -> list[str]:
    """Return the child processes that the kernel lists; none where it keeps no such list."""
    found: list[str] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += task.read_text().split()
    return found


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
