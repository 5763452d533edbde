"""Read an output stream of a program: lines go to the log as they come, up to a limit, and the tail is kept."""

from __future__ import annotations

import asyncio
import codecs
from asyncio import StreamReader

from foliot.domain.logs import MOST_BYTES, MOST_LINES
from foliot.sdk.context import WriteLines

TAIL = 8 * 1024  # bytes
PIECE = 64 * 1024  # bytes read at once
LONGEST_LINE = 16 * 1024  # characters; the log buffer cuts sooner
FLOOD_PAUSE = 0.01  # seconds after each piece beyond the limit: at most 6 MiB a second are read and dropped


class OutputStream:
    """Write the lines of a stream to the log, up to the limit, and keep its tail for the run's output."""

    def __init__(self, stream: str, write: WriteLines) -> None:
        self._stream = stream
        self._write = write
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""  # the unfinished last line
        self._tail = b""
        self._lines_left, self._bytes_left = MOST_LINES + 1, MOST_BYTES  # one more shows that there were more
        self.is_whole = True  # whether the tail is the whole output

    @property
    def tail(self) -> str:
        return self._tail.decode("utf-8", "replace").replace("\0", "\ufffd")

    async def read(self, reader: StreamReader) -> None:
        """Read the stream to its end."""
        while piece := await reader.read(PIECE):
            await self.add(piece)
        self.end()

    async def add(self, piece: bytes) -> None:
        self._extend_tail(piece)
        if self._lines_left > 0:
            self._write_lines(self._decoder.decode(piece))
        else:
            await asyncio.sleep(FLOOD_PAUSE)  # the program waits meanwhile, and other attempts go on

    def end(self) -> None:
        self._write_lines(self._decoder.decode(b"", final=True), is_end=True)

    def _extend_tail(self, piece: bytes) -> None:
        whole = self._tail + piece
        self.is_whole = self.is_whole and len(whole) <= TAIL
        self._tail = whole[-TAIL:]

    def _write_lines(self, text: str, *, is_end: bool = False) -> None:
        lines = (self._line + text).split("\n")
        self._line = lines.pop()
        if len(self._line) > LONGEST_LINE or (is_end and self._line):
            lines.append(self._line)
            self._line = ""
        for line in lines:
            if self._lines_left > 0:
                self._lines_left -= 1
                self._bytes_left -= len(line)
                if self._bytes_left < 0:
                    self._lines_left = 0
                self._write(self._stream, line.removesuffix("\r"))
