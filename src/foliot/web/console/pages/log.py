"""The log of a run: a window of lines, the lines as they come, and the whole as a file. Nothing here holds a whole log."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from foliot.web.console.api import Api
from foliot.web.console.session import api_of
from foliot.web.console.site import SECURITY_HEADERS, environment

LOG_LINES = 100  # of the tail, and of each earlier page
FILE_PAGE = 1_000


async def earlier(request: Request) -> Response:
    """The lines before a line, as rows to put above those that are there."""
    run_id, before = request.path_params["run_id"], request.query_params.get("before", "")
    last = int(before) - 1 if re.fullmatch(r"[0-9]{1,9}", before) else 0
    first = max(last - LOG_LINES, 0)
    # Also asked where nothing comes before: a session that has ended must not look like an empty log.
    found = await api_of(request).get(f"/runs/{run_id}/logs", cursor=str(first), limit=max(last - first, 1))
    lines: list[dict[str, Any]] = found["items"] if last > 0 else []
    html = environment().get_template("log_lines.html").render(lines=lines)
    return HTMLResponse(html, headers=SECURITY_HEADERS)


async def as_file(request: Request) -> Response:
    """The whole log as text, page by page."""
    run_id, api = request.path_params["run_id"], api_of(request)
    first = await api.get(f"/runs/{run_id}/logs", limit=FILE_PAGE)
    headers = {**SECURITY_HEADERS, "Content-Disposition": f'attachment; filename="run-{run_id[:36]}.log"'}
    return StreamingResponse(
        _pages(api, run_id, first), media_type="text/plain; charset=utf-8", headers=headers
    )


async def _pages(api: Api, run_id: str, page: dict[str, Any]) -> AsyncIterator[str]:
    while True:
        yield "".join(f"{line['at']} {line['stream']} {line['text']}\n" for line in page["items"])
        if page["next_cursor"] is None:
            return
        page = await api.get(f"/runs/{run_id}/logs", cursor=page["next_cursor"], limit=FILE_PAGE)


class Follow:
    """Lines as they come, as events. The position is the line that the page has already."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        headers = {"accept": "text/event-stream"}
        if last := request.headers.get("last-event-id"):
            headers["last-event-id"] = last
        params = {"follow": "true", "cursor": request.query_params.get("cursor", "")}
        await api_of(request).forward(
            f"/runs/{request.path_params['run_id']}/logs", params, receive, send, headers
        )


ROUTES = [
    Route("/runs/{run_id}/log", earlier),
    Route("/runs/{run_id}/log.txt", as_file),
    Route("/runs/{run_id}/log/stream", Follow()),
]
