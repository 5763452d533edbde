"""Call the REST API inside the process, with the key of the signed-in person."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from foliot.web.admission import TICKET
from foliot.web.internal_calls import ApiAnswer, InternalCall

PREFIX = "/api/v1"
MOST_DIGITS = 9
LABELS = {
    "url": "URL",
    "argv": "Command",
    "cwd": "Folder",
    "env": "Environment variables",
    "stdin": "Standard input",
}  # of names that do not say it themselves
Params = Mapping[str, str | int | list[str] | None]


class ApiRefusal(Exception):
    """The API refused the call; `problem` is its problem+json."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail", ""))
        self.status = status
        self.problem = problem

    @property
    def sentences(self) -> list[str]:
        """What to tell the person: each field error, or the problem as a whole."""
        errors = [f"{label_at(pointer)}: {said}" if pointer else said for pointer, said in self.field_errors]
        return errors or [str(self.problem.get("detail") or "The request was refused.")]

    @property
    def field_errors(self) -> list[tuple[str, str]]:
        """The field of each error as the API names it, such as config/url, and the message with its hint."""
        return [
            (each["pointer"].strip("/"), f"{each['message']} {each.get('hint') or ''}".strip())
            for each in self.problem.get("errors", [])
        ]


def field_refusal(name: str, message: str) -> ApiRefusal:
    """A refusal of the console's own, for a form field that cannot be sent to the API."""
    return ApiRefusal(422, {"errors": [{"pointer": f"/{name}", "message": message, "hint": None}]})


def read_json(name: str, raw: str) -> Any:
    """The JSON value of a form field; raises ApiRefusal where it is none."""
    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        where = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise field_refusal(name, f"This is not JSON: {where}.") from None
    except (ValueError, RecursionError):
        raise field_refusal(name, "This JSON is nested too deeply or holds too long a number.") from None


def read_number(name: str, raw: str) -> int:
    """The whole number of a form field; raises ApiRefusal where it is none."""
    if not (raw.isascii() and raw.isdecimal() and len(raw) <= MOST_DIGITS):
        raise field_refusal(name, "This must be a whole number.")
    return int(raw)


class Api:
    """The API as one person sees it. Every call passes the same checks as a call from outside."""

    def __init__(self, app: ASGIApp, request: Request, key: str, workspace: str | None) -> None:
        self._app = app
        self._request = request
        self._key = key
        self._workspace = workspace
        self._read: dict[str, asyncio.Task[ApiAnswer]] = {}  # a page and the shell around it ask for the same

    async def get(self, path: str, **params: str | int | list[str] | None) -> Any:
        return await self.call("GET", path, params=params)

    async def me(self) -> Any:
        """The signed-in person. Without the number of jobs, which costs more than the rest of a page."""
        return await self.get("/me", count="false")

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the parsed answer; raise ApiRefusal for a 4xx or 5xx."""
        answer = await self.answer(method, path, body, params=params, headers=headers)
        if not answer.is_success:
            raise ApiRefusal(answer.status, answer.data if isinstance(answer.data, dict) else {})
        return answer.data

    async def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiAnswer:
        """Call the API. What was read before is read again only after a write."""
        if method != "GET" or headers:
            self._read.clear()
            return await self._answer(method, path, body, params or {}, headers or {})
        asked = f"{path}?{json.dumps(params or {}, sort_keys=True)}"
        if asked not in self._read:
            self._read[asked] = asyncio.create_task(self._answer("GET", path, None, params or {}, {}))
        return await self._read[asked]

    async def _answer(
        self, method: str, path: str, body: Any, params: Params, headers: Mapping[str, str]
    ) -> ApiAnswer:
        raw = b"" if body is None else json.dumps(body).encode()
        sent = {"accept": "application/json", **headers}
        if body is not None:
            sent |= {"content-type": "application/json", "content-length": str(len(raw))}
        scope = self._scope(method, PREFIX + path, params, sent)
        collected = InternalCall(raw)
        await self._app(scope, collected.receive, collected.send)
        return collected.answer()

    async def forward(
        self, path: str, params: Params, receive: Receive, send: Send, headers: Mapping[str, str]
    ) -> None:
        """Hand a whole answer on as it comes: event streams and downloads."""
        await self._app(self._scope("GET", PREFIX + path, params, headers), receive, send)

    def _scope(self, method: str, path: str, params: Params, headers: Mapping[str, str]) -> Scope:
        given = {name: value for name, value in params.items() if value not in (None, "", [])}
        sent = {**headers, "authorization": f"Bearer {self._key}"}
        if host := self._request.headers.get("host"):  # addresses in answers are those that the browser uses
            sent["host"] = host
        if self._workspace:
            sent["foliot-workspace"] = self._workspace
        outer = self._request.scope
        return {
            "type": "http",
            "asgi": outer["asgi"],
            "http_version": "1.1",
            "method": method,
            "scheme": outer["scheme"],
            "path": path,
            "raw_path": quote(path, safe="/:").encode(),
            "query_string": urlencode(given, doseq=True).encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1", "replace")) for name, value in sent.items()],
            "client": outer["client"],
            "server": outer["server"],
            "extensions": {},
            "foliot.internal": True,  # the page that asks has its own line in the log
            TICKET: outer.get(TICKET),
        }


def label_of(name: str) -> str:
    """A name of the API as the label of a field."""
    return LABELS.get(name, name.replace("_", " ").capitalize())


def label_at(pointer: str) -> str:
    """The label of the field that a pointer of the API means: the last name in it, and the place in a list."""
    names = [part for part in pointer.split("/") if not part.isdecimal()]
    label, place = label_of(names[-1] if names else pointer), pointer.rpartition("/")[2]
    return f"{label} {int(place) + 1}" if names and place.isdecimal() else label
