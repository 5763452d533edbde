"""`client.freezes`: hold many jobs for a while without touching any of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.paging import each_of
from foliot.sdk.asynchronous.writes import AsyncWrites, Changed, Gone
from foliot.sdk.request import Ask, Ref, post
from foliot.sdk.response import check, reader
from foliot.wire.dry_run import FreezeLiftOut
from foliot.wire.freezes import FreezeIn, FreezeOut, FreezePreviewOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class AsyncFreezeWrites(AsyncWrites[Changed, Gone]):
    async def turn_on(self, freeze: FreezeIn | Mapping[str, Any]) -> Changed:
        """Hold everything, or what its scope names. No job is edited by it."""
        return await self._write(self._changed, post("/freezes", body=freeze))

    async def lift(self, freeze_id: Ref) -> Gone:
        """It ends now, and what it held goes on as its `after` says."""
        return await self._write(self._gone, post("/freezes/{freeze_id}/lift", {"freeze_id": freeze_id}))

    async def delete(self, freeze_id: Ref) -> Gone:
        """The same as lifting it."""
        return await self._write(self._gone, Ask("DELETE", "/freezes/{freeze_id}", {"freeze_id": freeze_id}))


class AsyncFreezes(AsyncFreezeWrites[FreezeOut, None]):
    def __init__(self, http: AsyncHttp) -> None:
        super().__init__(http, reader(FreezeOut), check)
        self.dry_run = AsyncFreezeWrites(http, reader(FreezePreviewOut), reader(FreezeLiftOut), dry_run=True)

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

    async def preview(self, freeze: FreezeIn | Mapping[str, Any]) -> FreezePreviewOut:
        """What such a freeze would hold. Nothing is kept."""
        return await self._http.ask(FreezePreviewOut, post("/freezes/preview", body=freeze))
