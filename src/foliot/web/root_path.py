"""A path prefix before all addresses, as a reverse proxy adds it: https://ops.example.com/foliot/console/.

Routes and pages know nothing of it. Requests may come with the prefix or, where the proxy removes it, without; Location, the
paths of cookies and the links of the console go out with it.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONSOLE = "/console"
_LINK = rb"/(?=(?:console|docs)[/\"'`?#])"
# In pages an address of ours is a whole attribute: text of users cannot hold a quote there.
_REWRITTEN = {
    b"text/html": re.compile(rb"(?<==\")" + _LINK),
    b"text/javascript": re.compile(rb"(?<=[\"'`])" + _LINK),
    b"application/json": re.compile(rb"(?<=\")" + _LINK),
}


class RootPathMiddleware:
    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app = app
        self._root = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope.get("foliot.internal"):
            await self._app(scope, receive, send)
            return
        path, raw = scope["path"], scope.get("raw_path") or b""
        if path == self._root or path.startswith(f"{self._root}/"):
            inner = raw.removeprefix(self._root.encode()) or b"/"
            scope = {**scope, "path": path.removeprefix(self._root) or "/", "raw_path": inner}
        await self._app(scope, receive, _PrefixedAnswer(self._root, scope["path"], send))


class _PrefixedAnswer:
    """Sends an answer on, with the prefix in its headers and in pages of the console."""

    def __init__(self, root: str, path: str, send: Send) -> None:
        self._root = root.encode()
        self._is_console = path.startswith(CONSOLE)
        self._send = send
        self._start: Message | None = None  # of an answer whose body is rewritten
        self._pattern: re.Pattern[bytes] | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [(name, self._header(name, value)) for name, value in message["headers"]]
            kind = dict(message["headers"]).get(b"content-type", b"").partition(b";")[0]
            self._pattern = _REWRITTEN.get(kind) if self._is_console else None
            if self._pattern is not None:
                self._start = message
                return
        elif self._start is not None and self._pattern is not None:
            self._body += message.get("body", b"")
            if message.get("more_body"):
                return
            body = self._pattern.sub(self._root + b"/", self._body)
            sized = [(name, value) for name, value in self._start["headers"] if name != b"content-length"]
            await self._send(
                {**self._start, "headers": [*sized, (b"content-length", str(len(body)).encode())]}
            )
            message = {"type": "http.response.body", "body": body}
        await self._send(message)

    def _header(self, name: bytes, value: bytes) -> bytes:
        if name == b"location" and value.startswith(b"/") and not value.startswith(b"//"):
            return self._root + value
        if name == b"set-cookie":
            return re.sub(rb"(?i)(; *path=)/", rb"\1" + self._root + b"/", value, count=1)
        return value
