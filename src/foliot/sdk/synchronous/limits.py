# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.limits`: how many runs may execute at a time."""

from __future__ import annotations

from foliot.sdk.request import ApiRequest, without_none
from foliot.sdk.response import raise_for_error, reader
from foliot.sdk.synchronous.http import Changed, Gone, Transport, Writes
from foliot.wire.fleet import LimitOut, LimitsOut


class LimitWrites(Writes[Changed, Gone]):
    """`key` is a concurrency key of jobs. Without it the limit is for the whole workspace, and an administrator sets it."""

    def set(self, cap: int, *, key: str | None = None) -> Changed:
        """Allow at most `cap` runs at a time. Runs under way continue."""
        return self._write(self._changed, ApiRequest("PUT", "/limits", body=without_none(key=key, cap=cap)))

    def remove(self, *, key: str | None = None) -> Gone:
        """Remove a limit. Runs that waited for it start."""
        return self._write(self._gone, ApiRequest("DELETE", "/limits", query={"key": key}))


class LimitsApi(LimitWrites[LimitOut, None]):
    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(LimitOut), raise_for_error)
        self.dry_run = LimitWrites(http, reader(LimitOut), reader(LimitOut), dry_run=True)

    def list(self) -> LimitsOut:
        return self._http.read(LimitsOut, ApiRequest("GET", "/limits"))
