"""`client.limits`: how many runs may be under way at once."""

from __future__ import annotations

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.writes import AsyncWrites, Changed, Gone
from foliot.sdk.request import Ask, given
from foliot.sdk.response import check, reader
from foliot.wire.fleet import LimitOut, LimitsOut


class AsyncLimitWrites(AsyncWrites[Changed, Gone]):
    """`key` is a concurrency key of jobs. Without it the limit is for the whole workspace, and an administrator sets it."""

    async def set(self, cap: int, *, key: str | None = None) -> Changed:
        """At most `cap` at once. Runs that are under way continue."""
        return await self._write(self._changed, Ask("PUT", "/limits", body=given(key=key, cap=cap)))

    async def remove(self, *, key: str | None = None) -> Gone:
        """Runs that waited for the limit start."""
        return await self._write(self._gone, Ask("DELETE", "/limits", query={"key": key}))


class AsyncLimits(AsyncLimitWrites[LimitOut, None]):
    def __init__(self, http: AsyncHttp) -> None:
        super().__init__(http, reader(LimitOut), check)
        self.dry_run = AsyncLimitWrites(http, reader(LimitOut), reader(LimitOut), dry_run=True)

    async def list(self) -> LimitsOut:
        return await self._http.ask(LimitsOut, Ask("GET", "/limits"))
