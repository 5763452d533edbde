"""Send requests, repeat them if that is safe, and raise errors; write verbs, pages and event streams on top."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from foliot import __version__
from foliot.sdk.connection import Connection
from foliot.sdk.errors import unreachable_error, unreadable_error
from foliot.sdk.http_clients import is_transport_error, open_async_client, stream_timeout
from foliot.sdk.request import (
    ApiRequest,
    Ref,
    async_sleep,
    build_request,
    wait_before_resume,
    wait_before_retry,
)
from foliot.sdk.response import Answered, AsyncPageFetcher, Reader, raise_for_error, read_response

if TYPE_CHECKING:
    import httpx2


class AsyncTransport:
    def __init__(
        self, connection: Connection, *, workspace: str | None, timeout: float, retries: int
    ) -> None:
        self.url = connection.url
        self._retries = retries
        headers = {"Authorization": f"Bearer {connection.key}", "User-Agent": f"foliot-python/{__version__}"}
        if workspace is not None:
            headers["Foliot-Workspace"] = workspace
        self._timeout = timeout
        self._client = open_async_client(connection, headers, timeout)

    async def read(self, shape: type[Answered], request: ApiRequest) -> Answered:
        return read_response(shape, await self.send(request))

    async def get(
        self,
        shape: type[Answered],
        path: str,
        ids: Mapping[str, Ref] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Answered:
        return await self.read(shape, ApiRequest("GET", path, ids or {}, query or {}))

    async def call(self, request: ApiRequest) -> None:
        """Send a request whose response has no body."""
        raise_for_error(await self.send(request))

    async def download(self, request: ApiRequest) -> bytes:
        """Send a request whose response is a file."""
        outcome = await self.send(request)
        raise_for_error(outcome)
        return outcome.content

    async def send(self, request: ApiRequest) -> httpx2.Response:
        attempt = 0
        while True:
            attempt += 1
            outcome: httpx2.Response | Exception
            try:
                outcome = await self._client.send(build_request(request, self._client.build_request))
            except Exception as error:
                if not is_transport_error(error):
                    raise
                outcome = error
            wait = wait_before_retry(request, attempt, outcome) if attempt <= self._retries else None
            if wait is None:
                return self._response(outcome)
            await async_sleep(wait)

    async def open_stream(self, request: ApiRequest) -> httpx2.Response:
        """Send a request and return the response before its body. The caller closes it."""
        build = partial(self._client.build_request, timeout=stream_timeout(self._timeout))
        return await self._client.send(build_request(request, build), stream=True)

    async def close(self) -> None:
        await self._client.aclose()

    def _response(self, outcome: httpx2.Response | Exception) -> httpx2.Response:
        if isinstance(outcome, Exception):
            raise unreachable_error(self.url, outcome) from outcome
        return outcome


Changed = TypeVar("Changed")
Gone = TypeVar("Gone")
Result = TypeVar("Result")


class AsyncWrites(Generic[Changed, Gone]):
    """The write verbs of a group. A verb returns `Changed`, or `Gone` if it removes something.

    With `dry_run` the server applies each verb, returns what would change, and rolls it back.
    """

    def __init__(
        self, http: AsyncTransport, changed: Reader[Changed], gone: Reader[Gone], *, dry_run: bool = False
    ) -> None:
        self._http, self._changed, self._gone, self._dry_run = http, changed, gone, dry_run

    async def _change(self, request: ApiRequest) -> Changed:
        return await self._write(self._changed, request)

    async def _remove(self, request: ApiRequest) -> Gone:
        return await self._write(self._gone, request)

    async def _write(self, read: Reader[Result], request: ApiRequest) -> Result:
        if self._dry_run:
            request = replace(request, query={**request.query, "dry_run": True})
        return read(await self._http.send(request))


async def each_of(page_at: AsyncPageFetcher[Answered]) -> AsyncIterator[Answered]:
    """Yield the items of all pages. `page_at` returns the page at a cursor; None is the first."""
    cursor: str | None = None
    while True:
        page = await page_at(cursor)
        for item in page.items:
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return


async def events_of(
    http: AsyncTransport, request: ApiRequest, last_event_id: str | None = None
) -> AsyncIterator[httpx2.ServerSentEvent]:
    """Yield server-sent events without end. After a broken connection, resume after the last event.

    Raise errors of the server, and Unreachable after about a minute without a response.
    """
    import httpx2  # noqa: PLC0415  # most commands have no stream

    tries = 0
    while True:
        outcome: httpx2.Response | httpx2.TransportError | None = None
        try:
            response = await http.open_stream(_with_last_event_id(request, last_event_id))
            try:
                if response.is_success:
                    async for event in httpx2.EventSource(response):
                        tries = 0
                        last_event_id = event.id or last_event_id
                        if event.data:
                            yield event
                else:
                    await response.aread()
                    outcome = response
            finally:
                await response.aclose()
        except httpx2.SSEError as error:
            raise unreadable_error(http.url, str(error)) from None
        except httpx2.TransportError as error:
            outcome = error
        tries += 1
        wait = wait_before_resume(tries, outcome)
        if wait is None:
            if isinstance(outcome, httpx2.Response):
                raise_for_error(outcome)
            broken = (
                outcome
                if isinstance(outcome, httpx2.TransportError)
                else httpx2.ReadError("the stream ended")
            )
            raise unreachable_error(http.url, broken) from broken
        await async_sleep(wait)


def _with_last_event_id(request: ApiRequest, last_event_id: str | None) -> ApiRequest:
    headers = {**request.headers, "Accept": "text/event-stream"}
    if last_event_id is not None:
        headers["Last-Event-ID"] = last_event_id
    return replace(request, headers=headers)
