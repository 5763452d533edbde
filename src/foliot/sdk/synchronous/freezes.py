# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.freezes`: hold many jobs for a while without touching any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foliot.sdk.request import Ask, Ref, post
from foliot.sdk.response import check, reader
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.paging import each_of
from foliot.sdk.synchronous.writes import Changed, Gone, Writes
from foliot.wire.dry_run import FreezeLiftOut
from foliot.wire.freezes import FreezeIn, FreezeOut, FreezePreviewOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class FreezeWrites(Writes[Changed, Gone]):
    def turn_on(self, freeze: FreezeIn | Mapping[str, Any]) -> Changed:
        """Hold everything, or what its scope names. No job is edited by it."""
        return self._write(self._changed, post("/freezes", body=freeze))

    def lift(self, freeze_id: Ref) -> Gone:
        """It ends now, and what it held goes on as its `after` says."""
        return self._write(self._gone, post("/freezes/{freeze_id}/lift", {"freeze_id": freeze_id}))

    def delete(self, freeze_id: Ref) -> Gone:
        """The same as lifting it."""
        return self._write(self._gone, Ask("DELETE", "/freezes/{freeze_id}", {"freeze_id": freeze_id}))


class Freezes(FreezeWrites[FreezeOut, None]):
    def __init__(self, http: Http) -> None:
        super().__init__(http, reader(FreezeOut), check)
        self.dry_run = FreezeWrites(http, reader(FreezePreviewOut), reader(FreezeLiftOut), dry_run=True)

    def list(self, *, ended: bool = False, limit: int = PAGE, cursor: str | None = None) -> Page[FreezeOut]:
        """Those in force and those to come, newest first; with `ended` also those that are over."""
        query = {"ended": ended, "limit": limit, "cursor": cursor}
        return self._http.ask(Page[FreezeOut], Ask("GET", "/freezes", query=query))

    def each(self, *, ended: bool = False) -> Iterator[FreezeOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(ended=ended, limit=LONGEST_PAGE, cursor=cursor))

    def get(self, freeze_id: Ref) -> FreezeOut:
        return self._http.ask(FreezeOut, Ask("GET", "/freezes/{freeze_id}", {"freeze_id": freeze_id}))

    def preview(self, freeze: FreezeIn | Mapping[str, Any]) -> FreezePreviewOut:
        """What such a freeze would hold. Nothing is kept."""
        return self._http.ask(FreezePreviewOut, post("/freezes/preview", body=freeze))
