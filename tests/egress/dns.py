"""A name server of a few lines on a port of its own, and a resolver that asks it: real packets, and answers that flip."""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

from foliot.egress.client import Unresolved

A, AAAA = 1, 28
Answers = Mapping[
    str, Sequence[Sequence[str]]
]  # by name: what it answers the first time, the second, and so on


class NameServer(asyncio.DatagramProtocol):
    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.asked: Counter[str] = Counter()  # by name, questions for A
        self.address: tuple[str, int] = ("", 0)
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.address = transport.get_extra_info("sockname")

    def datagram_received(self, data: bytes, addr: Any) -> None:
        name, kind, question = _question(data)
        if kind == A:
            self.asked[name] += 1
        turns = self.answers.get(name, [[]])
        found = turns[min(self.asked[name], len(turns)) - 1]
        packed = [ip_address(each).packed for each in found]
        records = [each for each in packed if len(each) == (4 if kind == A else 16)]
        code = 0 if name in self.answers else 3  # no such name
        head = data[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(records), 0, 0)
        body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(each)) + each for each in records)
        self._transport.sendto(head + question + body, addr)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """A and AAAA, as the system's resolver asks."""
        found = [str(each) for kind in (A, AAAA) for each in await _ask(self.address, host, kind)]
        if not found:
            raise Unresolved("Name or service not known")
        return found


@asynccontextmanager
async def name_server(answers: Answers) -> AsyncIterator[NameServer]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(
        lambda: NameServer(answers), local_addr=("127.0.0.1", 0)
    )
    try:
        yield server
    finally:
        transport.close()


async def _ask(server: tuple[str, int], name: str, kind: int) -> list[Any]:
    loop = asyncio.get_running_loop()
    came: asyncio.Future[bytes] = loop.create_future()

    class Asking(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            if not came.done():
                came.set_result(data)

    transport, _ = await loop.create_datagram_endpoint(Asking, remote_addr=server)
    labels = b"".join(bytes([len(each)]) + each.encode() for each in name.rstrip(".").split("."))
    transport.sendto(
        struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)
    )
    try:
        data = await asyncio.wait_for(came, 20)
    finally:
        transport.close()
    (count,) = struct.unpack("!H", data[6:8])
    size = 4 if kind == A else 16
    place, found = 12 + len(labels) + 1 + 4, []
    for _ in range(count):
        found.append(ip_address(data[place + 12 : place + 12 + size]))
        place += 12 + size
    return found


def _question(data: bytes) -> tuple[str, int, bytes]:
    place, labels = 12, []
    while data[place]:
        labels.append(data[place + 1 : place + 1 + data[place]].decode())
        place += 1 + data[place]
    (kind,) = struct.unpack("!H", data[place + 1 : place + 3])
    return ".".join(labels).lower(), kind, data[12 : place + 5]
