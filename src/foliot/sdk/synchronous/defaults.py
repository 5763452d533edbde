# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.defaults`: values that jobs of the workspace get for fields that they leave out."""

from __future__ import annotations

from typing import Unpack

from foliot.sdk.keywords import DefaultKeywords
from foliot.sdk.request import ApiRequest
from foliot.sdk.response import raise_for_error, reader
from foliot.sdk.synchronous.http import Changed, Gone, Transport, Writes
from foliot.wire.defaults import DefaultsOut


class DefaultWrites(Writes[Changed, Gone]):
    def change(self, **fields: Unpack[DefaultKeywords]) -> Changed:
        """Change the given defaults; None gives one back to the installation. Jobs that inherit them follow."""
        return self._change(ApiRequest("PATCH", "/defaults", body=dict(fields)))


class DefaultsApi(DefaultWrites[DefaultsOut, None]):
    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(DefaultsOut), raise_for_error)
        self.dry_run = DefaultWrites(http, reader(DefaultsOut), reader(DefaultsOut), dry_run=True)

    def get(self) -> DefaultsOut:
        return self._http.get(DefaultsOut, "/defaults")
