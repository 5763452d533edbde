"""Send one request to an approved address and read its answer: for http jobs, webhooks and channels.

Every address that a name has must be allowed, and the connection goes to one of those: a resolver that answers differently a moment later
changes nothing. Redirects are answers like any other, proxies of the environment are ignored, and two workspaces share nothing.

Why: docs/decisions/900-guarded-outgoing-requests.md
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address

from foliot.domain.addresses import Address, BlockedAddress, Network, closed
from foliot.egress.connection import (
    KEPT,
    REPEATABLE,
    ClosedUnanswered,
    HttpAnswer,
    NoAnswer,
    OutgoingRequest,
    write_request,
)
from foliot.egress.pool import ConnectionPool, Receiver
from foliot.egress.url import HttpTarget

__all__ = [
    "KEPT",
    "AddressRefused",
    "Egress",
    "HttpAnswer",
    "NoAnswer",
    "OutgoingRequest",
]  # what callers need, in one place
log = logging.getLogger(__name__)
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
# A name whose servers never answer blocks a thread for longer than any request waits. There are more threads than a courier or a worker can
# use in that time, or the names of one tenant would delay those of all others.
MOST_AT_ONCE = 256


class Unresolved(Exception):
    """The name does not exist, or its servers do not answer."""


class SystemResolver:
    """Resolve names with the system's resolver, in threads of its own: slow names delay no other work."""

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
    # As bytes, or Python would encode the name by its own rules.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


CACHE_SECONDS = 5.0  # the system's resolver does not say how long an answer holds; names that move quickly say 30 s or more
MOST_NAMES = 1_000


class CachedResolver:
    """Ask once for requests of the same moment. What it answers is approved again for each of them."""

    def __init__(self, resolve: Resolve, seconds: float = CACHE_SECONDS) -> None:
        self._resolve = resolve
        self._seconds = seconds
        self._asked: OrderedDict[tuple[str, int], tuple[float, asyncio.Task[Sequence[str]]]] = OrderedDict()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        key, now = (host, port), asyncio.get_running_loop().time()
        until, asked = self._asked.get(key, (0.0, None))
        if asked is None or until < now or (asked.done() and (asked.cancelled() or asked.exception())):
            asked = asyncio.ensure_future(self._ask(host, port))
            asked.add_done_callback(_ignore_error)
            self._asked[key] = now + self._seconds, asked
            self._asked.move_to_end(key)
            while len(self._asked) > MOST_NAMES:
                self._asked.popitem(last=False)
        # A request that is cancelled must not cancel the question of the others.
        return asked.result() if asked.done() else await asyncio.shield(asked)

    async def _ask(self, host: str, port: int) -> Sequence[str]:
        return await self._resolve(host, port)


def _ignore_error(asked: asyncio.Task[Sequence[str]]) -> None:
    if not asked.cancelled():
        asked.exception()


ALLOW = "An operator can allow it in FOLIOT_EGRESS_ALLOW, on every node, worker and host."


RESOLVES_INSIDE = (
    "resolves to an address that may not be called from here; the log of the process that calls names it."
)


class AddressRefused(Exception):
    """Nothing was sent: the target is not in a network that may be called. The text is for the operator's log."""

    code = "address_refused"

    def __init__(self, host: str, blocked: BlockedAddress) -> None:
        super().__init__(_refusal(host, blocked))
        # For the job's author, who must not learn the addresses of internal names.
        self.public = str(self) if host == str(blocked.address) else f"{host} {RESOLVES_INSIDE} {ALLOW}"


def refusal(host: str, addresses: Iterable[Address], allowed: Sequence[Network]) -> str | None:
    """Return the message that refuses a target, or None. One address that may not be called refuses the whole name."""
    for address in addresses:
        found = closed(address, allowed)
        if found is not None:
            return _refusal(host, found)
    return None


def _refusal(host: str, blocked: BlockedAddress) -> str:
    return f"{blocked.describe(host)}, which may not be called from here. {ALLOW}"


