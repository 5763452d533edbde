"""`client.limits`: how many runs may execute at a time."""

from __future__ import annotations

from foliot.sdk.asynchronous.http import AsyncTransport, AsyncWrites, Changed, Gone
from foliot.sdk.request import ApiRequest, without_none
from foliot.sdk.response import raise_for_error, reader
from foliot.wire.fleet import LimitOut, LimitsOut


class AsyncLimitWrites(AsyncWrites[Changed, Gone]):
    """`key` is a concurrency key of jobs. Without it the limit is for the whole workspace, and an administrator sets it."""

    async def set(self, cap: int, *, key: str | None = None) -> Changed:
        """Allow at most `cap` runs at a time. Runs under way continue."""
        return await self._write(
            self._changed, ApiRequest("PUT", "/limits", body=without_none(key=key, cap=cap))
        )

    async def remove(self, *, key: str | None = None) -> Gone:
        """Remove a limit. Runs that waited for it start."""
        return await self._write(self._gone, ApiRequest("DELETE", "/limits", query={"key": key}))


class AsyncLimitsApi(AsyncLimitWrites[LimitOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(LimitOut), raise_for_error)
        self.dry_run = AsyncLimitWrites(http, reader(LimitOut), reader(LimitOut), dry_run=True)

    async def list(self) -> LimitsOut:
        return await self._http.read(LimitsOut, ApiRequest("GET", "/limits"))
