"""`client.limits`: how many runs are under way at once."""

from __future__ import annotations

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.request import Ask, given
from foliot.wire.limits import LimitOut, LimitsOut


class AsyncLimits:
    """`key` is a concurrency key of jobs; without it the limit is of the whole workspace, which administrators set."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def list(self) -> LimitsOut:
        return await self._http.ask(LimitsOut, Ask("GET", "/limits"))

    async def set(self, cap: int, *, key: str | None = None, dry_run: bool = False) -> LimitOut:
        """At most `cap` at once. What runs now runs on."""
        ask = Ask("PUT", "/limits", query={"dry_run": dry_run}, body=given(key=key, cap=cap))
        return await self._http.ask(LimitOut, ask)

    async def remove(self, *, key: str | None = None) -> None:
        """What waited for it goes on."""
        await self._http.tell(Ask("DELETE", "/limits", query={"key": key}))

    async def would_remove(self, *, key: str | None = None) -> LimitOut:
        """The limit that `remove` would take away."""
        query = {"key": key, "dry_run": True}
        return await self._http.ask(LimitOut, Ask("DELETE", "/limits", query=query))
