"""A TCP proxy before PostgreSQL, one for each node: it cuts, holds and delays connections, and resets them around a commit."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum

COMMIT = b"COMMIT"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST


class Mode(StrEnum):
    PASS = "pass"
    CUT = "cut"  # every connection is closed, new ones at once
    HOLD = "hold"  # nothing passes, nothing is closed
    DELAY = "delay"
    RESET_BEFORE_COMMIT = "reset before commit"  # the commit never arrives
    RESET_AFTER_COMMIT = "reset after commit"  # the commit happens, its answer never arrives


class Proxy:
    """Its methods may be called from any thread. A mode holds until the next is set."""

    def __init__(self, upstream: int, seed: int) -> None:
        self.upstream = upstream
        self._mode, self._delay, self._share = Mode.PASS, 0.0, 1.0
        self._chance = random.Random(seed)
        self._lines: set[_Line] = set()
        self._passing = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def set(self, mode: Mode, *, delay: float = 0.0, share: float = 1.0) -> None:
        """`share` is the part of commits that a reset hits."""

        def change() -> None:
            self._mode, self._delay, self._share = mode, delay, share
            if mode is Mode.HOLD:
                self._passing.clear()
            else:
                self._passing.set()
            if mode is Mode.CUT:
                self._reset_all()

        self._call(change)

    def lead_to(self, upstream: int) -> None:
        """Lead new connections to another server, and end those that there are."""

        def change() -> None:
            self.upstream = upstream
            self._reset_all()

        self._call(change)

    def close(self) -> None:
        self._call(self._loop.stop)
        self._thread.join()

    def hits(self) -> bool:
        return self._chance.random() < self._share

    def _reset_all(self) -> None:
        for line in list(self._lines):
            line.reset()

    def _call(self, change: Callable[[], None]) -> None:
        done = threading.Event()

        def call() -> None:
            change()
            done.set()

        self._loop.call_soon_threadsafe(call)
        done.wait(10)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._passing.set()
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        server.close()
        self._reset_all()
        pending = asyncio.all_tasks(self._loop)
        for task in pending:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = _Line(self, writer)
        self._lines.add(line)
        try:
            if self._mode is Mode.CUT:
                return
            await self._passing.wait()
            theirs, ours = await asyncio.open_connection("127.0.0.1", self.upstream)
            line.writers.append(ours)
            pumps = [
                asyncio.ensure_future(self._pump(reader, ours, line, from_client=True)),
                asyncio.ensure_future(self._pump(theirs, writer, line, from_client=False)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except OSError:
            pass  # the server is down, as a fault may want it
        finally:
            line.reset()
            self._lines.discard(line)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: _Line, *, from_client: bool
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                if self._delay:
                    await asyncio.sleep(self._delay)
                await self._passing.wait()
                if from_client:
                    line.is_committing = COMMIT in piece and self.hits()
                    if line.is_committing and self._mode is Mode.RESET_BEFORE_COMMIT:
                        return
                elif line.is_committing and self._mode is Mode.RESET_AFTER_COMMIT:
                    return
                writer.write(piece)
                await writer.drain()


class _Line:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, writer: asyncio.StreamWriter) -> None:
        self.writers = [writer]
        self.is_committing = False

    def reset(self) -> None:
        for writer in self.writers:
            end: socket.socket | None = writer.get_extra_info("socket")
            with suppress(OSError):
                if end is not None and not writer.transport.is_closing():
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()
