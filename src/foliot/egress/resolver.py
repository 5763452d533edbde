"""Names to addresses, by the system's own resolver, in threads of its own: slow names hold up nobody's files and functions."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
# A name whose servers never answer keeps a thread for longer than anybody waits for it: there are more than a courier or a worker can
# ask for in that time, or one tenant's names would hold up those of all others.
MOST_AT_ONCE = 256


class Unresolved(Exception):
    """Nobody knows this name, or nobody who does could be asked."""


class SystemResolver:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="resolve")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._threads, _look_up, host, port)
        except OSError as error:
            raise Unresolved(error.strerror or str(error)) from error
        return list(dict.fromkeys(found))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[str]:
    # As bytes, or Python would read the name once more by rules of its own.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]