def _check(text: str, allowed: Sequence[Network]) -> tuple[str, BlockedAddress | None]:
    """Return the address to connect to, and why it is blocked. What the resolver adds about a zone is dropped before both."""
    address = ip_address(text.partition("%")[0])
    return str(address), closed(address, allowed)


class Egress:
    """Create one for a process: its TLS settings are slow to load, and it keeps connections."""

    def __init__(
        self,
        allowed: Sequence[Network] = (),
        *,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._system = SystemResolver() if resolve is None else None
        self._resolve: Resolve = resolve or CachedResolver(self._system)  # type: ignore[arg-type]  # one of the two is there
        self._pool = ConnectionPool(tls or ssl.create_default_context())
        networks = tuple(allowed)
        # By text, whose hash is cheap: the same addresses are approved for every request.
        self._check = lru_cache(4_096)(lambda text: _check(text, networks))

    async def send(self, outgoing: OutgoingRequest, keep: int = KEPT) -> HttpAnswer:
        """Send the request, or raise AddressRefused or NoAnswer. The caller sets a deadline."""
        target, pool, method = outgoing.target, self._pool, outgoing.method
        request = write_request(outgoing)
        addresses = await self.approve(target)
        name = target.host.rstrip(".")
        receivers = [
            Receiver(outgoing.workspace, target.scheme, name, address, target.port) for address in addresses
        ]
        await pool.acquire(receivers[0])
        try:
            kept = pool.take(receivers)
            if kept is not None:
                receiver, connection = kept
                try:
                    answer = await connection.exchange(request, method, keep)
                except ClosedUnanswered:
                    if method not in REPEATABLE:  # the target may have begun
                        raise
                else:
                    pool.keep(receiver, connection)
                    return answer
            receiver, connection = await pool.connect(receivers)
            answer = await connection.exchange(request, method, keep)
            pool.keep(receiver, connection)
            return answer
        finally:
            pool.release(receivers[0])

    async def approve(self, target: HttpTarget) -> tuple[str, ...]:
        """Return the addresses of a target, all of which may be called."""
        if target.address is not None:
            texts: Sequence[str] = (target.host,)
        else:
            try:
                texts = await self._resolve(target.host, target.port)
            except Unresolved as error:
                raise NoAnswer(
                    "name_unknown", f"The name {target.host} cannot be resolved: {error}."
                ) from error
        if not texts:
            raise NoAnswer("name_unknown", f"The name {target.host} has no address.")
        found = []
        for text in texts:
            address, blocked = self._check(text)
            if blocked is not None:
                refused = AddressRefused(target.host, blocked)
                log.warning("egress.refused", extra={"host": target.host, "reason": str(refused)})
                raise refused
            found.append(address)
        return tuple(found)

    def close(self) -> None:
        self._pool.close()
        if self._system is not None:
            self._system.close()


BUSY = frozenset({429, 503})  # codes whose Retry-After is respected


def reason_of(answer: HttpAnswer) -> str:
    """Return the target's reason phrase, as far as it is printable, else that of HTTP."""
    return "".join(filter(str.isprintable, answer.reason))[:100].strip() or _phrase(answer.status)


def retry_after(answer: HttpAnswer, now: datetime) -> timedelta | None:
    return parse_retry_after(answer.headers.get("retry-after", ""), now) if answer.status in BUSY else None


def retry_wait(answer: HttpAnswer, now: datetime) -> timedelta | None:
    """Return the wait that an answer of any code asks for."""
    return parse_retry_after(answer.headers.get("retry-after", ""), now)


def parse_retry_after(text: str, now: datetime) -> timedelta | None:
    """Parse seconds or an HTTP date. Return None for anything else, and for no wait."""
    text = text.strip()
    try:
        if text.isascii() and text.isdecimal():
            wait = timedelta(seconds=int(text[:10]))
        else:
            wait = timedelta(seconds=int((parsedate_to_datetime(text) - now).total_seconds()))
    except (ValueError, TypeError, OverflowError):
        return None
    return wait if wait > timedelta(0) else None


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""
