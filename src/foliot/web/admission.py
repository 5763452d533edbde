"""Admission of requests: how many are served at once, who is next, and who is refused before any work is done for it.

Each process serves a bounded number of requests. The others wait in one line per workspace, and the lines take turns, so that a
flood of one workspace or key delays itself. Who has waited too long, or finds the lines full, gets 503 with Retry-After. Waiting is
cheap; answering is not: a refusal at once would only make an impatient client send the next request sooner.

Why: docs/decisions/703-request-admission.md
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from foliot.domain.access import Permission
from foliot.services.identity.authentication import Authenticator
from foliot.web.errors import Refused, refused
from foliot.web.health import PROBES

UNLIMITED = 1_000_000  # places
MOST_WAITING = 1_000
LONGEST_WAIT = 1.0  # seconds
TICKET = "foliot.ticket"  # in the scope
_IDENTIFYING = frozenset({b"authorization", b"foliot-workspace", b"cookie"})
_SESSION = re.compile(rb"(?:^|;\s*)foliot_session=([^;\s]+)")


@dataclass(frozen=True, slots=True)
class Share:
    """Whose limits a request counts against: a workspace and a key, or an address whose key is not known yet."""

    workspace: Hashable
    key: Hashable


@dataclass(slots=True, eq=False)
class _Waiter:
    share: Share
    turn: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


Lines = OrderedDict[Hashable, OrderedDict[Hashable, deque[_Waiter]]]  # by workspace, by key


class Overloaded(Exception):
    """There is no place for the request, and there was none while it waited."""


class RequestGate:
    """Places for requests. A workspace has at most three quarters of them and a key half, however few others ask."""

    def __init__(self, places: int, *, waiting: int = MOST_WAITING, wait: float = LONGEST_WAIT) -> None:
        self._free = places
        self._of_workspace = max(1, places * 3 // 4)
        self._of_key = max(1, places // 2)
        self._most_waiting = waiting
        self._wait = wait
        self._serving: Counter[Hashable] = Counter()  # by workspace and by key
        self._lines: Lines = OrderedDict()
        self._waiting: Counter[Hashable] = Counter()  # by workspace

    async def enter(self, share: Share) -> None:
        """Take a place, or wait for one in the share's line. Raise Overloaded where none comes."""
        if self._may_enter(share):
            self._take(share)
            return
        if self._waiting.total() >= self._most_waiting:
            self._make_room(share)
        waiter = _Waiter(share)
        self._lines.setdefault(share.workspace, OrderedDict()).setdefault(share.key, deque()).append(waiter)
        self._waiting[share.workspace] += 1
        try:
            async with asyncio.timeout(self._wait):
                await waiter.turn
        except BaseException as error:
            turn = waiter.turn
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave(share)  # its turn came in the same moment
            else:
                self._forget(waiter)
            if isinstance(error, TimeoutError):
                raise Overloaded from None
            raise

    def leave(self, share: Share) -> None:
        """Give the place back, and let the next in turn enter."""
        self._free += 1
        for each in {("workspace", share.workspace), ("key", share.key)}:
            self._serving[each] -= 1
            if not self._serving[each]:
                del self._serving[each]
        while self._free and (waiter := self._next()) is not None:
            if not waiter.turn.done():  # else its time is up, and it is about to go
                self._take(waiter.share)
                waiter.turn.set_result(None)

    def _may_enter(self, share: Share) -> bool:
        return (
            self._free > 0
            and self._serving["workspace", share.workspace] < self._of_workspace
            and self._serving["key", share.key] < self._of_key
        )

    def _take(self, share: Share) -> None:
        self._free -= 1
        for each in {("workspace", share.workspace), ("key", share.key)}:
            self._serving[each] += 1

    def _next(self) -> _Waiter | None:
        """Return the first waiter of the next workspace and the next key that may enter, and put both last in turn."""
        for workspace, lines in self._lines.items():
            for key, line in lines.items():
                if line and self._may_enter(Share(workspace, key)):
                    waiter = line.popleft()
                    self._lines.move_to_end(workspace)
                    lines.move_to_end(key)
                    self._count_out(waiter.share, line)
                    return waiter
        return None

    def _make_room(self, share: Share) -> None:
        """Refuse the last one in the longest line for a share with a shorter line; else refuse the newcomer."""
        longest, count = self._waiting.most_common(1)[0]
        if self._waiting[share.workspace] + 1 >= count:
            raise Overloaded
        line = max(self._lines[longest].values(), key=len)
        waiter = line.pop()
        self._count_out(waiter.share, line)
        waiter.turn.set_exception(Overloaded())

    def _forget(self, waiter: _Waiter) -> None:
        line = self._lines.get(waiter.share.workspace, OrderedDict()).get(waiter.share.key, deque())
        if waiter in line:
            line.remove(waiter)
            self._count_out(waiter.share, line)

    def _count_out(self, share: Share, line: deque[_Waiter]) -> None:
        if not line:
            lines = self._lines[share.workspace]
            del lines[share.key]
            if not lines:
                del self._lines[share.workspace]
        self._waiting[share.workspace] -= 1
        if not self._waiting[share.workspace]:
            del self._waiting[share.workspace]


class Ticket:
    """The place of one request. Streams and long polls give it back early: they wait, and work only now and then."""

    def __init__(self, gate: RequestGate, share: Share) -> None:
        self._gate: RequestGate | None = gate
        self._share = share

    def release(self) -> None:
        if self._gate is not None:
            gate, self._gate = self._gate, None
            gate.leave(self._share)


def release_place(request: Request) -> None:
    """Give the request's place back before it waits for something that may take long."""
    ticket: Ticket | None = request.scope.get(TICKET)
    if ticket is not None:
        ticket.release()


class AdmissionMiddleware:
    """Admits requests through the gate. Calls of the console inside the process belong to the page's own place."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES or scope.get("foliot.internal", False):
            await self._app(scope, receive, send)
            return
        gate: RequestGate = scope["app"].state.gate
        share = _share_of(scope)
        try:
            await gate.enter(share)
        except Overloaded:
            answer = await refused(Request(scope), _overloaded())
            await answer(scope, receive, send)
            return
        ticket = scope[TICKET] = Ticket(gate, share)
        try:
            await self._app(scope, receive, send)
        finally:
            ticket.release()


def _share_of(scope: Scope) -> Share:
    """Return the share of the key if it was valid a moment ago; else that of the address."""
    found = {name: value for name, value in scope["headers"] if name in _IDENTIFYING}
    presented, slug = found.get(b"authorization", b"").partition(b" ")[2], found.get(b"foliot-workspace")
    if not presented and (session := _SESSION.search(found.get(b"cookie", b""))):
        presented = session[1]
    authenticator: Authenticator = scope["app"].state.authenticator
    caller = authenticator.recognize(
        presented.strip().decode("latin-1"), None if slug is None else slug.decode("latin-1")
    )
    if caller is None:
        client = scope.get("client")
        address = ("address", client[0] if client else None)
        return Share(address, address)
    holder = caller.holder
    if holder.principal.is_system:  # an operator must reach a workspace that floods
        return Share(("system", holder.key_id), holder.key_id)
    if holder.may(
        Permission.WORKER
    ):  # heartbeats and reports do not stand behind the requests of their workspace
        return Share(("workers", caller.workspace_id), holder.key_id)
    return Share(caller.workspace_id, holder.key_id)


def _overloaded() -> Refused:
    return Refused(
        503,
        "The server has more requests than it can answer now.",
        hint="Wait as Retry-After says, then send it again, with fewer requests at once.",
        headers={"Retry-After": "1"},
    )
