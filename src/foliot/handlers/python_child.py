"""A hand: a process that calls one plain function at a time for its worker, so that a deadline can end it for real.

Questions and answers are JSON with its length in four bytes before it. When the worker dies, the hand and everything it has
started dies too.
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

TELL_EVERY = 0.25  # seconds between words on how far the function is
_stopped = threading.Event()


def main() -> None:
    sys.path.append(os.getcwd())  # noqa: PTH109  # last, so that a file lying there cannot pose as a library
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the function prints must not be taken for an answer
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # so that it is heard as it comes
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    asked: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(questions, asked), daemon=True).start()
    voice = AnswerWriter(answers)
    while True:
        question = json.loads(asked.get())
        voice.begin()
        _mark_what_is_printed(question["mark"])
        answer = _answer(question, voice)
        _mark_what_is_printed(question["mark"])
        voice.say(answer)


class AnswerWriter:
    """Answers, and before them the lines that a function writes, from whichever of its threads."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._left = 0
        self._tell_at = 0.0  # on the monotonic clock

    def begin(self) -> None:
        self._left = MOST_LINES + 1  # one more than is kept tells that there were more
        self._tell_at = 0.0

    def write(self, stream: str, text: str) -> None:
        if self._left > 0:
            self._left -= 1
            self.say({"log": [stream, text[:MOST_BYTES]]})

    def keep(self, name: str, data: bytes, media_type: str) -> None:
        self.say({"artifact": [name, media_type, len(data)]}, data)

    def tell(self, done: float, total: float, note: str) -> None:
        """Now and then: functions may count every row."""
        now = monotonic()
        if now >= self._tell_at or done >= total:
            self._tell_at = now + TELL_EVERY
            self.say({"progress": [done, total, note]})

    def say(self, message: dict[str, Any], raw: bytes = b"") -> None:
        """What is no JSON comes behind its message as it is."""
        sent = json.dumps(message).encode()
        with self._lock:
            self._answers.write(len(sent).to_bytes(4, "big") + sent)
            self._answers.write(raw)
            self._answers.flush()


def _listen(questions: BinaryIO, asked: SimpleQueue[bytes]) -> None:
    while head := questions.read(4):
        asked.put(questions.read(int.from_bytes(head, "big")))
    os.killpg(0, signal.SIGKILL)  # we lead a group of our own: nobody else is in it


def _answer(question: dict[str, Any], voice: AnswerWriter) -> dict[str, Any]:
    try:
        function = resolve(question["call"])
        ctx = Context.of_json(question["ctx"], voice.write, _stopped.is_set, voice.keep, voice.tell)
        output = bind_arguments(function, question["input"], ctx, question.get("config"))()
        json.dumps(output, allow_nan=False)
    except BaseException as error:  # noqa: BLE001  # sys.exit() in a function ends the attempt, not the hand
        return encode_error(error)
    return {"output": output}


def _mark_what_is_printed(mark: str) -> None:
    """The worker hears it on another line than the answer, and must know where the words of this call begin and end."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the function may have closed it, or put something else in its place
            stream.flush()
    with suppress(OSError):
        os.write(2, mark.encode())


def _stop(number: int, frame: FrameType | None) -> None:
    """The function's own `finally` still runs; soon after comes a signal that nothing survives."""
    _stopped.set()
    raise SystemExit("the attempt was stopped")


if __name__ == "__main__":
    main()
