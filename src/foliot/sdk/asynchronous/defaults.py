"""`client.defaults`: values that jobs of the workspace get for fields that they leave out."""

from __future__ import annotations

from typing import Unpack

from foliot.sdk.asynchronous.http import AsyncTransport, AsyncWrites, Changed, Gone
from foliot.sdk.keywords import DefaultKeywords
from foliot.sdk.request import ApiRequest
from foliot.sdk.response import raise_for_error, reader
from foliot.wire.defaults import DefaultsOut


class AsyncDefaultWrites(AsyncWrites[Changed, Gone]):
    async def change(self, **fields: Unpack[DefaultKeywords]) -> Changed:
        """Change the given defaults; None gives one back to the installation. Jobs that inherit them follow."""
        return await self._change(ApiRequest("PATCH", "/defaults", body=dict(fields)))


class AsyncDefaultsApi(AsyncDefaultWrites[DefaultsOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(DefaultsOut), raise_for_error)
        self.dry_run = AsyncDefaultWrites(http, reader(DefaultsOut), reader(DefaultsOut), dry_run=True)

    async def get(self) -> DefaultsOut:
        return await self._http.get(DefaultsOut, "/defaults")
