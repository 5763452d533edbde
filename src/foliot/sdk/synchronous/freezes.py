# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.freezes`: hold many jobs for a while without changing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from foliot.sdk.request import ApiRequest, Ref, post
from foliot.sdk.response import raise_for_error, reader
from foliot.sdk.synchronous.http import Changed, Gone, Transport, Writes, each_of
from foliot.wire.freezes import FreezeIn, FreezeOut, FreezePreviewOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page

if TYPE_CHECKING:
    from foliot.wire.dry_run import FreezeLiftOut


class FreezeWrites(Writes[Changed, Gone]):
    def turn_on(self, freeze: FreezeIn | Mapping[str, Any]) -> Changed:
        """Hold all jobs, or those in its scope. No job is changed."""
        return self._change(post("/freezes", body=freeze))

    def lift(self, freeze_id: Ref) -> Gone:
        """End a freeze now. Its `after` decides about the planned times it held."""
        return self._remove(post("/freezes/{freeze_id}/lift", {"freeze_id": freeze_id}))

    def delete(self, freeze_id: Ref) -> Gone:
        """Do the same as `lift`."""
        return self._remove(ApiRequest("DELETE", "/freezes/{freeze_id}", {"freeze_id": freeze_id}))


class FreezesApi(FreezeWrites[FreezeOut, None]):
    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(FreezeOut), raise_for_error)

    @cached_property
    def dry_run(self) -> FreezeWrites[FreezePreviewOut, FreezeLiftOut]:
        from foliot.wire.dry_run import FreezeLiftOut  # noqa: PLC0415

        return FreezeWrites(self._http, reader(FreezePreviewOut), reader(FreezeLiftOut), dry_run=True)

    def list(self, *, ended: bool = False, limit: int = PAGE, cursor: str | None = None) -> Page[FreezeOut]:
        """Return one page of current and future freezes, newest first; with `ended` also past ones."""
        query = {"ended": ended, "limit": limit, "cursor": cursor}
        return self._http.get(Page[FreezeOut], "/freezes", query=query)

    def each(self, *, ended: bool = False) -> Iterator[FreezeOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(ended=ended, limit=LONGEST_PAGE, cursor=cursor))

    def get(self, freeze_id: Ref) -> FreezeOut:
        return self._http.get(FreezeOut, "/freezes/{freeze_id}", {"freeze_id": freeze_id})

    def preview(self, freeze: FreezeIn | Mapping[str, Any]) -> FreezePreviewOut:
        """Return what such a freeze would hold. Nothing is stored."""
        return self._http.read(FreezePreviewOut, post("/freezes/preview", body=freeze))
