"""`client.freezes`: hold many jobs for a while without touching any of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.paging import each_of
from foliot.sdk.asynchronous.shared_dry_runs import AsyncFreezeDryRuns
from foliot.sdk.request import Ask, Ref, post
from foliot.wire.freezes import FreezeIn, FreezeOut, FreezePreviewOut
from foliot.wire.pages import LONGEST_PAGE, PAGE, Page


class AsyncFreezes:
    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self.dry_run = AsyncFreezeDryRuns(http)

    async def list(
        self, *, ended: bool = False, limit: int = PAGE, cursor: str | None = None
    ) -> Page[FreezeOut]:
        """Those in force and those to come, newest first; with `ended` also those that are over."""
        query = {"ended": ended, "limit": limit, "cursor": cursor}
        return await self._http.ask(Page[FreezeOut], Ask("GET", "/freezes", query=query))

    def each(self, *, ended: bool = False) -> AsyncIterator[FreezeOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(ended=ended, limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, freeze_id: Ref) -> FreezeOut:
        return await self._http.ask(FreezeOut, Ask("GET", "/freezes/{freeze_id}", {"freeze_id": freeze_id}))

    async def turn_on(self, freeze: FreezeIn | Mapping[str, Any]) -> FreezeOut:
        """Hold everything, or what its scope names. No job is edited by it."""
        return await self._http.ask(FreezeOut, post("/freezes", body=freeze))

    async def preview(self, freeze: FreezeIn | Mapping[str, Any]) -> FreezePreviewOut:
        """What such a freeze would hold. Nothing is kept."""
        return await self._http.ask(FreezePreviewOut, post("/freezes/preview", body=freeze))

    async def lift(self, freeze_id: Ref) -> None:
        """It ends now, and what it held goes on as its `after` says."""
        await self._http.tell(post("/freezes/{freeze_id}/lift", {"freeze_id": freeze_id}))

    async def delete(self, freeze_id: Ref) -> None:
        """The same as lifting it."""
        await self._http.tell(Ask("DELETE", "/freezes/{freeze_id}", {"freeze_id": freeze_id}))
