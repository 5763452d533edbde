"""Which methods an address takes. Starlette asks one route after the other and stops at the first whose path fits, so that a 405 names
that route's methods alone, and `PUT /jobs/bulk` would look for a job with the id "bulk".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from foliot.web.errors import refused

OPTIONS = "OPTIONS"


class Addresses:
    """The paths of the app, each with all its methods."""

    def __init__(self, routes: Iterable[Any]) -> None:
        found: dict[str, set[str]] = {}
        for route in iter_route_contexts(list(routes)):
            found.setdefault(str(route.path), set()).update(route.methods or ())
        self._plain = {path: frozenset(methods) for path, methods in found.items() if "{" not in path}
        self._patterns: list[tuple[re.Pattern[str], frozenset[str]]] = [
            (compile_path(path)[0], frozenset(methods)) for path, methods in found.items() if "{" in path
        ]

    def refuses(self, method: str, path: str) -> bool:
        """Whether this very path is known, and does not take the method. It then is no id of another path's."""
        known = self._plain.get(path)
        return known is not None and method not in known

    def allowed(self, path: str) -> str | None:
        """As the header Allow has it; None where there is no such address."""
        methods = self._plain.get(path) or next(
            (methods for pattern, methods in self._patterns if pattern.match(path)), None
        )
        return None if methods is None else ", ".join(sorted(methods | {OPTIONS}))


class Methods:
    """Answers OPTIONS, and refuses what a path does not take."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            addresses: Addresses = scope["app"].state.addresses
            method, path = scope["method"], scope["path"]
            if method == OPTIONS and (allow := addresses.allowed(path)) is not None:
                await Response(status_code=204, headers={"Allow": allow})(scope, receive, send)
                return
            if addresses.refuses(method, path):
                answer = await refused(Request(scope), HTTPException(405))
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)
