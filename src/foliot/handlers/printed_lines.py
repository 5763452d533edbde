"""Send what an async function prints to the log of its run: several of them share one process, and its standard output."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from foliot.sdk.context import WriteLines


class _Printed:
    """The output of one call: complete lines are written at once, the rest at its end."""

    def __init__(self, write: WriteLines) -> None:
        self._write = write
        self._rest = {"stdout": "", "stderr": ""}

    def add(self, stream: str, text: str) -> None:
        lines, newline, rest = (self._rest[stream] + text).rpartition("\n")
        self._rest[stream] = rest
        if newline:
            self._write(stream, lines)

    def close(self) -> None:
        for stream, rest in self._rest.items():
            if rest:
                self._write(stream, rest)


_current: ContextVar[_Printed | None] = ContextVar("printed", default=None)


class _Redirected(io.TextIOBase):
    """Standard output that belongs to the call whose code writes to it; outside of calls it is the process's own."""

    def __init__(self, stream: str, own: TextIO) -> None:
        self.stream, self.own = stream, own

    def write(self, text: str) -> int:
        printed = _current.get()
        if printed is None:
            return self.own.write(text)
        printed.add(self.stream, text)
        return len(text)

    def flush(self) -> None:
        self.own.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


@contextmanager
def printing_to(write: WriteLines) -> Iterator[None]:
    """Send what the code within prints to `write`. Tasks and threads that it starts print there too."""
    for name in ("stdout", "stderr"):
        if not isinstance(own := getattr(sys, name), _Redirected):
            setattr(sys, name, _Redirected(name, own))
    printed = _Printed(write)
    token = _current.set(printed)
    try:
        yield
    finally:
        _current.reset(token)
        printed.close()
